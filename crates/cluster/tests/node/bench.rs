//! An engine whose answers the test gives, and nodes over it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use playfield_cluster::{
    Answer, ClaimRecord, Command, Effect, Engine, EngineError, EngineEvent, Event, Incarnation,
    Key, Node, NodeRecord, Place, Record, Save, Settings, Want,
};

pub(crate) const LEASE: Duration = Duration::from_secs(20);

/// An engine that answers at once, unless it is away.
#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) records: BTreeMap<Key, Record>,
    pub(crate) revision: u64,
    pub(crate) events: VecDeque<EngineEvent>,
    pub(crate) sent: Vec<Command>,
    pub(crate) is_away: bool,
    /// The next write takes effect, and its outcome is unknown.
    pub(crate) loses_answer: bool,
}

impl Engine for Bench {
    fn begin(&mut self, command: Command) {
        self.sent.push(command.clone());
        let unknown = Err(EngineError::Unknown);
        let (tag, result) = match command {
            Command::Read { tag, .. }
            | Command::List { tag, .. }
            | Command::Write { tag, .. }
            | Command::Purge { tag, .. }
                if self.is_away =>
            {
                (tag, unknown)
            }
            Command::Read { key, tag } => {
                (tag, Ok(Answer::Read(self.records.get(&key).cloned().unwrap_or_default())))
            }
            Command::List { prefix, tag } => {
                let keys = self.records.keys().filter(|key| key.starts_with(prefix));
                (tag, Ok(Answer::Listed(keys.cloned().collect())))
            }
            Command::Write { key, value, expect, tag } => {
                let result = self.write(&key, Some(value), expect);
                (tag, if std::mem::take(&mut self.loses_answer) { unknown } else { result })
            }
            Command::Purge { key, expect, tag } => (tag, self.write(&key, None, expect)),
            Command::Broadcast { .. } | Command::Send { .. } | Command::Listen { .. } => return,
        };
        self.events.push_back(EngineEvent::Answered { tag, result });
    }

    fn next(&mut self) -> Option<EngineEvent> {
        self.events.pop_front()
    }
}

impl Bench {
    fn write(
        &mut self,
        key: &str,
        value: Option<Vec<u8>>,
        expect: u64,
    ) -> Result<Answer, EngineError> {
        let record = self.records.entry(key.into()).or_default();
        if record.revision != expect {
            return Err(EngineError::Conflict);
        }
        self.revision += 1;
        *record = Record { revision: self.revision, value };
        Ok(Answer::Written(self.revision))
    }

    /// Writes whatever the condition.
    pub(crate) fn put(&mut self, key: &str, value: Vec<u8>) {
        let expect = self.records.get(key).map_or(0, |record| record.revision);
        self.write(key, Some(value), expect).unwrap();
    }

    pub(crate) fn node_record(&self, slot: u16) -> NodeRecord {
        let record = &self.records[&Key::from(format!("n.{slot}"))];
        NodeRecord::decode(record.value.as_deref().unwrap()).unwrap()
    }

    pub(crate) fn claim(&self, key: &Key) -> Option<ClaimRecord> {
        let value = self.records.get(key)?.value.as_deref()?;
        Some(ClaimRecord::decode(value).unwrap())
    }
}

pub(crate) fn settings(slot: u16) -> Settings {
    Settings {
        slot: Some(slot),
        name: format!("node {slot}"),
        addresses: vec![format!("tls://{slot}")],
        ..Settings::new(LEASE).unwrap()
    }
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Lets the nodes do what is due, in steps of 100 ms.
pub(crate) fn run(nodes: &mut [&mut Node], bench: &mut Bench, from: Duration, to: Duration) {
    let mut now = from;
    while now <= to {
        for node in nodes.iter_mut() {
            node.turn(now);
            node.exchange(now, bench);
        }
        now += Duration::from_millis(100);
    }
}

/// The effects, without those of having a slot.
pub(crate) fn effects(node: &mut Node) -> Vec<Effect> {
    let all = std::iter::from_fn(|| node.next_effect());
    all.filter(|effect| !matches!(effect, Effect::Ready { .. })).collect()
}

/// A claim that no node of the test has written.
pub(crate) fn claim(slot: u16, incarnation: Incarnation) -> ClaimRecord {
    ClaimRecord { slot, incarnation, room: [0; 16], is_code: false, nonce: [9; 16] }
}

pub(crate) fn want(node: &mut Node, bench: &mut Bench, now: Duration, key: &Key) -> Vec<Effect> {
    let want = Want::Claim { is_code: false };
    node.event(now, Event::Wanted { key: key.clone(), request: 7, want });
    node.exchange(now, bench);
    effects(node)
}

/// Answers that the save is as the room in memory knows it.
pub(crate) fn open(
    node: &mut Node,
    bench: &mut Bench,
    now: Duration,
    key: &Key,
    attempt: u64,
) -> Vec<Effect> {
    let save = Some(Save::Intact);
    node.event(now, Event::Opened { key: key.clone(), attempt, save });
    node.exchange(now, bench);
    effects(node)
}

/// A node in slot 1 that serves a key since 1 s.
pub(crate) fn serving() -> (Node, Bench, Key) {
    let (mut bench, key) = (Bench::default(), Key::from("r.board.1"));
    let mut node = Node::new(settings(1), 1, secs(0));
    run(&mut [&mut node], &mut bench, secs(0), secs(1));
    let opens = want(&mut node, &mut bench, secs(1), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 1 }]);
    let served = open(&mut node, &mut bench, secs(1), &key, 1);
    let found = Effect::Found { request: 7, place: Place::Here { is_new: true }, is_code: false };
    assert_eq!(served, [Effect::Serve { key: key.clone() }, found]);
    (node, bench, key)
}

/// The commands of a node, which get no answer yet.
pub(crate) fn commands(node: &mut Node, now: Duration) -> Vec<Command> {
    #[derive(Default)]
    struct Collect(Vec<Command>);
    impl Engine for Collect {
        fn begin(&mut self, command: Command) {
            self.0.push(command);
        }
        fn next(&mut self) -> Option<EngineEvent> {
            None
        }
    }
    let mut collect = Collect::default();
    node.exchange(now, &mut collect);
    collect.0
}

/// Lets the nodes do what is due, in steps of 100 ms, and hear each other's messages to all.
pub(crate) fn run_and_hear(nodes: &mut [Node], bench: &mut Bench, from: Duration, to: Duration) {
    let mut now = from;
    while now <= to {
        for index in 0..nodes.len() {
            bench.sent.clear();
            nodes[index].turn(now);
            nodes[index].exchange(now, bench);
            for command in std::mem::take(&mut bench.sent) {
                let Command::Broadcast { bytes } = command else { continue };
                let hearers = nodes.iter_mut().enumerate().filter(|(other, _)| *other != index);
                for (_, node) in hearers {
                    let bytes = bytes.clone();
                    node.event(now, Event::Engine(EngineEvent::Received { bytes }));
                }
            }
        }
        now += Duration::from_millis(100);
    }
}
