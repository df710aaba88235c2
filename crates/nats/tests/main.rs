//! The engine over real servers of NATS, which the tests start and end.
#![cfg(unix)]

mod cluster;
mod credentials;
mod host;
mod messages;
mod node;
mod outages;
mod proxy;
mod records;
mod refusals;
