//! A stand-in for systems where threads can't have descriptor tables of their own.

use std::convert::Infallible;
use std::io;
use std::net::TcpStream;

use mio::{Registry, Token};

/// There are none.
pub(crate) struct Tables(Infallible);

impl Tables {
    pub(crate) fn new(_: usize) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "shards have descriptor tables of their own on Linux only",
        ))
    }

    pub(crate) fn leave(&self) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn register(&self, _: usize, _: &Registry, _: Token) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn wake(&self, _: usize) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn knows_this_thread(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn takes(&self, _: usize) -> bool {
        match self.0 {}
    }

    pub(crate) fn gives_back(&self, _: usize) {
        match self.0 {}
    }

    pub(crate) fn send<T>(&self, _: usize, _: &T) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn receive(&self, _: usize) -> io::Result<TcpStream> {
        match self.0 {}
    }
}

pub(crate) fn in_process_table() -> bool {
    true
}

pub(crate) fn with_process_table(work: impl FnOnce() + Send + 'static) {
    work();
}
