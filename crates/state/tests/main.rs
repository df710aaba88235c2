//! The tests of state and its copies. They are one binary, so it links once; each file is a module.

mod changes;
mod collections;
mod common;
mod compatibility;
mod compatibility_of_values;
mod default_digests;
mod documentation;
mod dynamic;
mod forms;
mod histories;
mod laws;
mod lists;
mod names;
mod placed;
mod policies;
mod probes;
mod profiles;
mod readers;
mod saves;
mod snapshots;
mod table;
mod thawing_laws;
mod transcode;
mod values;
mod vectors;
