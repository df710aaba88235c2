//! Systems on which no process can take over from another.

use std::io;

use super::{Accepted, Inherited, Upgrade, UpgradeError, Upgraded};
use crate::event_loop::SharedRuntime;
use crate::node::Node;

/// No process has this task.
pub(crate) enum Successor {}

impl Successor {
    #[expect(clippy::unnecessary_wraps, reason = "it may fail elsewhere")]
    pub(crate) fn of_this_process() -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(crate) fn greet(&mut self, _: Vec<String>) -> io::Result<Accepted> {
        match *self {}
    }

    pub(crate) fn inherit(&mut self) -> io::Result<Inherited> {
        match *self {}
    }

    pub(crate) fn hold(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn serves(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn refuse(&mut self, _: &str) {
        match *self {}
    }
}

pub(crate) fn upgrade(_: &SharedRuntime, _: &Node, _: &Upgrade) -> Result<Upgraded, UpgradeError> {
    Err(UpgradeError::new("a running program can be upgraded on Linux only"))
}

pub(crate) fn is_ready() {}

pub(crate) fn is_taking_over() -> bool {
    false
}
