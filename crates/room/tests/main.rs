//! The tests of rooms, without sockets. One binary for all, which links once; each file is a
//! module.

mod audit;
mod coming_back;
mod copies;
mod determinism;
mod ending;
mod excerpts;
mod failures;
mod freezing;
mod freezing_laws;
mod holding;
mod host;
mod lasting;
mod macros;
mod names;
mod rates;
mod recording;
mod recording_laws;
mod replies;
mod round_trips;
mod schemas;
mod sim;
mod sim_copies;
mod support;
mod table;
mod timers_in_state;
