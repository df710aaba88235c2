//! The parts of a node that others use while they take an answer.

use std::time::Duration;

use crate::lease::Lease;
use crate::output::Output;
use crate::settings::Settings;

pub(crate) struct Context<'a> {
    pub(crate) now: Duration,
    pub(crate) lease: &'a Lease,
    pub(crate) settings: &'a Settings,
    pub(crate) output: &'a mut Output,
}
