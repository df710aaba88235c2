//! The server's side: the shadow, and the bodies made from it.

use playfield_wire::reader::Reader;
use playfield_wire::tree::{Array, Place, TreeDigest, TreeWriter};
use playfield_wire::{DecodeError, Format, TreeFormat};

use crate::lens::{Lens, STAMP_MAX, Step, Tracking};
use crate::ops::Ops;
use crate::profile::{Beside, Point};
use crate::slots::{self, Again, New};
use crate::state::check_root;
use crate::{Part, PlayerId, State};

/// Keeps the shadow of one state, and writes patches and snapshots from it.
///
/// A body has a part that all players share, encoded once for each version that players are at, and
/// a part for one player.
pub struct Tracker<T: State> {
    shadow: T::Shadow,
    version: u64,
    /// The shadow counts versions from this one, which is its 0.
    bound_at: u64,
    /// The most versions that it can count.
    versions_max: u64,
    tracking: Tracking,
    shared: Vec<Shared>,
    /// The number of parts in `shared` that belong to the current version. The memory of the others
    /// is reused.
    used: usize,
    /// The digests of what everyone sees, computed since the last sync.
    digests: Vec<(Format, u64)>,
}

/// A shared part, kept until the next sync.
#[derive(Default)]
struct Shared {
    format: Option<Format>,
    /// `None`: of a snapshot.
    since: Option<u64>,
    bytes: Vec<u8>,
    any: bool,
    /// The number of operations, in a tree's patch.
    ops: usize,
}

impl<T: State> Tracker<T> {
    /// Starts with the present state, at version 1.
    pub fn new(state: &mut T, tracking: Tracking) -> Self {
        const { check_root::<T>() }
        Self::of(state.bind(New(1)), tracking)
    }

    fn of(shadow: T::Shadow, tracking: Tracking) -> Self {
        Self {
            shadow,
            version: 1,
            bound_at: 0,
            versions_max: STAMP_MAX,
            tracking,
            shared: Vec::new(),
            used: 0,
            digests: Vec::new(),
        }
    }

    /// Starts again with a state that was frozen at this version, right after a sync. `slots` is
    /// what [`put_slots`](Self::put_slots) appended then: a copy of that version gets patches, and
    /// one of an earlier version a snapshot. Without them, or if players see other fields in this
    /// build, every copy gets a snapshot, and the version is the next one.
    ///
    /// # Errors
    /// If these are not the slots of this state.
    pub fn thaw(
        state: &mut T,
        tracking: Tracking,
        version: u64,
        slots: Option<&[u8]>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(slots.unwrap_or_default());
        let is_known = match slots {
            Some(_) => reader.take(8)? == slots::fingerprint_of::<T>().to_le_bytes(),
            None => false,
        };
        if !is_known {
            let version = version.saturating_add(1);
            return Ok(Self { version, bound_at: version - 1, ..Self::new(state, tracking) });
        }
        if version == 0 {
            return Err(DecodeError::new(0, "versions count from 1"));
        }
        let again = Again::new(reader);
        let shadow = state.bind(&again);
        again.finish()?;
        Ok(Self { version, bound_at: version - 1, ..Self::of(shadow, tracking) })
    }

    /// Appends what must be known beside a state to [go on](Self::thaw) in another process: which
    /// slots stand for which keys, and who sees what where that depends on what was seen before.
    /// The state must be as it was at the last sync.
    pub fn put_slots(&self, out: &mut Vec<u8>) {
        out.extend(slots::fingerprint_of::<T>().to_le_bytes());
        T::put_slots(&self.shadow, out);
    }

    /// The version of the last sync.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Compares the state with the shadow. Differences get the next version.
    pub fn sync(&mut self, state: &mut T) {
        self.version += 1;
        self.used = 0;
        self.digests.clear();
        if self.version - self.bound_at > self.versions_max {
            // After two years at 60 syncs a second. Older copies need a snapshot.
            self.bound_at = self.version - 1;
            self.shadow = state.bind(New(1));
            return;
        }
        let now = self.version - self.bound_at;
        let step = Step::new(now, self.tracking, Point::root());
        step.here();
        state.diff(&mut self.shadow, step);
        step.beside(Beside::Sync);
    }

    /// Does the same as this many [syncs](Self::sync), if the state is as it was at the last one.
    pub fn pass(&mut self, syncs: u64) {
        self.version += syncs;
        self.used = 0;
        self.digests.clear();
    }

    /// Returns whether a patch can begin at this version. A copy at any other version needs a
    /// snapshot.
    pub fn reaches(&self, since: u64) -> bool {
        (self.bound_at + 1..=self.version).contains(&since)
    }

    /// Appends the body that brings `viewer`'s copy from version `since`, which must be [in
    /// reach](Self::reaches), to the current version. Returns whether there is anything to send; if
    /// not, nothing is appended.
    ///
    /// # Panics
    /// If `since` is out of reach: the patch would not fit the copy.
    pub fn patch(
        &mut self,
        viewer: PlayerId,
        since: u64,
        format: Format,
        body: &mut Vec<u8>,
    ) -> bool {
        assert!(
            self.reaches(since),
            "no patch leads from version {since} to {}: send a snapshot",
            self.version
        );
        let since = since - self.bound_at;
        let stamps = T::stamps(&self.shadow);
        let own = T::HAS_OWNED && stamps.after(self.lens(Part::Owned, viewer, since));
        if !own && stamps.shared() <= since {
            return false;
        }
        self.write(viewer, Some(since), own, format, body)
    }

    /// Appends a snapshot of all that `viewer` sees.
    pub fn snapshot(&mut self, viewer: PlayerId, format: Format, body: &mut Vec<u8>) {
        self.write(viewer, None, T::HAS_OWNED, format, body);
    }

    /// Appends what everyone sees and, if there may be any, what only the viewer sees.
    fn write(
        &mut self,
        viewer: PlayerId,
        since: Option<u64>,
        own: bool,
        format: Format,
        body: &mut Vec<u8>,
    ) -> bool {
        let (start, point) = (body.len(), Point::root());
        let shared = self.shared(format, since, point);
        point.beside(Beside::Copies);
        let any = match format.tree() {
            None => {
                let any = shared.any;
                body.extend_from_slice(&shared.bytes);
                let any_own = own && self.own_packed(viewer, since, point, body);
                any || any_own
            }
            Some(format) => {
                let mut ops = TreeWriter::new(format, body).array(shared.ops);
                ops.append(&shared.bytes, shared.ops);
                if own {
                    let lens = self.lens(Part::Owned, viewer, since.unwrap_or(0));
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
        point.beside(Beside::Player);
        any
    }

    /// Returns the number of further entries that `viewer` would have seen at the last sync, if no
    /// view had a cap (`nearest`).
    pub fn left_out(&self, viewer: PlayerId) -> u64 {
        if T::PLACED { T::left_out(&self.shadow, viewer) } else { 0 }
    }

    /// Returns whether the state has views by place, so that [`left_out`](Self::left_out) may be
    /// above 0.
    pub fn may_leave_out(&self) -> bool {
        T::PLACED
    }

    /// The digest that `viewer`'s copy has if it is right: in `packed` see
    /// [`Mirror::digest`](crate::Mirror::digest), in a format of trees
    /// [`JsonMirror::digest`](crate::JsonMirror::digest).
    pub fn digest(&mut self, viewer: PlayerId, format: Format) -> u64 {
        let known = self.digests.iter().find(|(of, _)| *of == format);
        let shared = known.map(|(_, digest)| *digest).unwrap_or_else(|| {
            let digest = self.part_digest(Part::Shared, viewer, format);
            self.digests.push((format, digest));
            digest
        });
        if !T::HAS_OWNED {
            return shared;
        }
        let own = self.part_digest(Part::Owned, viewer, format);
        match format.tree() {
            None => shared.wrapping_add(own),
            Some(_) => u64::from((shared as u32).wrapping_add(own as u32)),
        }
    }

    fn part_digest(&self, part: Part, viewer: PlayerId, format: Format) -> u64 {
        let lens = self.lens(part, viewer, 0);
        match format.tree() {
            None => T::shadow_digest(&self.shadow, lens),
            Some(format) => self.tree_digest(lens, format).into(),
        }
    }

    fn tree_digest(&self, lens: Lens, format: TreeFormat) -> u32 {
        let mut digest = TreeDigest::new(format);
        if lens.part == Part::Owned {
            T::tree_patch(&self.shadow, lens, &mut Ops::counted(&mut digest));
        } else {
            T::tree_full(&self.shadow, lens, digest.at(Place::ROOT));
        }
        digest.sum()
    }

    fn lens(&self, part: Part, viewer: PlayerId, since: u64) -> Lens {
        Lens::new(part, viewer, since, self.version - self.bound_at)
    }

    fn own_packed(
        &self,
        viewer: PlayerId,
        since: Option<u64>,
        point: Point,
        body: &mut Vec<u8>,
    ) -> bool {
        let start = body.len();
        let lens = Lens { point, ..self.lens(Part::Owned, viewer, since.unwrap_or(0)) };
        lens.here();
        let any = T::write_patch(&self.shadow, lens, body);
        if !any {
            body.truncate(start);
        }
        any
    }

    fn shared(&mut self, format: Format, since: Option<u64>, point: Point) -> &Shared {
        let known = self.shared[..self.used]
            .iter()
            .position(|part| part.format == Some(format) && part.since == since);
        let place = known.unwrap_or_else(|| self.encode_shared(format, since, point));
        &self.shared[place]
    }

    fn encode_shared(&mut self, format: Format, since: Option<u64>, point: Point) -> usize {
        let place = self.used;
        if place == self.shared.len() {
            self.shared.push(Shared::default());
        }
        let part = &mut self.shared[place];
        part.format = Some(format);
        part.since = since;
        part.bytes.clear();
        let now = self.version - self.bound_at;
        let lens = Lens::new(Part::Shared, PlayerId(0), since.unwrap_or(0), now);
        let lens = Lens { point, ..lens };
        lens.here();
        (part.any, part.ops) = match (format.tree(), since) {
            (None, None) => {
                T::write_full(&self.shadow, lens, &mut part.bytes);
                (true, 0)
            }
            // A root's patch is written even if nothing changed: the owner's part follows it.
            (None, Some(_)) => (T::write_patch(&self.shadow, lens, &mut part.bytes), 0),
            (Some(format), since) => {
                let mut array = Array::bare(format, &mut part.bytes, 0);
                let mut ops = Ops::new(&mut array);
                match since {
                    None => ops.set(|out| T::tree_full(&self.shadow, lens, out)),
                    Some(_) => T::tree_patch(&self.shadow, lens, &mut ops),
                }
                (array.count() > 0, array.count())
            }
        };
        self.used += 1;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Map, Mirror};

    #[test]
    fn a_shadow_that_runs_out_of_versions_starts_again() {
        let mut state: Map<u32, u8> = (0..3).map(|key| (key, 0)).collect();
        let mut tracker = Tracker::new(&mut state, Tracking::On);
        tracker.versions_max = 3;
        let mut copy = Mirror::<Map<u32, u8>>::new();
        let (mut at, mut snapshots) = (0, 0);
        for round in 0..20_u8 {
            state.insert(u32::from(round) % 5, round);
            state.remove(&(u32::from(round) % 3));
            tracker.sync(&mut state);
            let mut body = Vec::new();
            assert_eq!(tracker.version(), u64::from(round) + 2);
            if tracker.reaches(at) {
                if tracker.patch(PlayerId(1), at, Format::Packed, &mut body) {
                    copy.patch(&body).unwrap();
                }
            } else {
                snapshots += 1;
                tracker.snapshot(PlayerId(1), Format::Packed, &mut body);
                copy.snapshot(&body).unwrap();
            }
            at = tracker.version();
            assert_eq!(*copy.state(), state);
            assert_eq!(copy.digest(), tracker.digest(PlayerId(1), Format::Packed));
        }
        assert_eq!(snapshots, 1 + 20 / 3);
    }

    #[test]
    #[should_panic(expected = "no patch leads from version 3 to 2")]
    fn a_patch_from_a_future_version_is_rejected() {
        let mut state = Map::<u32, u8>::new();
        let mut tracker = Tracker::new(&mut state, Tracking::On);
        tracker.sync(&mut state);
        tracker.patch(PlayerId(1), 3, Format::Packed, &mut Vec::new());
    }
}
