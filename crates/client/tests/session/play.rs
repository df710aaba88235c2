//! A client in a room with a real state, and its node.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use playfield_client::Mirror as _;
use playfield_client::session::{Event, OutOfStep, RoomCopy, Session, Update, UpdateKind};
use playfield_state::{List, Map, Mirror, PlayerId, State, Tracker, Tracking};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{DecodeError, Format, RoomNumber};

use crate::support::{Said, Talk, joined, kept, polled};

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) round: u32,
    pub(crate) seats: Map<PlayerId, Seat>,
    pub(crate) log: List<u32>,
}

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Seat {
    pub(crate) hp: i32,
    pub(crate) name: String,
}

pub(crate) const ME: PlayerId = PlayerId(4);

/// The node's room: its state, and the bodies to send.
pub(crate) struct Node {
    pub(crate) state: Table,
    pub(crate) tracker: Tracker<Table>,
}

impl Node {
    pub(crate) fn new() -> Self {
        let mut state = Table { round: 1, ..Table::default() };
        for player in 1..=3 {
            let seat = Seat { hp: 100, name: format!("player {player}") };
            state.seats.insert(PlayerId(player), seat);
        }
        state.log.extend([10, 20, 30]);
        let tracker = Tracker::new(&mut state, Tracking::On);
        Self { state, tracker }
    }

    pub(crate) fn version(&self) -> u64 {
        self.tracker.version()
    }

    /// Changes the state. Returns the patch's base and body.
    pub(crate) fn patch(&mut self) -> (u64, Vec<u8>) {
        let base = self.version();
        self.state.round += 300;
        self.state.seats.remove(&PlayerId(base));
        self.state.seats.insert(PlayerId(100 + base), Seat::default());
        self.state.log.push(7);
        self.tracker.sync(&mut self.state);
        let mut body = Vec::new();
        assert!(self.tracker.patch(ME, base, Format::Packed, &mut body));
        (base, body)
    }

    pub(crate) fn snapshot(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        self.tracker.snapshot(ME, Format::Packed, &mut body);
        body
    }

    /// The state that a copy must have now.
    pub(crate) fn expected(&mut self) -> String {
        let copy = Copy::new();
        let (kind, body) = (UpdateKind::Snapshot, &self.snapshot());
        copy.mirror.lock().unwrap().apply(kind, body, None).unwrap();
        copy.shown()
    }
}

/// A copy, and the client's events.
pub(crate) struct Copy {
    pub(crate) mirror: Arc<Mutex<Mirror<Table>>>,
    pub(crate) told: VecDeque<Event<'static>>,
    pub(crate) why: Vec<OutOfStep>,
}

impl Copy {
    pub(crate) fn new() -> Self {
        Self { mirror: Arc::default(), told: VecDeque::new(), why: Vec::new() }
    }

    /// Notes what has happened.
    pub(crate) fn polls(&mut self, client: &mut Session) {
        for event in polled(client) {
            match event {
                Event::OutOfStep { why, .. } => self.why.push(why),
                event => self.told.push_back(event),
            }
        }
    }

    pub(crate) fn shown(&self) -> String {
        format!("{:?}", self.mirror.lock().unwrap().state())
    }
}

/// The copy that the session keeps up to date.
struct Shared(Arc<Mutex<Mirror<Table>>>);

impl RoomCopy for Shared {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        self.0.lock().unwrap().apply(update.kind, update.body, None)
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.0.lock().unwrap().digest() == digest
    }
}

/// A client in room 1, whose copy equals the node's.
pub(crate) struct Play {
    pub(crate) talk: Talk,
    pub(crate) node: Node,
    pub(crate) copy: Copy,
}

impl Play {
    pub(crate) fn new() -> Self {
        let mut talk = Talk::kept(false);
        let request = talk.client.join("r").unwrap();
        talk.heard();
        talk.says(&joined(request, RoomNumber(1), 3));
        let copy = Copy::new();
        assert!(talk.client.set_copy(RoomNumber(1), Box::new(Shared(Arc::clone(&copy.mirror)))));
        let mut play = Self { talk, node: Node::new(), copy };
        play.repair();
        play
    }

    pub(crate) fn says(&mut self, message: &ServerMessage<'_>) {
        let bytes = self.talk.node.write(message);
        self.receives(&bytes);
    }

    pub(crate) fn receives(&mut self, bytes: &[u8]) {
        self.talk.client.received(bytes);
        self.copy.polls(&mut self.talk.client);
    }

    pub(crate) fn says_patch(&mut self, base: u64, version: u64, body: &[u8]) {
        self.says(&ServerMessage::Patch(server::Patch {
            room: RoomNumber(1),
            base,
            version,
            body: body.into(),
        }));
    }

    pub(crate) fn says_snapshot(&mut self, epoch: u64, version: u64, body: &[u8]) {
        self.says(&ServerMessage::Snapshot(server::Snapshot {
            room: RoomNumber(1),
            epoch,
            version,
            body: body.into(),
        }));
    }

    /// The node sends a snapshot, after which the copy is right again.
    pub(crate) fn repair(&mut self) {
        let (version, body) = (self.node.version(), self.node.snapshot());
        self.says_snapshot(3, version, &body);
        assert_eq!(self.copy.shown(), self.node.expected());
        let (base, patch) = self.node.patch();
        self.says_patch(base, base + 1, &patch);
        assert_eq!(self.copy.shown(), self.node.expected());
        assert_eq!((self.copy.why.pop(), self.talk.heard()), (None, vec![]));
    }

    /// The last message could not be read: the client connects again, and goes on. The node has
    /// handled `received` of its messages.
    pub(crate) fn resume(&mut self, what: &str, received: u64) {
        assert!(self.talk.client.is_away(), "{what}");
        let resume = self.talk.reconnects(false);
        let Said::Resume(_, _, rooms) = &resume else { panic!("{what}: {resume:?}") };
        self.says(&kept(b"t2", Some(Resumed { received, lost: vec![] })));
        self.talk.heard();
        if let [(1, 3, _)] = rooms[..] {
            let (version, body) = (self.node.version(), self.node.snapshot());
            self.says_snapshot(3, version, &body);
            assert_eq!(self.copy.shown(), self.node.expected(), "{what}");
        }
    }

    /// The last message was refused for this reason, and a snapshot was asked for. Sends it, and
    /// checks the copy.
    pub(crate) fn assert_refused(&mut self, what: &str, reason: fn(&OutOfStep) -> bool) {
        assert!(!self.talk.client.is_away(), "{what}");
        let why = std::mem::take(&mut self.copy.why);
        assert!(matches!(&why[..], [why] if reason(why)), "{what}: {why:?}");
        assert_eq!(self.talk.heard(), [Said::Other("Resync { room: 1 }".to_owned())], "{what}");
        // Patches before the snapshot are ignored.
        let before = self.copy.shown();
        let (base, patch) = self.node.patch();
        self.says_patch(base, base + 1, &patch);
        assert_eq!((self.copy.shown(), self.copy.why.len()), (before, 0), "{what}");
        self.repair();
    }

    /// Sends a patch of the right version with this body, which must be refused.
    pub(crate) fn refuses(&mut self, what: &str, body: &[u8]) {
        let version = self.node.version();
        self.says_patch(version, version + 1, body);
        self.assert_refused(what, |why| matches!(why, OutOfStep::Patch(_)));
    }
}
