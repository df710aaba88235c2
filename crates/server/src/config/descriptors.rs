//! The descriptor table that a shard uses.

use std::fmt;

/// The descriptor table that a shard uses. The system's limit of open files holds for each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptors {
    /// That of the process.
    Shared,
    /// One of its own (Linux only).
    PerShard,
}

impl Descriptors {
    /// Reads one; otherwise says why not.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        match text {
            "shared" => Ok(Self::Shared),
            "per_shard" => Ok(Self::PerShard),
            _ => Err("neither shared nor per_shard".into()),
        }
    }
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "shared",
            Self::PerShard => "per_shard",
        })
    }
}
