//! The tests of state and its copies. One binary for all, which links once; each file is a module.

mod blanks;
mod changes;
mod collections;
mod common;
mod compatibility;
mod compatibility_of_values;
mod documentation;
mod dynamic;
mod histories;
mod laws;
mod lists;
mod policies;
mod readers;
mod snapshots;
mod table;
mod transcode;
mod values;
mod vectors;
