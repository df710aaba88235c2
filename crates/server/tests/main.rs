//! The tests of the node, over real sockets. One binary links once; each file is a module.

mod authentication;
mod bad_input;
mod channels;
mod closing;
mod common;
mod deflate;
mod devices;
mod echo;
mod http;
mod origins;
mod path;
#[cfg(target_os = "linux")]
mod per_shard;
mod plain;
mod services;
mod shutdown;
mod smuggling;
mod sockets;
mod strangers;
mod tls;
