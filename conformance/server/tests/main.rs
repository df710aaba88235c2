//! The conformance scenarios (`conformance/README.md`): their files are right, and clients play
//! them.

mod files;
mod javascript;
mod rust;
