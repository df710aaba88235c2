//! HTTP beside the rooms: pages in memory, a program's own handlers, and files of a folder.
//!
//! A shard parses requests and writes responses, in `shard/connection/http`, and answers pages
//! itself. Handlers run, and files are read, on a thread of their own, the `worker`: however slow
//! they are, they delay no room and no room's background work.

mod answer;
mod desk;
mod folder;
mod media_type;
mod pages;
mod range;
mod routes;
mod site;
mod validator;
mod worker;

pub use answer::IntoResponse;
pub use playfield_http::{Head, Request, Response};

#[cfg(test)]
pub(crate) use desk::Order;
pub(crate) use desk::{Answer, Call, Desk, Full, Hold, Part, Then, Work};
pub(crate) use routes::handler;
pub(crate) use site::{Found, Site};
pub(crate) use worker::Worker;
