//! The suites, and the servers that their processes are.

mod attacks;
mod audit;
mod channel;
mod connections;
mod constructs;
mod echo;
mod http;
mod journal;
mod jwt;
mod messages;
mod nats;
mod overload;
mod packet;
mod peers;
mod registry;
mod replay;
mod resume;
mod rooms;
mod store;
mod sync;
mod tls;
mod upgrade;
mod websocket;
mod worlds;

use crate::harness::options::Command;
use crate::harness::process::Role;

/// All suites, in the order in which they run.
pub const SUITES: &[&dyn Command] = &[
    &sync::SUITE,
    &constructs::SUITE,
    &audit::SUITE,
    &worlds::SUITE,
    &packet::SUITE,
    &websocket::SUITE,
    &store::SUITE,
    &replay::SUITE,
    &journal::SUITE,
    &http::SUITE,
    &tls::SUITE,
    &jwt::SUITE,
    &attacks::SUITE,
    &resume::SUITE,
    &upgrade::SUITE,
    &connections::CONNECTIONS,
    &connections::HEARTBEAT,
    &connections::SOAK,
    &channel::SUITE,
    &messages::MESSAGES,
    &messages::REQUESTS,
    &echo::SUITE,
    &registry::SUITE,
    &nats::SUITE,
    &rooms::SUITE,
    &overload::SUITE,
    &peers::SUITE,
];

/// All servers that suites start in processes of their own.
pub const ROLES: &[Role] = &[
    attacks::ROLE,
    channel::ROLE,
    connections::ROLE,
    echo::ROLE,
    http::ROLE,
    journal::ROLE,
    jwt::ROLE,
    messages::ROLE,
    resume::ROLE,
    rooms::ROLE,
    tls::ROLE,
    upgrade::ROLE,
];
