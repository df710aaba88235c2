//! The way of a join from node to node.

use playfield_client::session::{self, Target, Turn};
use playfield_wire::ErrorCode;
use pyo3::prelude::*;

use super::Core;

/// The way of a join, which begins at the node of a core. Each method returns the next step:
/// `"there"` with the address of the node to ask; `"again"`, to ask the first node; or
/// `"unreachable"` with the reason.
#[pyclass(module = "playfield._playfield")]
#[derive(Debug)]
pub struct Route(session::Route);

#[pymethods]
impl Route {
    #[new]
    fn new(py: Python<'_>, core: &Core) -> Self {
        // What is asked for, the package keeps itself.
        Self(session::Route::new(Target::Join { id: String::new() }, core.reach(py)))
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is made of a list")]
    fn redirected(&mut self, addresses: Vec<String>, reservation: &str) -> (&'static str, String) {
        step(self.0.redirected(&addresses, reservation))
    }

    /// The node has refused; `None` if that is the answer to the join.
    fn refused(&mut self, code: &str) -> Option<(&'static str, String)> {
        self.0.refused(ErrorCode::from_name(code)?).map(step)
    }

    fn unreachable(&mut self, why: &str) -> (&'static str, String) {
        step(self.0.unreachable(why))
    }
}

fn step(turn: Turn) -> (&'static str, String) {
    match turn {
        Turn::There { address, .. } => ("there", address.to_string()),
        Turn::Again => ("again", String::new()),
        Turn::Unreachable(text) => ("unreachable", text),
    }
}
