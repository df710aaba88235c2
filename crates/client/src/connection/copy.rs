//! A room's copy, shared by the connection's task, which changes it, and by readers, whom it never waits for.

use std::mem;
use std::sync::Arc;

use playfield_wire::DecodeError;

use crate::Mirror;

/// How many bytes of patches wait while someone looks at the copy. Past it they are dropped, and a snapshot is asked for.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// A copy that stands still while someone looks at it. What comes meanwhile waits, and is applied afterwards.
#[derive(Debug)]
pub(super) struct SharedCopy<M> {
    mirror: Arc<M>,
    version: u64,
    /// How often it has changed.
    changes: u64,
    waiting: Vec<Body>,
    waiting_bytes: usize,
    /// A patch could not be applied: the copy may be half changed, and needs a snapshot.
    broken: bool,
}

#[derive(Debug)]
struct Body {
    is_snapshot: bool,
    version: u64,
    bytes: Vec<u8>,
}

impl<M: Mirror> SharedCopy<M> {
    pub(super) fn new(mirror: M) -> Self {
        Self {
            mirror: Arc::new(mirror),
            version: 0,
            changes: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
            broken: false,
        }
    }

    /// The copy, which stands still until the last of these is dropped and [`settle`](Self::settle) is called.
    pub(super) fn look(&self) -> Arc<M> {
        Arc::clone(&self.mirror)
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn snapshot(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        // Whatever waits leads to a version before this one.
        self.waiting.clear();
        self.waiting_bytes = 0;
        match Arc::get_mut(&mut self.mirror) {
            Some(mirror) => {
                mirror.snapshot(body)?;
                self.broken = false;
                self.changed(version);
            }
            None => self.wait(true, version, body),
        }
        Ok(())
    }

    pub(super) fn patch(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        self.settle()?;
        match Arc::get_mut(&mut self.mirror) {
            _ if self.broken => Err(DecodeError::new(0, "a patch before it could not be applied")),
            Some(mirror) => {
                self.broken = true;
                mirror.patch(body)?;
                self.broken = false;
                self.changed(version);
                Ok(())
            }
            None if self.waiting_bytes + bytes_of(body) > WAITING_BYTES_MAX => {
                self.waiting.clear();
                self.waiting_bytes = 0;
                Err(DecodeError::new(0, "too much came while the copy was being looked at"))
            }
            None => {
                self.wait(false, version, body);
                Ok(())
            }
        }
    }

    /// Applies what waits, unless someone is looking. On an error, a snapshot has to be asked for.
    pub(super) fn settle(&mut self) -> Result<(), DecodeError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let Some(mirror) = Arc::get_mut(&mut self.mirror) else { return Ok(()) };
        self.waiting_bytes = 0;
        for Body { is_snapshot, version, bytes } in mem::take(&mut self.waiting) {
            self.broken = true;
            if is_snapshot {
                mirror.snapshot(&bytes)?;
            } else {
                mirror.patch(&bytes)?;
            }
            self.broken = false;
            self.version = version;
            self.changes += 1;
        }
        Ok(())
    }

    fn wait(&mut self, is_snapshot: bool, version: u64, body: &[u8]) {
        self.waiting_bytes += bytes_of(body);
        self.waiting.push(Body { is_snapshot, version, bytes: body.to_vec() });
    }

    fn changed(&mut self, version: u64) {
        self.version = version;
        self.changes += 1;
    }
}

fn bytes_of(body: &[u8]) -> usize {
    mem::size_of::<Body>() + body.len()
}
