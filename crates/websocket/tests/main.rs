//! The tests of the WebSocket codec. One binary for all, which links once; each file is a module.

mod decode_rules;
mod deflate;
mod deflate_handshake;
mod encode;
mod error_text;
mod fragments;
mod handshake_client;
mod handshake_server;
mod messages;
mod oracle;
mod stream;
