//! Every client's copy, compared with the model at every message, in a few microseconds each.
//!
//! A patch is a part that all players share and a part for one player alone. The first client that
//! is taken from one version to another has the shared part decoded into a typed copy and compared
//! with the model. For the others the same bytes from the same version lead to the same copy, so
//! theirs are compared with the bytes that were found right. The own part is decoded for everyone,
//! and the hand compared with the model's. A patch that fits none of this, as one that makes up for
//! several, is decoded into a copy that the model says stood at its base, and compared whole.

use std::collections::{BTreeMap, VecDeque};

use playfield_state::__rt::Read as _;
use playfield_state::{Format, Part, PlayerId, Tracker, Tracking};
use playfield_wire::reader::Reader;

use crate::workloads::Workload;
use crate::workloads::colyseus::{Colyseus, Model, Table};

/// How many shared parts are remembered; clients of one room are rarely more than a version apart.
const PARTS_MAX: usize = 4;

/// How many versions' rounds are remembered: what a client may be behind, and still be checked.
const VERSIONS_MAX: usize = 1_024;

/// How many rounds one patch may advance: past it the round is a fault, and not a reason to compute
/// for hours.
const ROUNDS_MAX: i32 = 10_000;

/// What is known to be right of one room.
pub(super) struct RoomCheck {
    models: Models,
    /// The round that each version came to.
    rounds: BTreeMap<u64, i32>,
    /// A copy at the newest version.
    lead: Option<Lead>,
    /// Shared parts that were found right, the newest last.
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
    /// Whole, until everyone is there.
    Joining(Box<Table>),
    /// Only what the viewer alone sees; the rest is the room's.
    Seated(Box<Table>),
    /// A message did not check: nothing that builds upon it does.
    Broken,
}

/// What a message was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Decoded; not everyone is there, so there is nothing to compare yet.
    Joining,
    /// Decoded, and the copy compared.
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

    /// Checks the shared part at the front of a body, and gives its length.
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
        copy.read_patch(&mut reader, Part::Shared).map_err(|error| error.to_string())?;
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

    /// A copy of what everyone sees at a version that was reached before.
    fn copy_at(&mut self, version: u64) -> Result<Table, String> {
        if let Some(lead) = self.lead.take_if(|lead| lead.version == version) {
            return Ok(lead.copy);
        }
        let round = self.round(version)?;
        let workload = &self.models.workload;
        let mut state = workload.state();
        (0..round.unsigned_abs()).for_each(|round| workload.step(&mut state, round.into()));
        // By way of a snapshot, as a client comes by its copy: it says by which number a patch will
        // name each player. Numbers are given in the order of players, who came in that order, and
        // of whom none has left.
        let mut snapshot = Vec::new();
        Tracker::new(&mut state, Tracking::On).snapshot(PlayerId(0), Format::Packed, &mut snapshot);
        Table::read_full(&mut Reader::new(&snapshot), Part::Shared)
            .map_err(|error| error.to_string())
    }

    /// Holds a copy's shared part against the model, and notes which round its version came to.
    fn compare(&mut self, copy: &Table, version: u64) -> Result<(), String> {
        let round = copy.round();
        let known = self.rounds.get(&version);
        if known.is_some_and(|known| *known != round) {
            return Err(format!("version {version} is round {known:?} to others, {round} here"));
        }
        if !self.models.matches(round, |workload, model| workload.matches_shared(copy, model)) {
            return Err(format!("what everyone sees differs at version {version}, round {round}"));
        }
        self.rounds.insert(version, round);
        if self.rounds.len() > VERSIONS_MAX {
            self.rounds.pop_first();
        }
        Ok(())
    }

    fn round(&self, version: u64) -> Result<i32, String> {
        let oldest = self.rounds.first_key_value().map_or(0, |(version, _)| *version);
        self.rounds.get(&version).copied().ok_or_else(|| {
            format!("version {version} was not seen before; the oldest remembered is {oldest}")
        })
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
    /// A player who has just been let in.
    pub(super) fn new(viewer: PlayerId) -> Self {
        Self { viewer, version: 0, copy: Copy::Joining(Box::default()) }
    }

    /// Everyone is there, and this copy was right when last compared.
    pub(super) fn is_seated(&self) -> bool {
        matches!(self.copy, Copy::Seated(_))
    }

    /// Takes a snapshot, as comes upon joining.
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

    /// Takes a patch.
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
                "a patch from {base} to {version} came to a copy at version {}",
                self.version
            ));
        }
        self.version = version;
        match copy {
            Copy::Joining(mut copy) => {
                let mut reader = Reader::new(body);
                copy.read_patch(&mut reader, Part::Shared).map_err(|error| error.to_string())?;
                read_own(&mut copy, reader)?;
                self.settle(room, copy)
            }
            Copy::Seated(mut own) => {
                let shared = room.shared(base, version, body)?;
                read_own(&mut own, Reader::new(&body[shared..]))?;
                room.compare_own(&own, version, self.viewer)?;
                self.copy = Copy::Seated(own);
                Ok(Taken::Compared)
            }
            Copy::Broken => Err("an earlier message to this client was wrong".into()),
        }
    }

    /// Compares a whole copy once everyone is there, and from then on keeps only what is the
    /// viewer's own.
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

/// The part for one player alone is there if bytes are left.
fn read_own(copy: &mut Table, mut reader: Reader<'_>) -> Result<(), String> {
    if !reader.is_empty() {
        copy.read_patch(&mut reader, Part::Owned).map_err(|error| error.to_string())?;
    }
    reader.finish().map_err(|error| error.to_string())
}

/// The model at the rounds around the newest.
struct Models {
    workload: Colyseus,
    /// Round `r` stands in place `r` modulo their number, each stepping on its own: no model is
    /// ever copied.
    ring: [(i32, Model); 4],
}

impl Models {
    fn new(workload: &Colyseus) -> Self {
        Self { workload: workload.clone(), ring: std::array::from_fn(|_| (0, workload.model())) }
    }

    /// Whether something holds of the model at a round.
    fn matches(&mut self, round: i32, holds: impl FnOnce(&Colyseus, &Model) -> bool) -> bool {
        let Ok(number) = usize::try_from(round) else { return false };
        let (at, model) = &mut self.ring[number % 4];
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

    /// A room of three with a client each, all seated.
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
    fn patches_one_by_one_and_several_at_once_are_compared() {
        let mut scene = Scene::new();
        for turn in 0..40 {
            scene.sync();
            for client in 0..3 {
                // The third client is sent every third patch only.
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
                    "what builds upon it is not right either"
                );
                let (base, body) = scene.body(2);
                assert_eq!(
                    scene.take(2, base, &body),
                    Ok(Taken::Compared),
                    "the others' copies are"
                );
            }
        }
    }

    #[test]
    fn a_patch_from_another_version_is_refused() {
        let mut scene = Scene::new();
        scene.sync();
        let (base, body) = scene.body(0);
        assert!(scene.take(0, base + 1, &body).is_err());
    }
}
