//! The session: the protocol without sockets.

#[path = "../support/mod.rs"]
mod support;

mod bad_bodies;
mod channels;
mod conversation;
mod cuts;
mod damage;
mod devices;
mod model;
mod pair;
mod play;
mod polling;
mod properties;
mod redirects;
mod resumption;
mod rules;
mod switch;
mod versions;
