//! A room's copy, shared by the connection's task, which changes it, and by readers, whom it never
//! waits for.

use std::mem;
use std::sync::Arc;

use playfield_state::{PlayerId, ShapeError};
use playfield_wire::DecodeError;
use playfield_wire::schema::RoomSchema;

use crate::Mirror;
use crate::core::UNUSABLE_IN_A_ROW_MAX;

/// How many bytes of patches wait while someone looks at the copy. Past it they are dropped, and a
/// snapshot is asked for.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// A copy that stands still while someone looks at it. What comes meanwhile waits, and is applied
/// afterwards.
#[derive(Debug)]
pub(super) struct SharedCopy<M> {
    mirror: Arc<M>,
    version: u64,
    /// How often it has changed.
    changes: u64,
    waiting: Vec<Body>,
    waiting_bytes: usize,
    /// A patch could not be applied: there is no copy, and a snapshot is needed.
    broken: bool,
    /// How many snapshots in a row waited and then could not be read. Each was taken for good when
    /// it came, so that whoever counts what can't be used has not counted it.
    unreadable: u32,
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
            unreadable: 0,
        }
    }

    /// The copy, which stands still until the last of these is dropped and [`settle`](Self::settle)
    /// is called.
    pub(super) fn look(&self) -> Arc<M> {
        Arc::clone(&self.mirror)
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The copy is of this schema. Nobody looks at it yet.
    pub(super) fn learn(
        &mut self,
        schema: &RoomSchema,
        player: PlayerId,
    ) -> Result<(), ShapeError> {
        Arc::get_mut(&mut self.mirror).map_or(Ok(()), |mirror| mirror.learn(schema, player))
    }

    pub(super) fn snapshot(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        // Whatever waits leads to a version before this one.
        self.waiting.clear();
        self.waiting_bytes = 0;
        match Arc::get_mut(&mut self.mirror) {
            Some(mirror) => {
                mirror.snapshot(body)?;
                (self.broken, self.unreadable) = (false, 0);
                self.changed(version);
            }
            // As after one that is read when it comes: asking again would bring the same.
            None if self.unreadable >= UNUSABLE_IN_A_ROW_MAX => {
                return Err(DecodeError::other("the snapshots before it could not be read"));
            }
            None => self.wait(true, version, body),
        }
        Ok(())
    }

    pub(super) fn patch(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        self.settle()?;
        match Arc::get_mut(&mut self.mirror) {
            _ if self.broken => Err(DecodeError::other("a patch before it could not be applied")),
            Some(mirror) => {
                // Until it is applied; and where it can't be, the mirror is that of nothing.
                (self.broken, self.version) = (true, 0);
                mirror.patch(body)?;
                self.broken = false;
                self.changed(version);
                Ok(())
            }
            None if self.waiting_bytes + bytes_of(body) > WAITING_BYTES_MAX => {
                self.waiting.clear();
                self.waiting_bytes = 0;
                Err(DecodeError::other("too much came while the copy was being looked at"))
            }
            None => {
                self.wait(false, version, body);
                Ok(())
            }
        }
    }

    /// Whether the copy comes to this digest, as far as can be told: while patches wait it is not
    /// what it will be. If not, a snapshot has to be asked for.
    pub(super) fn check(&mut self, digest: u64) -> bool {
        // Whoever finds first that something can't be applied tells of it, and nobody else does.
        if self.settle().is_err() {
            return false;
        }
        if !self.waiting.is_empty() || self.broken {
            return true;
        }
        self.mirror.digest().is_none_or(|own| own == digest)
    }

    /// Applies what waits, unless someone is looking. On an error, a snapshot has to be asked for.
    pub(super) fn settle(&mut self) -> Result<(), DecodeError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let Some(mirror) = Arc::get_mut(&mut self.mirror) else { return Ok(()) };
        self.waiting_bytes = 0;
        for Body { is_snapshot, version, bytes } in mem::take(&mut self.waiting) {
            (self.broken, self.version) = (true, 0);
            if is_snapshot {
                self.unreadable += 1;
                mirror.snapshot(&bytes)?;
                self.unreadable = 0;
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
        // A snapshot takes the place of all that waited, and waits however large it is: to drop it
        // would mean to ask for it again.
        if !is_snapshot {
            self.waiting_bytes += bytes_of(body);
        }
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

#[cfg(test)]
mod tests {
    use super::{Body, SharedCopy, UNUSABLE_IN_A_ROW_MAX, WAITING_BYTES_MAX};
    use crate::Mirror;
    use playfield_wire::DecodeError;
    use std::mem;

    /// Keeps the lengths of the bodies it was given; an empty one is an error.
    #[derive(Debug, Default)]
    struct Lengths(Vec<usize>);

    impl Mirror for Lengths {
        type State = Vec<usize>;

        fn state(&self) -> &Vec<usize> {
            &self.0
        }

        fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
            self.0.clear();
            self.patch(body)
        }

        fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
            self.0.push(body.len());
            if body.is_empty() { Err(DecodeError::other("empty")) } else { Ok(()) }
        }
    }

    fn copy() -> SharedCopy<Lengths> {
        let mut copy = SharedCopy::new(Lengths::default());
        copy.snapshot(1, b"1").unwrap();
        copy
    }

    #[test]
    fn what_waits_is_applied_in_order_when_nobody_looks_any_more() {
        let mut copy = copy();
        let look = copy.look();
        copy.patch(2, b"22").unwrap();
        copy.patch(3, b"333").unwrap();
        copy.settle().unwrap();
        assert_eq!((&look.0, copy.version(), copy.changes()), (&vec![1], 1, 1));
        drop(look);
        copy.patch(4, b"4444").unwrap();
        assert_eq!((&copy.look().0, copy.version(), copy.changes()), (&vec![1, 2, 3, 4], 4, 4));
    }

    #[test]
    fn a_snapshot_takes_the_place_of_what_waits() {
        let mut copy = copy();
        let look = copy.look();
        copy.patch(2, b"22").unwrap();
        copy.snapshot(7, b"777").unwrap();
        drop(look);
        copy.settle().unwrap();
        assert_eq!((&copy.look().0, copy.version()), (&vec![3], 7));
    }

    #[test]
    fn past_the_limit_nothing_waits_and_a_snapshot_is_needed() {
        let mut copy = copy();
        let look = copy.look();
        let most = vec![0; WAITING_BYTES_MAX - 2 * mem::size_of::<Body>()];
        copy.patch(2, &most).unwrap();
        copy.patch(3, b"").unwrap();
        assert!(copy.patch(4, b"").is_err());
        drop(look);
        copy.settle().unwrap();
        assert_eq!((&copy.look().0, copy.version()), (&vec![1], 1));
        copy.snapshot(4, b"44").unwrap();
        assert_eq!(copy.version(), 4);
    }

    #[test]
    fn a_check_that_finds_what_waited_unusable_says_so_once() {
        let mut copy = copy();
        let look = copy.look();
        copy.patch(2, b"22").unwrap();
        copy.patch(3, b"").unwrap();
        assert!(copy.check(0), "while someone looks nothing can be told");
        drop(look);
        assert!(!copy.check(0), "a snapshot has to be asked for");
        assert!(copy.settle().is_ok() && copy.check(0), "nobody asks for another");
        assert_eq!(copy.version(), 0, "there is no copy");
        copy.snapshot(4, b"4444").unwrap();
        assert!(copy.check(0));

        let look = copy.look();
        copy.patch(5, b"").unwrap();
        drop(look);
        assert!(copy.settle().is_err(), "a snapshot has to be asked for");
        assert!(copy.check(0), "nobody asks for another");
    }

    #[test]
    fn snapshots_that_waited_and_could_not_be_read_are_not_asked_for_without_end() {
        let mut copy = copy();
        for _ in 0..2 {
            for version in 0..UNUSABLE_IN_A_ROW_MAX {
                let look = copy.look();
                copy.snapshot(u64::from(version), b"").unwrap();
                drop(look);
                assert!(copy.settle().is_err());
            }
            // One that can be read at once is, and one that can be read counts anew.
            copy.snapshot(20, b"1").unwrap();
        }
        for version in 30..30 + UNUSABLE_IN_A_ROW_MAX {
            let look = copy.look();
            copy.snapshot(u64::from(version), b"").unwrap();
            drop(look);
            assert!(!copy.check(0));
        }
        let _look = copy.look();
        assert!(copy.snapshot(60, b"").is_err());
        assert!(copy.settle().is_ok(), "it does not wait");
    }

    #[test]
    fn a_snapshot_waits_however_large_it_is() {
        let mut copy = copy();
        let look = copy.look();
        copy.snapshot(2, &vec![0; 2 * WAITING_BYTES_MAX]).unwrap();
        for version in 3..10 {
            copy.patch(version, b"1").unwrap();
        }
        drop(look);
        copy.settle().unwrap();
        assert_eq!((copy.version(), copy.look().0.len()), (9, 8));
    }

    #[test]
    fn after_a_patch_that_failed_only_a_snapshot_is_taken() {
        let mut copy = copy();
        assert!(copy.patch(2, b"").is_err());
        assert!(copy.patch(3, b"333").is_err());
        copy.snapshot(4, b"4444").unwrap();
        copy.patch(5, b"55555").unwrap();
        assert_eq!(copy.look().0, [4, 5]);

        let look = copy.look();
        copy.patch(6, b"").unwrap();
        copy.patch(7, b"7").unwrap();
        drop(look);
        assert!(copy.settle().is_err());
        assert!(copy.patch(8, b"8").is_err());
        assert_eq!(copy.version(), 0, "there is no copy");
    }
}
