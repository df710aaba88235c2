//! Tests of the registry of devices.

mod registry;
mod threads;
