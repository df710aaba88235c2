//! Loads of a real node in the same process, and of servers that misbehave.

mod bad_servers;
mod loads;
mod rooms;
mod scripts;
