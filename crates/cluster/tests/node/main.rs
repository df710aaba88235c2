//! Nodes over an engine whose answers the test gives.

mod bench;
mod claims;
mod lease;
mod links;
mod moving;
mod pair;
mod placing;
