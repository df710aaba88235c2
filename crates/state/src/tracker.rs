//! The server's end: what was last synced, and the bodies made from it.

use playfield_wire::Format;
use playfield_wire::tree::{Array, TreeWriter};

use crate::lens::{Lens, Step, Tracking};
use crate::ops::Ops;
use crate::state::check_root;
use crate::{Part, PlayerId, State};

/// Keeps what was last synced of one state, and writes patches and snapshots from it.
///
/// A body has a part that all players share, encoded once for each version that players are at, and a part for one player alone.
pub struct Tracker<T: State> {
    shadow: T::Shadow,
    version: u64,
    tracking: Tracking,
    shared: Vec<Shared>,
    /// How many of `shared` are of the current version; the others' memory serves again.
    used: usize,
    /// The digest of what everyone sees, and the version it is of.
    digest: Option<(u64, u64)>,
}

/// A shared part, kept until the next sync.
#[derive(Default)]
struct Shared {
    format: Option<Format>,
    /// `None`: of a snapshot.
    since: Option<u64>,
    bytes: Vec<u8>,
    any: bool,
    /// How many operations, in a tree's patch.
    ops: usize,
}

impl<T: State> Tracker<T> {
    /// Begins with the state as it is, at version 1.
    pub fn new(state: &mut T, tracking: Tracking) -> Self {
        const { check_root::<T>() }
        Self { shadow: state.bind(1), version: 1, tracking, shared: Vec::new(), used: 0, digest: None }
    }

    /// The version of the last sync.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Compares the state with what was last synced; what differs bears the next version.
    pub fn sync(&mut self, state: &mut T) {
        self.version += 1;
        self.used = 0;
        state.diff(&mut self.shadow, Step { now: self.version, tracking: self.tracking });
    }

    /// Appends the body that takes `viewer`'s copy from version `since` (at least 1) to now. Says whether there is anything to
    /// send; if not, nothing is appended.
    pub fn patch(&mut self, viewer: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        let stamps = T::stamps(&self.shadow);
        let own = T::HAS_OWNED && stamps.after(self.lens(Part::Owned, viewer, since));
        if !own && stamps.shared <= since {
            return false;
        }
        let start = body.len();
        let shared = self.shared(format, Some(since));
        let any = match format.tree() {
            None => {
                let any = shared.any;
                body.extend_from_slice(&shared.bytes);
                let any_own = own && self.own_packed(viewer, since, body);
                any || any_own
            }
            Some(format) => {
                let mut ops = TreeWriter::new(format, body).array(shared.ops);
                ops.append(&shared.bytes, shared.ops);
                if own {
                    let lens = self.lens(Part::Owned, viewer, since);
                    T::tree_patch(&self.shadow, lens, &mut Ops::new(&mut ops));
                }
                let any = ops.count() > 0;
                ops.end();
                any
            }
        };
        if !any {
            body.truncate(start);
        }
        any
    }

    /// The digest of `viewer`'s copy, as it is if it is right: see [`Mirror::digest`](crate::Mirror::digest).
    pub fn digest(&mut self, viewer: PlayerId) -> u64 {
        let (at, shared) = match self.digest {
            Some(known) if known.0 == self.version => known,
            _ => (self.version, T::shadow_digest(&self.shadow, self.lens(Part::Shared, viewer, 0))),
        };
        self.digest = Some((at, shared));
        if !T::HAS_OWNED {
            return shared;
        }
        shared.wrapping_add(T::shadow_digest(&self.shadow, self.lens(Part::Owned, viewer, 0)))
    }

    /// Appends all that `viewer` sees.
    pub fn snapshot(&mut self, viewer: PlayerId, format: Format, body: &mut Vec<u8>) {
        match format.tree() {
            // An object with the viewer's own inside it can't be put together from two parts.
            Some(format) if T::HAS_OWNED => {
                let lens = self.lens(Part::All, viewer, 0);
                T::tree_full(&self.shadow, lens, TreeWriter::new(format, body));
            }
            Some(_) => body.extend_from_slice(&self.shared(format, None).bytes),
            None => {
                body.extend_from_slice(&self.shared(format, None).bytes);
                if T::HAS_OWNED {
                    self.own_packed(viewer, 0, body);
                }
            }
        }
    }

    fn lens(&self, part: Part, viewer: PlayerId, since: u64) -> Lens {
        Lens::new(part, viewer, since, self.version)
    }

    fn own_packed(&self, viewer: PlayerId, since: u64, body: &mut Vec<u8>) -> bool {
        let start = body.len();
        let any = T::write_patch(&self.shadow, self.lens(Part::Owned, viewer, since), body);
        if !any {
            body.truncate(start);
        }
        any
    }

    fn shared(&mut self, format: Format, since: Option<u64>) -> &Shared {
        let known = self.shared[..self.used]
            .iter()
            .position(|part| part.format == Some(format) && part.since == since);
        let place = known.unwrap_or_else(|| self.encode_shared(format, since));
        &self.shared[place]
    }

    fn encode_shared(&mut self, format: Format, since: Option<u64>) -> usize {
        let place = self.used;
        if place == self.shared.len() {
            self.shared.push(Shared::default());
        }
        let part = &mut self.shared[place];
        part.format = Some(format);
        part.since = since;
        part.bytes.clear();
        let lens = Lens::new(Part::Shared, PlayerId(0), since.unwrap_or(0), self.version);
        (part.any, part.ops) = match (format.tree(), since) {
            (None, None) => {
                T::write_full(&self.shadow, lens, &mut part.bytes);
                (true, 0)
            }
            // A root's patch is written even where it says that nothing changed: the owner's part follows it.
            (None, Some(_)) => (T::write_patch(&self.shadow, lens, &mut part.bytes), 0),
            (Some(format), None) => {
                T::tree_full(&self.shadow, lens, TreeWriter::new(format, &mut part.bytes));
                (true, 0)
            }
            (Some(format), Some(_)) => {
                let mut ops = Array::bare(format, &mut part.bytes, 0);
                T::tree_patch(&self.shadow, lens, &mut Ops::new(&mut ops));
                (ops.count() > 0, ops.count())
            }
        };
        self.used += 1;
        place
    }
}
