//! The tests of the stores. They are one binary, so it links once; each file is a module.

mod any_store;
mod kill;
#[cfg(all(feature = "postgres", unix))]
mod postgres;
mod store;
