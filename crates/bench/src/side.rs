//! The two servers that a suite compares.

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The baseline.
    Bare,
    /// A node.
    Node,
}

impl Side {
    /// By the names of the command line.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("bare", Self::Bare), ("node", Self::Node)];

    pub(crate) fn name(self) -> &'static str {
        if self == Self::Bare { "bare" } else { "node" }
    }
}
