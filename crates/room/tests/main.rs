//! The tests of rooms, without sockets. One binary for all, which links once; each file is a module.

mod determinism;
mod failures;
mod host;
mod schemas;
mod sim;
mod support;
mod table;
