//! The tests of HTTP. One binary for all, which links once; each file is a module.

mod requests;
mod responses;
mod splits;
