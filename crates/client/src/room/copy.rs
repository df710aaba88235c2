//! A room's copy: the one place that applies snapshots and patches.

use std::mem;
use std::sync::Arc;

use playfield_state::StateTranscoder;
use playfield_wire::DecodeError;

use super::changes::Listeners;
use crate::Mirror;
use crate::session::{Repair, UNUSABLE_IN_A_ROW_MAX, Update, UpdateKind};

/// The most bytes of patches that wait. Past it they are dropped, and a snapshot is needed.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// A copy that is frozen while a reader holds it, and while the node's schema is unknown. Updates
/// that come meanwhile wait.
#[derive(Debug)]
pub(crate) struct Copy<M> {
    mirror: Arc<M>,
    /// Converts bodies of the node's build, if it is another.
    transcoder: Option<StateTranscoder>,
    /// The node's schema is needed to read updates, and unknown.
    is_held: bool,
    /// The listeners for changes, if any.
    pub(super) listeners: Option<Listeners>,
    version: u64,
    /// The number of applied updates.
    changes: u64,
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    /// An update could not be applied: the copy needs a snapshot.
    is_broken: bool,
    /// The number of snapshots in a row that waited and could not be read. The session counted each
    /// as applied.
    unreadable: u32,
}

#[derive(Debug)]
struct Waiting {
    kind: UpdateKind,
    version: u64,
    body: Vec<u8>,
}

impl<M: Mirror> Copy<M> {
    pub(crate) fn new(mirror: M) -> Self {
        Self {
            mirror: Arc::new(mirror),
            transcoder: None,
            is_held: false,
            listeners: None,
            version: 0,
            changes: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
            is_broken: false,
            unreadable: 0,
        }
    }

    /// The copy for a reader. It is frozen until the last of these is dropped and
    /// [`settle`](Self::settle) is called.
    pub(crate) fn read(&self) -> Arc<M> {
        Arc::clone(&self.mirror)
    }

    /// The version of the copy; 0 if there is none.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns whether updates wait.
    pub(crate) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Keeps updates until [`translate`](Self::translate) is called.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Sets how to read updates. They are applied by the next [`settle`](Self::settle).
    pub(crate) fn translate<E>(
        &mut self,
        transcoder: Option<StateTranscoder>,
        set: impl FnOnce(&mut M) -> Result<(), E>,
    ) -> Result<(), E> {
        (self.transcoder, self.is_held) = (transcoder, false);
        // No reader holds a copy of a room that is not entered yet.
        Arc::get_mut(&mut self.mirror).map_or(Ok(()), set)
    }

    /// Applies an update, or keeps it while the copy is frozen.
    ///
    /// # Errors
    /// If it can't be applied or kept: a snapshot is needed.
    pub(crate) fn update(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        let Update { kind, version, body } = *update;
        match kind {
            UpdateKind::Snapshot => self.drop_waiting(),
            UpdateKind::Patch => {
                self.settle()?;
                if self.is_broken {
                    return Err(DecodeError::other("an earlier update could not be applied"));
                }
            }
        }
        if self.can_apply() { self.apply(kind, version, body) } else { self.wait(update) }
    }

    /// Applies what waits, unless the copy is frozen.
    ///
    /// # Errors
    /// If an update can't be applied.
    pub(crate) fn settle(&mut self) -> Result<(), DecodeError> {
        if self.waiting.is_empty() || !self.can_apply() {
            return Ok(());
        }
        self.waiting_bytes = 0;
        for Waiting { kind, version, body } in mem::take(&mut self.waiting) {
            let applied = self.apply(kind, version, &body);
            if applied.is_err() && kind == UpdateKind::Snapshot {
                // The session counted it as applied, so later patches don't fit the older copy.
                (self.is_broken, self.version) = (true, 0);
                self.unreadable += 1;
            }
            applied?;
        }
        Ok(())
    }

    /// Settles, and returns what the session is to do if an update can't be applied.
    pub(crate) fn repair(&mut self) -> Option<Repair> {
        self.settle().err()?;
        Some(if self.unreadable > 1 { Repair::Leave } else { Repair::Snapshot })
    }

    /// Returns whether the copy has this digest, as far as can be known.
    pub(crate) fn check(&mut self, digest: u64) -> bool {
        // A failed update is reported once, by whoever finds it first.
        if self.settle().is_err() {
            return false;
        }
        if self.is_held || !self.waiting.is_empty() || self.is_broken {
            return true;
        }
        match &self.transcoder {
            Some(transcoder) => transcoder.digest().is_none_or(|own| own == digest),
            None => self.mirror.digest() == digest,
        }
    }

    fn can_apply(&mut self) -> bool {
        !self.is_held && Arc::get_mut(&mut self.mirror).is_some()
    }

    fn apply(&mut self, kind: UpdateKind, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        let Some(mirror) = Arc::get_mut(&mut self.mirror) else {
            return Err(DecodeError::other("the copy is frozen"));
        };
        let is_patch = kind == UpdateKind::Patch;
        // Also if the mirror panics: it may then be half changed.
        self.is_broken |= is_patch;
        let mut own = Vec::new();
        let body = match &mut self.transcoder {
            None => body,
            Some(transcoder) => {
                own.reserve(body.len());
                match kind {
                    UpdateKind::Snapshot => transcoder.snapshot(body, &mut own)?,
                    UpdateKind::Patch => transcoder.patch(body, &mut own)?,
                }
                &own[..]
            }
        };
        if is_patch {
            self.version = 0;
        }
        match &mut self.listeners {
            None => mirror.apply(kind, body, None)?,
            Some(listeners) => {
                listeners.apply(mirror, kind, body)?;
                if listeners.is_empty() {
                    self.listeners = None;
                }
            }
        }
        self.version = version;
        self.changes += 1;
        self.is_broken = false;
        if !is_patch {
            self.unreadable = 0;
        }
        Ok(())
    }

    fn wait(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        let Update { kind, version, body } = *update;
        match kind {
            // A snapshot replaces what waited, and waits whatever its size: if it were dropped, the
            // same one would be asked for again. If none can be read, waiting for more is useless.
            UpdateKind::Snapshot if self.unreadable < UNUSABLE_IN_A_ROW_MAX => {}
            UpdateKind::Snapshot => {
                return Err(DecodeError::other("too many snapshots could not be read"));
            }
            UpdateKind::Patch => {
                self.waiting_bytes += mem::size_of::<Waiting>() + body.len();
                if self.waiting_bytes > WAITING_BYTES_MAX {
                    self.drop_waiting();
                    let text = "too many patches came while the copy was frozen";
                    return Err(DecodeError::other(text));
                }
            }
        }
        self.waiting.push(Waiting { kind, version, body: body.to_vec() });
        Ok(())
    }

    fn drop_waiting(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Copy, UNUSABLE_IN_A_ROW_MAX, Update, UpdateKind, WAITING_BYTES_MAX, Waiting};
    use crate::Mirror;
    use playfield_state::Change;
    use playfield_wire::DecodeError;
    use std::mem;

    /// Keeps the lengths of the bodies since the last snapshot. An empty body is an error.
    #[derive(Debug, Default)]
    struct Lengths(Vec<usize>);

    impl Mirror for Lengths {
        type State = Vec<usize>;

        fn state(&self) -> &Vec<usize> {
            &self.0
        }

        fn digest(&self) -> u64 {
            0
        }

        fn apply(
            &mut self,
            kind: UpdateKind,
            body: &[u8],
            _: Option<&mut dyn FnMut(Change)>,
        ) -> Result<(), DecodeError> {
            if kind == UpdateKind::Snapshot {
                self.0.clear();
            }
            self.0.push(body.len());
            if body.is_empty() { Err(DecodeError::other("empty")) } else { Ok(()) }
        }
    }

    impl Copy<Lengths> {
        fn snapshot(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
            self.update(&Update { kind: UpdateKind::Snapshot, version, body })
        }

        fn patch(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
            self.update(&Update { kind: UpdateKind::Patch, version, body })
        }
    }

    fn copy() -> Copy<Lengths> {
        let mut copy = Copy::new(Lengths::default());
        copy.snapshot(1, b"1").unwrap();
        copy
    }

    #[test]
    fn waiting_updates_are_applied_in_order_once_nobody_reads() {
        let mut copy = copy();
        let reader = copy.read();
        copy.patch(2, b"22").unwrap();
        copy.patch(3, b"333").unwrap();
        copy.settle().unwrap();
        assert_eq!((&reader.0, copy.version(), copy.changes()), (&vec![1], 1, 1));
        drop(reader);
        copy.patch(4, b"4444").unwrap();
        assert_eq!((&copy.read().0, copy.version(), copy.changes()), (&vec![1, 2, 3, 4], 4, 4));
    }

    #[test]
    fn a_held_copy_applies_nothing_until_it_is_translated() {
        let mut copy = Copy::new(Lengths::default());
        copy.hold();
        copy.snapshot(1, b"1").unwrap();
        copy.patch(2, b"22").unwrap();
        assert!(copy.check(7), "the digest is unknown");
        assert_eq!((copy.changes(), copy.version()), (0, 0));
        copy.translate(None, |_| Ok::<_, DecodeError>(())).unwrap();
        copy.settle().unwrap();
        assert_eq!((&copy.read().0, copy.version()), (&vec![1, 2], 2));
    }

    #[test]
    fn a_snapshot_replaces_what_waits() {
        let mut copy = copy();
        let reader = copy.read();
        copy.patch(2, b"22").unwrap();
        copy.snapshot(7, b"777").unwrap();
        drop(reader);
        copy.settle().unwrap();
        assert_eq!((&copy.read().0, copy.version()), (&vec![3], 7));
    }

    #[test]
    fn past_the_limit_nothing_waits_and_a_snapshot_is_needed() {
        let mut copy = copy();
        let reader = copy.read();
        let most = vec![0; WAITING_BYTES_MAX - 2 * mem::size_of::<Waiting>()];
        copy.patch(2, &most).unwrap();
        copy.patch(3, b"").unwrap();
        assert!(copy.patch(4, b"").is_err());
        drop(reader);
        copy.settle().unwrap();
        assert_eq!((&copy.read().0, copy.version()), (&vec![1], 1));
        copy.snapshot(4, b"44").unwrap();
        assert_eq!(copy.version(), 4);
    }

    #[test]
    fn a_failed_update_is_reported_once() {
        let mut copy = copy();
        let reader = copy.read();
        copy.patch(2, b"22").unwrap();
        copy.patch(3, b"").unwrap();
        assert!(copy.check(1), "the digest is unknown while updates wait");
        drop(reader);
        assert!(!copy.check(0), "a snapshot is needed");
        assert!(copy.settle().is_ok() && copy.check(0), "another is not asked for");
        assert_eq!(copy.version(), 0, "there is no copy");
        copy.snapshot(4, b"4444").unwrap();
        assert!(copy.check(0) && !copy.check(1));

        let reader = copy.read();
        copy.patch(5, b"").unwrap();
        drop(reader);
        assert!(copy.settle().is_err(), "a snapshot is needed");
        assert!(copy.check(0), "another is not asked for");
    }

    #[test]
    fn unreadable_snapshots_that_waited_are_not_asked_for_forever() {
        let mut copy = copy();
        for _ in 0..2 {
            for version in 0..UNUSABLE_IN_A_ROW_MAX {
                let reader = copy.read();
                copy.snapshot(u64::from(version), b"").unwrap();
                drop(reader);
                assert!(copy.settle().is_err());
            }
            // A readable one resets the count.
            copy.snapshot(20, b"1").unwrap();
        }
        for version in 30..30 + UNUSABLE_IN_A_ROW_MAX {
            let reader = copy.read();
            copy.snapshot(u64::from(version), b"").unwrap();
            drop(reader);
            assert!(!copy.check(0));
        }
        let _reader = copy.read();
        assert!(copy.snapshot(60, b"").is_err());
        assert!(copy.settle().is_ok(), "it does not wait");
    }

    #[test]
    fn a_snapshot_waits_whatever_its_size() {
        let mut copy = copy();
        let reader = copy.read();
        copy.snapshot(2, &vec![0; 2 * WAITING_BYTES_MAX]).unwrap();
        for version in 3..10 {
            copy.patch(version, b"1").unwrap();
        }
        drop(reader);
        copy.settle().unwrap();
        assert_eq!((copy.version(), copy.read().0.len()), (9, 8));
    }

    #[test]
    fn after_a_failed_patch_only_a_snapshot_is_accepted() {
        let mut copy = copy();
        assert!(copy.patch(2, b"").is_err());
        assert!(copy.patch(3, b"333").is_err());
        copy.snapshot(4, b"4444").unwrap();
        copy.patch(5, b"55555").unwrap();
        assert_eq!(copy.read().0, [4, 5]);

        let reader = copy.read();
        copy.patch(6, b"").unwrap();
        copy.patch(7, b"7").unwrap();
        drop(reader);
        assert!(copy.settle().is_err());
        assert!(copy.patch(8, b"8").is_err());
        assert_eq!(copy.version(), 0, "there is no copy");
    }
}
