//! Waking a shard that waits for its sockets, from any thread.

use std::io;
use std::sync::Arc;

use mio::Waker;

use crate::sys::{Tables, in_process_table, with_process_table};

/// Wakes a shard.
#[derive(Clone)]
pub(crate) enum ShardWaker {
    /// With the descriptor table of the process.
    Shared(Arc<Waker>),
    /// The shard of this number, which has a table of its own.
    PerShard(Arc<Tables>, usize),
}

impl From<Waker> for ShardWaker {
    fn from(waker: Waker) -> Self {
        Self::Shared(Arc::new(waker))
    }
}

impl ShardWaker {
    /// Begins a turn of the shard.
    pub(crate) fn wake(&self) -> io::Result<()> {
        let is_known = match self {
            _ if in_process_table() => true,
            Self::PerShard(tables, _) => tables.knows_this_thread(),
            Self::Shared(_) => false,
        };
        if is_known {
            return self.wake_here();
        }
        // A shard of another node, with a table of its own: the number may mean something else
        // there.
        let waker = self.clone();
        with_process_table(move || {
            if let Err(error) = waker.wake_here() {
                log::warn!("a shard could not be woken: {error}");
            }
        });
        Ok(())
    }

    fn wake_here(&self) -> io::Result<()> {
        match self {
            Self::Shared(waker) => waker.wake(),
            Self::PerShard(tables, shard) => tables.wake(*shard),
        }
    }
}
