//! Loads of a real node in the same process, and of servers that misbehave.

mod bad_servers;
mod channels;
mod devices;
mod loads;
mod redirects;
mod rooms;
mod scripts;
