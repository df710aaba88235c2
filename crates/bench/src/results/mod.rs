//! Recorded results: files of what suites printed, and the figures of documents made from them.
//!
//! `docs/benchmarks/suites.json` names what is recorded and by which commands. [`record`] runs the
//! commands of a suite and writes `docs/benchmarks/SUITE.json`. [`update`] writes the blocks of
//! documents that [`page`] describes. A test holds that documents and files agree.

mod compare;
mod figure;
mod file;
mod goals;
mod library;
pub mod page;
mod record;
mod tree;

pub use self::compare::{Compared, compare};
pub(crate) use self::file::VERSION;
pub use self::page::{differing, update};
pub use self::record::{Source, record};
pub use self::tree::root;

use std::io;

/// The folder of the files, in the repository.
const FOLDER: &str = "docs/benchmarks";

/// Makes an error of a sentence.
fn error(text: impl Into<String>) -> io::Error {
    io::Error::other(text.into())
}

/// Says where an error is.
fn at(place: impl std::fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{place}: {error}"))
}
