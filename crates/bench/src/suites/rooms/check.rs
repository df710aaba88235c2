//! Compares every client's copy with the model at every message, in a few microseconds each.
//!
//! A patch consists of a part shared by all players and a part for one player. For the first client
//! that moves from one version to another, the shared part is decoded into a typed copy and
//! compared with the model. For the other clients, the same bytes from the same version lead to the
//! same copy, so their bytes are compared with the verified ones. The player's own part is decoded
//! for everyone, and the hand is compared with the model's. A patch that fits neither case, such as
//! one that covers several versions, is decoded into a copy of its base version and compared as a
//! whole. That client keeps the copy until it is in step with others again.

use std::collections::{BTreeMap, VecDeque};

use playfield_state::__rt::{ChangeWatch, Read as _};
use playfield_state::{Format, Part, PlayerId, Tracker, Tracking};
use playfield_wire::reader::Reader;

use crate::workloads::Workload;
use crate::workloads::colyseus::{Colyseus, Model, Table};

/// The number of shared parts that are kept. Clients of one room are rarely more than one version
/// apart.
const PARTS_MAX: usize = 4;

/// The number of rounds that clients may be apart before a model begins again.
const ROUNDS_KEPT: usize = 16;

/// The number of versions whose rounds are kept: how far a client may lag behind and still be
/// checked.
const VERSIONS_MAX: usize = 1_024;

/// The most rounds that one patch may advance. A larger step is an error, rather than hours of
/// computation.
const ROUNDS_MAX: i32 = 10_000;

/// The verified facts about one room.
pub(super) struct RoomCheck {
    models: Models,
    /// The round of each version.
    rounds: BTreeMap<u64, i32>,
    /// A copy at the newest version.
    lead: Option<Lead>,
    /// Verified shared parts, newest last.
    parts: VecDeque<SharedPart>,
}

struct Lead {
    version: u64,
    copy: Table,
}

struct SharedPart {
    base: u64,
    version: u64,
    bytes: Vec<u8>,
}

/// One client's copy.
pub(super) struct ClientCheck {
    viewer: PlayerId,
    version: u64,
    copy: Copy,
}

enum Copy {
    /// The whole copy, until everyone has joined.
    Joining(Box<Table>),
    /// Only the values that this viewer alone sees; the rest is shared by the room.
    Seated(Box<Table>),
    /// The whole copy, in two parts: it missed patches that others got.
    Apart { shared: Box<Table>, own: Box<Table> },
    /// A message failed the check, so nothing based on it can pass.
    Broken,
}

/// The result of checking a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Decoded. Not everyone has joined, so there is nothing to compare yet.
    Joining,
    /// Decoded, and the copy was compared.
    Compared,
}

impl RoomCheck {
    pub(super) fn new(workload: &Colyseus) -> Self {
        Self {
            models: Models::new(workload),
            rounds: BTreeMap::new(),
            lead: None,
            parts: VecDeque::with_capacity(PARTS_MAX),
        }
    }

    /// Says whether this patch was checked for another client, or is the first from the newest
    /// version.
    fn is_in_step(&self, base: u64, version: u64, body: &[u8]) -> bool {
        let is_known = |part: &SharedPart| {
            part.base == base && part.version == version && body.starts_with(&part.bytes)
        };
        self.lead.as_ref().is_none_or(|lead| lead.version == base)
            || self.parts.iter().any(is_known)
    }

    /// Checks the shared part at the front of a body and returns its length.
    fn shared(&mut self, base: u64, version: u64, body: &[u8]) -> Result<usize, String> {
        let known =
            self.parts.iter().rev().find(|part| part.base == base && part.version == version);
        if let Some(part) = known
            && body.starts_with(&part.bytes)
        {
            return Ok(part.bytes.len());
        }
        let mut copy = self.copy_at(base)?;
        let mut reader = Reader::new(body);
        copy.read_patch(&mut reader, Part::Shared, &mut ChangeWatch::idle())
            .map_err(|error| error.to_string())?;
        let length = reader.offset();
        self.compare(&copy, version)?;
        if self.lead.as_ref().is_none_or(|lead| lead.version < version) {
            self.lead = Some(Lead { version, copy });
        }
        let mut part = match self.parts.len() {
            PARTS_MAX.. => self.parts.pop_front(),
            _ => None,
        }
        .unwrap_or_else(|| SharedPart { base, version, bytes: Vec::new() });
        (part.base, part.version) = (base, version);
        part.bytes.clear();
        part.bytes.extend_from_slice(&body[..length]);
        self.parts.push_back(part);
        Ok(length)
    }

    /// A copy of the shared values at a version that was reached before.
    fn copy_at(&mut self, version: u64) -> Result<Table, String> {
        if let Some(lead) = self.lead.take_if(|lead| lead.version == version) {
            return Ok(lead.copy);
        }
        let round = self.round(version)?;
        let workload = &self.models.workload;
        let mut state = workload.state();
        (0..round.unsigned_abs()).for_each(|round| workload.step(&mut state, round.into()));
        // The copy is read from a snapshot, as a client's copy is. The snapshot assigns the numbers
        // by which a patch names each player. Numbers follow the order of players, who joined in
        // that order, and none has left.
        let mut snapshot = Vec::new();
        Tracker::new(&mut state, Tracking::On).snapshot(PlayerId(0), Format::Packed, &mut snapshot);
        Table::read_full(&mut Reader::new(&snapshot), Part::Shared)
            .map_err(|error| error.to_string())
    }

    /// Compares a copy's shared part with the model, and records the round of its version.
    fn compare(&mut self, copy: &Table, version: u64) -> Result<(), String> {
        let round = copy.round();
        let known = self.rounds.get(&version);
        if known.is_some_and(|known| *known != round) {
            return Err(format!(
                "version {version} is round {known:?} for others, but {round} here"
            ));
        }
        if !self.models.matches(round, |workload, model| workload.matches_shared(copy, model)) {
            return Err(format!("the shared state differs at version {version}, round {round}"));
        }
        self.rounds.insert(version, round);
        if self.rounds.len() > VERSIONS_MAX {
            self.rounds.pop_first();
        }
        Ok(())
    }

    fn round(&self, version: u64) -> Result<i32, String> {
        let oldest = self.rounds.first_key_value().map_or(0, |(version, _)| *version);
        self.rounds
            .get(&version)
            .copied()
            .ok_or_else(|| format!("version {version} is unknown; the oldest known is {oldest}"))
    }

    fn compare_own(&mut self, copy: &Table, version: u64, viewer: PlayerId) -> Result<(), String> {
        let round = self.round(version)?;
        if self.models.matches(round, |workload, model| workload.matches_own(copy, model, viewer)) {
            return Ok(());
        }
        Err(format!("player {viewer}'s hand differs at version {version}, round {round}"))
    }
}

impl ClientCheck {
    /// A player who has just joined.
    pub(super) fn new(viewer: PlayerId) -> Self {
        Self { viewer, version: 0, copy: Copy::Joining(Box::default()) }
    }

    /// Returns whether everyone has joined and this copy was correct when last compared.
    pub(super) fn is_seated(&self) -> bool {
        matches!(self.copy, Copy::Seated(_) | Copy::Apart { .. })
    }

    /// Handles the snapshot sent on joining.
    pub(super) fn snapshot(
        &mut self,
        room: &mut RoomCheck,
        version: u64,
        body: &[u8],
    ) -> Result<Taken, String> {
        let mut reader = Reader::new(body);
        let mut copy =
            Table::read_full(&mut reader, Part::Shared).map_err(|error| error.to_string())?;
        read_own(&mut copy, reader)?;
        self.version = version;
        self.settle(room, Box::new(copy))
    }

    /// Handles a patch.
    pub(super) fn patch(
        &mut self,
        room: &mut RoomCheck,
        base: u64,
        version: u64,
        body: &[u8],
    ) -> Result<Taken, String> {
        let copy = std::mem::replace(&mut self.copy, Copy::Broken);
        if base != self.version || version <= base {
            return Err(format!(
                "a patch from {base} to {version} arrived for a copy at version {}",
                self.version
            ));
        }
        self.version = version;
        match copy {
            Copy::Joining(mut copy) => {
                let mut reader = Reader::new(body);
                copy.read_patch(&mut reader, Part::Shared, &mut ChangeWatch::idle())
                    .map_err(|error| error.to_string())?;
                read_own(&mut copy, reader)?;
                self.settle(room, copy)
            }
            Copy::Seated(mut own) if room.is_in_step(base, version, body) => {
                let shared = room.shared(base, version, body)?;
                read_own(&mut own, Reader::new(&body[shared..]))?;
                room.compare_own(&own, version, self.viewer)?;
                self.copy = Copy::Seated(own);
                Ok(Taken::Compared)
            }
            Copy::Seated(own) => {
                let shared = Box::new(room.copy_at(base)?);
                self.patch_apart(room, shared, own, body)
            }
            Copy::Apart { shared, own } => self.patch_apart(room, shared, own, body),
            Copy::Broken => Err("an earlier message to this client was wrong".into()),
        }
    }

    /// Applies a patch to a copy of its own. It is in step with others again once they have this
    /// version.
    fn patch_apart(
        &mut self,
        room: &mut RoomCheck,
        mut shared: Box<Table>,
        mut own: Box<Table>,
        body: &[u8],
    ) -> Result<Taken, String> {
        let mut reader = Reader::new(body);
        shared
            .read_patch(&mut reader, Part::Shared, &mut ChangeWatch::idle())
            .map_err(|error| error.to_string())?;
        read_own(&mut own, reader)?;
        room.compare(&shared, self.version)?;
        room.compare_own(&own, self.version, self.viewer)?;
        let has_caught_up = room.lead.as_ref().is_some_and(|lead| lead.version == self.version);
        self.copy = if has_caught_up { Copy::Seated(own) } else { Copy::Apart { shared, own } };
        Ok(Taken::Compared)
    }

    /// Compares a whole copy once everyone has joined, and from then on keeps only the viewer's own
    /// values.
    fn settle(&mut self, room: &mut RoomCheck, mut copy: Box<Table>) -> Result<Taken, String> {
        if copy.players() < room.models.workload.players().len() {
            self.copy = Copy::Joining(copy);
            return Ok(Taken::Joining);
        }
        room.compare(&copy, self.version)?;
        room.compare_own(&copy, self.version, self.viewer)?;
        copy.keep_own();
        self.copy = Copy::Seated(copy);
        Ok(Taken::Compared)
    }
}

/// The part for one player is present if bytes remain.
fn read_own(copy: &mut Table, mut reader: Reader<'_>) -> Result<(), String> {
    if !reader.is_empty() {
        copy.read_patch(&mut reader, Part::Owned, &mut ChangeWatch::idle())
            .map_err(|error| error.to_string())?;
    }
    reader.finish().map_err(|error| error.to_string())
}

/// The model at the rounds around the newest one.
struct Models {
    workload: Colyseus,
    /// Round `r` is at index `r` modulo the length. Each model steps on its own, so none is ever
    /// copied.
    ring: [(i32, Model); ROUNDS_KEPT],
}

impl Models {
    fn new(workload: &Colyseus) -> Self {
        Self { workload: workload.clone(), ring: std::array::from_fn(|_| (0, workload.model())) }
    }

    /// Returns whether `holds` is true for the model at a round.
    fn matches(&mut self, round: i32, holds: impl FnOnce(&Colyseus, &Model) -> bool) -> bool {
        let Ok(number) = usize::try_from(round) else { return false };
        let (at, model) = &mut self.ring[number % ROUNDS_KEPT];
        if round - *at > ROUNDS_MAX {
            return false;
        }
        if *at > round {
            (*at, *model) = (0, self.workload.model());
        }
        while *at < round {
            self.workload.step_model(model, at.unsigned_abs().into());
            *at += 1;
        }
        holds(&self.workload, model)
    }
}

#[cfg(test)]
mod tests {
    use playfield_state::{Format, PlayerId, Tracker, Tracking};

    use super::{ClientCheck, RoomCheck, Taken};
    use crate::workloads::Workload;
    use crate::workloads::colyseus::{Colyseus, Table};

    /// A room of three players with one client each, all seated.
    struct Scene {
        workload: Colyseus,
        table: Table,
        tracker: Tracker<Table>,
        room: RoomCheck,
        clients: Vec<ClientCheck>,
    }

    impl Scene {
        fn new() -> Self {
            let workload = Colyseus::new(3, 1, 10, true, 0.4);
            let mut table = workload.state();
            let mut tracker = Tracker::new(&mut table, Tracking::On);
            let mut room = RoomCheck::new(&workload);
            let clients = workload
                .players()
                .into_iter()
                .map(|id| {
                    let mut client = ClientCheck::new(id);
                    let mut body = Vec::new();
                    tracker.snapshot(id, Format::Packed, &mut body);
                    assert_eq!(client.snapshot(&mut room, 1, &body), Ok(Taken::Compared));
                    assert!(client.is_seated());
                    client
                })
                .collect();
            Self { workload, table, tracker, room, clients }
        }

        fn sync(&mut self) {
            self.workload.step(&mut self.table, self.tracker.version() - 1);
            self.tracker.sync(&mut self.table);
        }

        fn body(&mut self, client: usize) -> (u64, Vec<u8>) {
            let base = self.clients[client].version;
            let mut body = Vec::new();
            assert!(self.tracker.patch(
                PlayerId(client as u64 + 1),
                base,
                Format::Packed,
                &mut body
            ));
            (base, body)
        }

        fn take(&mut self, client: usize, base: u64, body: &[u8]) -> Result<Taken, String> {
            self.clients[client].patch(&mut self.room, base, self.tracker.version(), body)
        }
    }

    #[test]
    fn single_and_combined_patches_are_compared() {
        let mut scene = Scene::new();
        for turn in 0..40 {
            scene.sync();
            for client in 0..3 {
                // The third client receives only every third patch.
                if client == 2 && turn % 3 != 0 {
                    continue;
                }
                let (base, body) = scene.body(client);
                assert_eq!(scene.take(client, base, &body), Ok(Taken::Compared));
            }
        }
    }

    #[test]
    fn any_damaged_bit_is_noticed() {
        for client in [0, 1] {
            let length = {
                let mut scene = Scene::new();
                scene.sync();
                scene.body(client).1.len()
            };
            for bit in 0..length * 8 {
                let mut scene = Scene::new();
                scene.sync();
                for before in 0..client {
                    let (base, body) = scene.body(before);
                    assert_eq!(scene.take(before, base, &body), Ok(Taken::Compared));
                }
                let (base, mut body) = scene.body(client);
                body[bit / 8] ^= 1 << (bit % 8);
                assert!(scene.take(client, base, &body).is_err(), "client {client}, bit {bit}");
                scene.sync();
                let (base, body) = scene.body(client);
                assert!(
                    scene.take(client, base, &body).is_err(),
                    "a message based on it fails too"
                );
                let (base, body) = scene.body(2);
                assert_eq!(
                    scene.take(2, base, &body),
                    Ok(Taken::Compared),
                    "the other copies are correct"
                );
            }
        }
    }

    #[test]
    fn a_patch_from_another_version_is_rejected() {
        let mut scene = Scene::new();
        scene.sync();
        let (base, body) = scene.body(0);
        assert!(scene.take(0, base + 1, &body).is_err());
    }
}
