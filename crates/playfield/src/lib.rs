//! Playfield: authoritative rooms for games, shared documents and fleets of devices, served in real time.
//!
//! An application defines its rooms as plain data and handlers, without code for sockets or for sending state. A node runs
//! them: it accepts players, hands their messages to the rooms, and after each sync tells every player what changed of
//! that which they are allowed to see.
//!
//! This crate is the one to depend on. The others, whose names begin with `playfield-`, are the floors beneath it;
//! `docs/architecture.md` in the repository draws them.
