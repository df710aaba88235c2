//! Settings of a cluster against each other.

use super::Cluster;

/// The longest name of a cluster: it is part of all names in the engine.
const CLUSTER_NAME_MAX: usize = 32;

/// The longest name of a node.
const NODE_NAME_MAX: usize = 64;

impl Cluster {
    /// Returns whether the node is in a cluster.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.engine.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Self { name, node, .. } = self;
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || name.len() > CLUSTER_NAME_MAX || !name.bytes().all(is_plain) {
            return Err(format!("cluster.name = {name:?}: not 1 to 32 of a to z, 0 to 9 and _"));
        }
        if node.len() > NODE_NAME_MAX || node.chars().any(char::is_control) {
            return Err(format!("cluster.node = {node:?}: not up to 64 characters"));
        }
        Ok(())
    }
}
