//! The tests of the store on disk. They are one binary, so it links once; each file is a module.

mod kill;
mod store;
