//! The tests of tokens, keys and tickets. One binary links once; each file is a module.

mod common;
mod jwt;
mod keys;
mod refresh;
mod tickets;
#[cfg(feature = "url")]
mod url;
