//! Whatever the node sends in place of a patch, a copy is never another than the node's: the fault is told by its type, a snapshot is
//! asked for, and mends it.

mod support;

use std::fmt::Debug;

use playfield_client::core::{ClientError, Event, EventQueue, Handler, OutOfStep};
use playfield_state::{JsonMirror, List, Map, Mirror, PlayerId, State, Tracker, Tracking};
use playfield_wire::server::ServerMessage;
use playfield_wire::{DecodeError, Format, TreeFormat};

use support::{Said, Talk, joined, msgpack};

#[derive(State, Default, Debug, PartialEq)]
struct Table {
    round: u32,
    seats: Map<PlayerId, Seat>,
    log: List<u32>,
}

#[derive(State, Default, Debug, PartialEq)]
struct Seat {
    hp: i32,
    name: String,
}

/// The room by another schema.
mod other {
    use playfield_state::{List, State};

    #[derive(State, Default)]
    pub(crate) struct Table {
        pub(crate) name: String,
        pub(crate) log: List<String>,
        pub(crate) best: Option<f64>,
        pub(crate) marks: [u8; 3],
        pub(crate) more: u64,
    }
}

const ME: PlayerId = PlayerId(4);

/// A room at a node: its state, and bodies of it.
struct Node {
    state: Table,
    tracker: Tracker<Table>,
    format: Format,
}

impl Node {
    fn new(format: Format) -> Self {
        let mut state = Table { round: 1, ..Table::default() };
        for player in 1..=3 {
            let seat = Seat { hp: 100, name: format!("player {player}") };
            state.seats.insert(PlayerId(player), seat);
        }
        state.log.extend([10, 20, 30]);
        let tracker = Tracker::new(&mut state, Tracking::On);
        Self { state, tracker, format }
    }

    fn version(&self) -> u64 {
        self.tracker.version()
    }

    /// Something happens in the room. The patch of it, and where it begins.
    fn patch(&mut self) -> (u64, Vec<u8>) {
        let base = self.version();
        self.state.round += 300;
        self.state.seats.remove(&PlayerId(base));
        self.state.seats.insert(PlayerId(100 + base), Seat::default());
        self.state.log.push(7);
        self.tracker.sync(&mut self.state);
        let mut body = Vec::new();
        assert!(self.tracker.patch(ME, base, self.format, &mut body));
        (base, body)
    }

    fn snapshot(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        self.tracker.snapshot(ME, self.format, &mut body);
        body
    }

    /// What a copy is to be now.
    fn expected(&mut self) -> String {
        let mut copy = Copy::new(self.format);
        copy.snapshot(1, 1, &self.snapshot()).unwrap();
        copy.shown()
    }
}

/// A copy of either kind, and what is told of it.
struct Copy {
    kind: Kind,
    told: EventQueue,
    why: Vec<OutOfStep>,
}

enum Kind {
    Typed(Mirror<Table>),
    Tree(JsonMirror),
}

impl Copy {
    fn new(format: Format) -> Self {
        let kind = match format {
            Format::Packed => Kind::Typed(Mirror::new()),
            Format::Msgpack => Kind::Tree(JsonMirror::of(TreeFormat::Msgpack)),
            Format::Json => Kind::Tree(JsonMirror::of(TreeFormat::Json)),
        };
        Self { kind, told: EventQueue::new(), why: Vec::new() }
    }

    fn shown(&self) -> String {
        let shown: &dyn Debug = match &self.kind {
            Kind::Typed(mirror) => mirror.state(),
            Kind::Tree(mirror) => mirror.state(),
        };
        format!("{shown:?}")
    }
}

impl Handler for Copy {
    fn snapshot(&mut self, _: u32, _: u64, body: &[u8]) -> Result<(), DecodeError> {
        match &mut self.kind {
            Kind::Typed(mirror) => mirror.snapshot(body),
            Kind::Tree(mirror) => mirror.snapshot(body),
        }
    }

    fn patch(&mut self, _: u32, _: u64, body: &[u8]) -> Result<(), DecodeError> {
        match &mut self.kind {
            Kind::Typed(mirror) => mirror.patch(body),
            Kind::Tree(mirror) => mirror.patch(body),
        }
    }

    fn out_of_step(&mut self, _: u32, why: &OutOfStep) {
        self.why.push(why.clone());
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        self.told.closed(error);
    }
}

/// A client in room 1, whose copy is the node's.
struct Play {
    talk: Talk,
    node: Node,
    copy: Copy,
}

impl Play {
    fn new(format: Format) -> Self {
        let mut talk = Talk::new(format, false);
        talk.heard();
        talk.says(&support::welcome(0, 1 << 20));
        let request = talk.client.join("r").unwrap();
        talk.heard();
        talk.says(&joined(request, 1, 3));
        let mut play = Self { talk, node: Node::new(format), copy: Copy::new(format) };
        play.mend();
        play
    }

    fn says(&mut self, message: &ServerMessage<'_>) {
        let mut bytes = self.talk.node.write(message);
        self.talk.client.received(&mut bytes, &mut self.copy);
    }

    fn says_patch(&mut self, base: u64, version: u64, body: &[u8]) {
        self.says(&ServerMessage::Patch { room: 1, base, version, body });
    }

    fn says_snapshot(&mut self, epoch: u64, version: u64, body: &[u8]) {
        self.says(&ServerMessage::Snapshot { room: 1, epoch, version, body });
    }

    /// The node answers with a snapshot, after which all is well again.
    fn mend(&mut self) {
        let (version, body) = (self.node.version(), self.node.snapshot());
        self.says_snapshot(3, version, &body);
        assert_eq!(self.copy.shown(), self.node.expected());
        let (base, patch) = self.node.patch();
        self.says_patch(base, base + 1, &patch);
        assert_eq!(self.copy.shown(), self.node.expected());
        assert_eq!((self.copy.why.pop(), self.talk.heard()), (None, vec![]));
    }

    /// What was said last was refused for this reason, a snapshot was asked for, and it mends everything.
    fn assert_refused(&mut self, what: &str, reason: fn(&OutOfStep) -> bool) {
        let why = std::mem::take(&mut self.copy.why);
        assert!(matches!(&why[..], [why] if reason(why)), "{what}: {why:?}");
        assert_eq!(self.talk.heard(), [Said::Other("Resync { room: 1 }".to_owned())], "{what}");
        // Whatever comes before the snapshot is passed over.
        let before = self.copy.shown();
        let (base, patch) = self.node.patch();
        self.says_patch(base, base + 1, &patch);
        assert_eq!((self.copy.shown(), self.copy.why.len()), (before, 0), "{what}");
        self.mend();
    }

    /// A patch of the right version with a wrong body is refused.
    fn refuses(&mut self, what: &str, body: &[u8]) {
        let version = self.node.version();
        self.says_patch(version, version + 1, body);
        self.assert_refused(what, |why| matches!(why, OutOfStep::Patch(_)));
    }
}

#[test]
fn truncated_and_prolonged_patches() {
    for format in Format::ALL {
        let mut play = Play::new(format);
        for cut in 0..play.node.patch().1.len() {
            play = Play::new(format);
            let (base, body) = play.node.patch();
            let before = play.copy.shown();
            play.says_patch(base, base + 1, &body[..cut]);
            if format == Format::Packed || !play.talk.client.is_finished() {
                play.assert_refused(&format!("{format}, cut at {cut}"), |why| {
                    matches!(why, OutOfStep::Patch(_))
                });
                continue;
            }
            // A tree that is cut off is no message that can be read, which ends the connection.
            let end = play.copy.told.pop();
            assert!(matches!(end, Some(Event::Closed { error: Some(ClientError::Message(_)) })), "{end:?}");
            assert_eq!(play.copy.shown(), before);
        }
    }
    let mut play = Play::new(Format::Packed);
    let (base, mut body) = play.node.patch();
    // One 0 more is a mask of what only this player sees, and says that there is nothing.
    body.extend([0, 0]);
    play.says_patch(base, base + 1, &body);
    play.assert_refused("with bytes left over", |why| matches!(why, OutOfStep::Patch(_)));
}

#[test]
fn reordered_and_replayed_patches() {
    for format in Format::ALL {
        let mut play = Play::new(format);
        let (first, second) = (play.node.patch(), play.node.patch());
        play.says_patch(second.0, second.0 + 1, &second.1);
        play.assert_refused("reordered", |why| matches!(why, OutOfStep::Base { .. }));

        let (base, body) = play.node.patch();
        play.says_patch(base, base + 1, &body);
        play.says_patch(base, base + 1, &body);
        play.assert_refused("replayed", |why| matches!(why, OutOfStep::Base { .. }));

        play.says_patch(first.0, first.0 + 1, &first.1);
        play.assert_refused("replayed much later", |why| matches!(why, OutOfStep::Base { .. }));

        // One that says of itself that it changes nothing of the version could be replayed without a trace.
        let (base, body) = play.node.patch();
        play.says_patch(base, base, &body);
        play.assert_refused("of no advance", |why| matches!(why, OutOfStep::NoAdvance { .. }));
    }
}

#[test]
fn snapshots_of_another_epoch_and_of_the_past() {
    for format in Format::ALL {
        let mut play = Play::new(format);
        let old = (play.node.version(), play.node.snapshot());
        play.mend();
        play.says_snapshot(4, old.0 + 9, &old.1);
        play.assert_refused("of another epoch", |why| matches!(why, OutOfStep::Epoch { joined: 3, got: 4 }));
        play.says_snapshot(3, old.0, &old.1);
        play.assert_refused("replayed", |why| matches!(why, OutOfStep::Older { .. }));
    }
}

#[test]
fn patches_by_another_schema() {
    for format in Format::ALL {
        let mut state = other::Table::default();
        let mut tracker = Tracker::new(&mut state, Tracking::On);
        state.name = "another".into();
        state.log.extend(["a".to_owned(), "b".to_owned()]);
        (state.best, state.marks, state.more) = (Some(1.5), [1, 2, 3], 1 << 50);
        tracker.sync(&mut state);
        let mut body = Vec::new();
        assert!(tracker.patch(ME, 1, format, &mut body));
        let mut play = Play::new(format);
        if format == Format::Packed {
            play.refuses("another schema", &body);
        } else {
            // Trees know no schema: what names only new members is taken, and is what the node said. What goes into what isn't there is not.
            let into = tree(format, r#"[[["best","x"],1]]"#);
            play.refuses("into a member that isn't there", &into);
        }
    }
}

/// JSON in one of the formats of trees.
fn tree(format: Format, json: &str) -> Vec<u8> {
    if format == Format::Msgpack { msgpack(json) } else { json.into() }
}

#[test]
fn unknown_slots_and_lengths_past_the_end_in_packed() {
    let mut play = Play::new(Format::Packed);
    let cases: [(&str, &[u8]); 14] = [
        ("a field that isn't there", &[0x08]),
        ("a change in an empty slot", &[2, 4, 0x7f, 1, 2, 0]),
        ("a change in a slot past all slots", &[2, 4, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 0]),
        ("an entry past all slots", &[2, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 9, 2, 0, 0]),
        ("one key in two slots", &[2, 2, 0x30, 9, 2, 0, 1, 9, 2, 0, 0]),
        ("flags that no map has", &[2, 0x40]),
        ("a text longer than what came", &[2, 2, 0x30, 9, 2, 0xff, 0xff, 0x7f, b'a', 0]),
        ("a list longer than what came", &[4, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]),
        ("an element past the end", &[4, 1, 0x7f, 1, 0]),
        ("a removal past the end", &[4, 2, 4, 0x7f, 0, 0]),
        ("an insertion past the end", &[4, 2, 5, 0x7f, 0, 1, 1, 0]),
        ("a move past the end", &[4, 2, 6, 0, 0x7f, 0, 0]),
        ("an order that names an element twice", &[4, 2, 15, 0, 0, 0, 0, 0]),
        ("a group of slots that are not there", &[2, 8, 1, 2, 0x7f, 5, 1, 0, 0]),
    ];
    for (what, body) in cases {
        play.refuses(what, body);
    }
}

#[test]
fn unknown_paths_and_indices_in_trees() {
    for format in [Format::Msgpack, Format::Json] {
        let mut play = Play::new(format);
        for ops in [
            r#"[[["no","such"],1]]"#,
            r#"[[["seats","77","hp"],1]]"#,
            r#"[[["round","x"],1]]"#,
            r#"[[["log",99],1]]"#,
            r#"[[["log",99]]]"#,
            r#"[[["log","0"],1]]"#,
            r#"[[["log",99],1,"insert"]]"#,
            r#"[[["log",0],99,"move"]]"#,
            r#"[[["log"],[0,0,0],"order"]]"#,
            r#"[[["log"],[0],"order"]]"#,
            r#"[[["seats",0],1]]"#,
            r#"[[[],1]]"#,
            r#"[[["round"],1,"twirl"]]"#,
            r#"[[["round"],1,"insert"]]"#,
            r#"[7]"#,
            r#"{}"#,
            r#"null"#,
        ] {
            play.refuses(ops, &tree(format, ops));
        }
    }
}

/// More steps than a path may have, and values that stand too deep in each other: of these the message is none.
#[test]
fn deep_nesting_in_trees() {
    for format in [Format::Msgpack, Format::Json] {
        let mut play = Play::new(format);
        let steps = vec![r#""a""#; 1000].join(",");
        play.refuses("a long path", &tree(format, &format!("[[[{steps}],1]]")));

        let depth = 100_000;
        let deep = match format {
            Format::Json => {
                format!(r#"[[["round"],{}{}]]"#, "[".repeat(depth), "]".repeat(depth)).into_bytes()
            }
            _ => [&b"\x91\x92\x91\xa5round"[..], &vec![0x91; depth], b"\xc0"].concat(),
        };
        let before = play.copy.shown();
        let version = play.node.version();
        play.says_patch(version, version + 1, &deep);
        if play.talk.client.is_finished() {
            let end = play.copy.told.pop();
            assert!(matches!(end, Some(Event::Closed { error: Some(ClientError::Message(_)) })), "{end:?}");
            assert_eq!(play.copy.shown(), before);
        } else {
            play.assert_refused("a deep value", |why| matches!(why, OutOfStep::Patch(_)));
        }
    }
}
