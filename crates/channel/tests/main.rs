//! The tests of channels. One binary links once; each file is a module.

mod properties;
