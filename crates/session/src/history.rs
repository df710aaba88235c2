//! Translates the version of a copy, as its client counts, to the version of the room.

use std::collections::VecDeque;

/// The number of versions back to which a copy is always known, whatever a room does meanwhile that
/// its player does not see: then, too, the client that comes back gets a patch, and not a snapshot.
pub const VERSIONS_KNOWN: usize = 256;

/// Consecutive syncs that each raised both versions by one.
#[derive(Clone, Copy, Debug)]
struct Run {
    wire: u64,
    room: u64,
    syncs: u64,
}

/// The first sync of a room at each version on the wire, with the version of the room. Those of the
/// last [`VERSIONS_KNOWN`] versions are known, and all those of a room that syncs only at its rate.
#[derive(Debug, Default)]
pub struct SyncHistory {
    runs: VecDeque<Run>,
}

impl SyncHistory {
    /// The room was synced: its version is `room`, and patches sent now lead to `wire`, for members
    /// that are not beyond it already. Neither number goes back.
    pub fn synced(&mut self, wire: u64, room: u64) {
        if let Some(run) = self.runs.back_mut() {
            if run.wire + run.syncs > wire {
                return; // Not the first of this version.
            }
            if (run.wire + run.syncs, run.room + run.syncs) == (wire, room) {
                run.syncs += 1;
                return;
            }
        }
        if self.runs.len() == VERSIONS_KNOWN {
            self.runs.pop_front();
        }
        self.runs.push_back(Run { wire, room, syncs: 1 });
    }

    /// Has the effect of this many calls of [`synced`](Self::synced), each with both versions one
    /// higher.
    pub fn synced_in_a_row(&mut self, wire: u64, room: u64, syncs: u64) {
        let Some(more) = syncs.checked_sub(1) else { return };
        self.synced(wire, room);
        // Neither version was there before, so this is the last of the run.
        if let Some(run) = self.runs.back_mut() {
            run.syncs += more;
        }
    }

    /// The version of the room at the first sync of this version on the wire.
    #[must_use]
    pub fn first(&self, wire: u64) -> Option<u64> {
        let at = self.runs.partition_point(|run| run.wire + run.syncs <= wire);
        let run = self.runs.get(at)?;
        (run.wire <= wire).then(|| run.room + (wire - run.wire))
    }
}

/// The versions that one member was sent, where they do not follow from the syncs of its room.
#[derive(Debug, Default)]
pub struct SentHistory {
    sent: Option<Box<Sent>>,
}

/// Versions on the wire, and of the room, oldest first.
#[derive(Debug, Default)]
struct Sent {
    versions: VecDeque<(u64, u64)>,
    /// Older ones are forgotten.
    is_cut: bool,
}

impl SentHistory {
    /// A history that begins with the version `wire`, which equals the room's version `room`.
    /// Nothing before that is known.
    #[must_use]
    pub fn beginning(wire: u64, room: u64, syncs: &SyncHistory) -> Self {
        if syncs.first(wire) == Some(room) {
            return Self::default();
        }
        let sent = Sent { versions: [(wire, room)].into(), is_cut: true };
        Self { sent: Some(Box::new(sent)) }
    }

    /// The member was sent what leads to the version `wire`, from the room's version `room`.
    #[inline]
    pub fn sent(&mut self, wire: u64, room: u64, syncs: &SyncHistory) {
        if syncs.first(wire) != Some(room) {
            self.keep(wire, room);
        }
    }

    #[cold]
    fn keep(&mut self, wire: u64, room: u64) {
        let Sent { versions, is_cut } = &mut **self.sent.get_or_insert_default();
        if versions.len() == VERSIONS_KNOWN {
            versions.pop_front();
            *is_cut = true;
        }
        versions.push_back((wire, room));
    }

    /// The client has come back with the version `wire`, and will never have those after it: their
    /// numbers may be given again.
    pub fn forget_after(&mut self, wire: u64) {
        if let Some(Sent { versions, .. }) = self.sent.as_deref_mut() {
            versions.truncate(versions.partition_point(|&(sent, _)| sent <= wire));
        }
    }

    /// The version of the room that a copy with this version equals. `None` if it is forgotten: the
    /// copy needs a snapshot.
    #[must_use]
    pub fn room_version(&self, wire: u64, syncs: &SyncHistory) -> Option<u64> {
        let Some(Sent { versions, is_cut }) = self.sent.as_deref() else {
            return syncs.first(wire);
        };
        match versions.binary_search_by_key(&wire, |&(wire, _)| wire) {
            Ok(at) => Some(versions[at].1),
            // Before the oldest that is remembered, there may have been others.
            Err(0) if *is_cut => None,
            Err(_) => syncs.first(wire),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SentHistory, SyncHistory, VERSIONS_KNOWN};

    #[test]
    fn a_room_that_syncs_at_its_rate_is_one_run() {
        let mut syncs = SyncHistory::default();
        for number in 0..100_000 {
            syncs.synced(2 + number, 5 + number);
        }
        assert_eq!(syncs.runs.len(), 1);
        assert_eq!((syncs.first(1), syncs.first(2)), (None, Some(5)));
        assert_eq!((syncs.first(100_001), syncs.first(100_002)), (Some(100_004), None));
    }

    /// Otherwise it would show that there were syncs of which the player saw nothing.
    #[test]
    fn how_far_back_a_copy_is_known_does_not_depend_on_syncs_that_its_player_does_not_see() {
        for unseen in [0, 1, 5] {
            let (mut syncs, mut history) = (SyncHistory::default(), SentHistory::default());
            let mut room = 0;
            for wire in 1..=1_000 {
                for sync in 0..=unseen {
                    room += 1;
                    syncs.synced(wire, room);
                    if sync == unseen {
                        history.sent(wire, room, &syncs);
                    }
                }
            }
            let known = VERSIONS_KNOWN as u64;
            for back in 0..known {
                let expected = room - back * (unseen + 1);
                let found = history.room_version(1_000 - back, &syncs);
                assert_eq!(found, Some(expected), "{unseen} unseen, {back} versions back");
            }
            let found = history.room_version(1_000 - known, &syncs);
            assert_eq!(found.is_some(), unseen == 0, "{unseen} unseen");
        }
    }

    proptest! {
        /// A member is sent patches as a room sends them; any that is remembered is remembered
        /// right.
        #[test]
        fn a_version_is_that_of_the_room_when_it_was_sent(
            steps in proptest::collection::vec(
                (0_u64..3, any::<bool>(), any::<bool>(), 0..50_u8),
                1..1200,
            ),
        ) {
            let (mut syncs, mut history) = (SyncHistory::default(), SentHistory::default());
            let (mut clock, mut room, mut last) = (1, 1, 0);
            let (mut sent, mut began) = (Vec::new(), 0);
            for (passed, is_synced, is_changed, begins) in steps {
                if let Some(&(wire, of)) = sent.last().filter(|_| begins == 0) {
                    syncs = SyncHistory::default();
                    syncs.synced(clock, room);
                    history = SentHistory::beginning(wire, of, &syncs);
                    began = sent.len() - 1;
                }
                clock += passed;
                if is_synced {
                    room += 1;
                    syncs.synced(clock, room);
                }
                if is_changed {
                    last = clock.max(last + 1);
                    history.sent(last, room, &syncs);
                    sent.push((last, room));
                }
            }
            let mut known = 0;
            for &(wire, room) in &sent {
                let found = history.room_version(wire, &syncs);
                prop_assert!(found.is_none_or(|found| found == room), "{}: {:?}", wire, found);
                known += usize::from(found.is_some());
            }
            prop_assert!(known >= (sent.len() - began).min(VERSIONS_KNOWN));
        }
    }
}
