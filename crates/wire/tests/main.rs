//! The tests of packets, messages and schemas. They are one binary, so it links once; each file is
//! a module.

mod messages;
mod packets;
mod properties;
mod protocol_vectors;
mod refusals;
mod schema_json;
mod tables;
mod trees;
