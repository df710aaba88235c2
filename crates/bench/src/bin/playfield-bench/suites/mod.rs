//! The suites, in the order in which all of them run.

mod attacks;
mod channel;
mod connections;
mod constructs;
mod echo;
mod http;
mod jwt;
mod messages;
mod packet;
mod registry;
mod requests;
mod resume;
mod rooms;
mod store;
mod sync;
mod tls;
mod websocket;
mod worlds;

use crate::suite::Command;

pub(crate) const SUITES: &[&dyn Command] = &[
    &sync::SUITE,
    &constructs::SUITE,
    &worlds::SUITE,
    &packet::SUITE,
    &websocket::SUITE,
    &store::SUITE,
    &http::SUITE,
    &tls::SUITE,
    &jwt::SUITE,
    &attacks::SUITE,
    &resume::SUITE,
    &connections::CONNECTIONS,
    &connections::HEARTBEAT,
    &connections::SOAK,
    &channel::SUITE,
    &messages::SUITE,
    &requests::SUITE,
    &echo::SUITE,
    &registry::SUITE,
    &rooms::SUITE,
];
