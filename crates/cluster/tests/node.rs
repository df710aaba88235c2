//! Nodes over an engine whose answers the test gives.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use playfield_cluster::{
    Answer, Beat, ClaimRecord, Command, Effect, Engine, EngineError, EngineEvent, Event,
    Incarnation, Key, Node, NodeRecord, NodeState, Notice, Place, Record, SLOTS, Save, Settings,
};

const LEASE: Duration = Duration::from_secs(20);

/// An engine that answers at once, unless it is away.
#[derive(Default)]
struct Bench {
    records: BTreeMap<Key, Record>,
    revision: u64,
    events: VecDeque<EngineEvent>,
    sent: Vec<Command>,
    is_away: bool,
    /// The next write takes effect, and its outcome is unknown.
    loses_answer: bool,
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
            Command::Broadcast { .. } => return,
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
    fn put(&mut self, key: &str, value: Vec<u8>) {
        let expect = self.records.get(key).map_or(0, |record| record.revision);
        self.write(key, Some(value), expect).unwrap();
    }

    fn node_record(&self, slot: u16) -> NodeRecord {
        let record = &self.records[&Key::from(format!("n.{slot}"))];
        NodeRecord::decode(record.value.as_deref().unwrap()).unwrap()
    }

    fn claim(&self, key: &Key) -> Option<ClaimRecord> {
        let value = self.records.get(key)?.value.as_deref()?;
        Some(ClaimRecord::decode(value).unwrap())
    }
}

fn settings(slot: u16) -> Settings {
    let mut settings = Settings::new(LEASE, format!("node {slot}")).unwrap();
    settings.slot = Some(slot);
    settings
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Lets the nodes do what is due, in steps of 100 ms.
fn run(nodes: &mut [&mut Node], bench: &mut Bench, from: Duration, to: Duration) {
    let mut now = from;
    while now <= to {
        for node in nodes.iter_mut() {
            node.turn(now);
            node.exchange(now, bench);
        }
        now += Duration::from_millis(100);
    }
}

fn effects(node: &mut Node) -> Vec<Effect> {
    std::iter::from_fn(|| node.next_effect()).collect()
}

fn want(node: &mut Node, bench: &mut Bench, now: Duration, key: &Key) -> Vec<Effect> {
    node.event(now, Event::Wanted { key: key.clone(), request: 7 });
    node.exchange(now, bench);
    effects(node)
}

/// Answers that the save is as the room in memory knows it.
fn open(node: &mut Node, bench: &mut Bench, now: Duration, key: &Key, attempt: u64) -> Vec<Effect> {
    let save = Some(Save::Intact);
    node.event(now, Event::Opened { key: key.clone(), attempt, save });
    node.exchange(now, bench);
    effects(node)
}

/// A node in slot 1 that serves a key since 1 s.
fn serving() -> (Node, Bench, Key) {
    let (mut bench, key) = (Bench::default(), Key::from("r.board.1"));
    let mut node = Node::new(settings(1), 1, secs(0));
    run(&mut [&mut node], &mut bench, secs(0), secs(1));
    let opens = want(&mut node, &mut bench, secs(1), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 1 }]);
    let served = open(&mut node, &mut bench, secs(1), &key, 1);
    let found = Effect::Found { request: 7, place: Place::Here };
    assert_eq!(served, [Effect::Serve { key: key.clone() }, found]);
    (node, bench, key)
}

#[test]
fn a_node_freezes_at_three_quarters_of_its_lease_and_thaws_with_the_next_renewal() {
    let (mut node, mut bench, _) = serving();
    run(&mut [&mut node], &mut bench, secs(1), secs(10));
    let last_renewal = node.acts_until().unwrap() - LEASE * 3 / 4;
    assert!(last_renewal <= secs(10) && last_renewal >= secs(8));
    bench.is_away = true;
    run(&mut [&mut node], &mut bench, secs(10), secs(40));
    let freezes_at = last_renewal + secs(15);
    assert!(node.acts(freezes_at - Duration::from_millis(1)) && !node.acts(freezes_at));
    bench.is_away = false;
    run(&mut [&mut node], &mut bench, secs(40), secs(43));
    assert!(node.acts(secs(43)));
    assert_eq!(effects(&mut node), []);
}

#[test]
fn an_answer_that_waited_while_the_process_stood_still_does_not_thaw_it() {
    let (mut node, mut bench, _) = serving();
    run(&mut [&mut node], &mut bench, secs(1), secs(10));
    // The renewal is answered at once, and the answer is read when the process goes on.
    node.turn(secs(12));
    for command in commands(&mut node, secs(12)) {
        bench.begin(command);
    }
    node.exchange(secs(40), &mut bench);
    assert!(!node.acts(secs(40)));
}

/// The commands of a node, which get no answer yet.
fn commands(node: &mut Node, now: Duration) -> Vec<Command> {
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

#[test]
fn a_node_that_was_declared_dead_claims_its_keys_again_with_a_new_incarnation() {
    let (mut node, mut bench, key) = serving();
    let before = node.incarnation().unwrap();
    let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
    bench.put("n.1", dead.encode());
    run(&mut [&mut node], &mut bench, secs(1), secs(5));
    let after = node.incarnation().unwrap();
    assert_ne!(before, after);
    assert_eq!(bench.claim(&key).unwrap().incarnation, after);
    let expected = [
        Effect::Noted(Notice::DeclaredDead),
        Effect::Freeze { key: key.clone() },
        Effect::Open { key: key.clone(), attempt: 2 },
    ];
    assert_eq!(effects(&mut node), expected);
    assert_eq!(open(&mut node, &mut bench, secs(5), &key, 2), [Effect::Thaw { key }]);
}

#[test]
fn a_save_that_an_earlier_incarnation_has_asked_for_is_not_used() {
    let (mut bench, key) = (Bench::default(), Key::from("r.board.1"));
    let mut node = Node::new(settings(1), 1, secs(0));
    run(&mut [&mut node], &mut bench, secs(0), secs(1));
    want(&mut node, &mut bench, secs(1), &key);
    let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
    bench.put("n.1", dead.encode());
    run(&mut [&mut node], &mut bench, secs(1), secs(5));
    effects(&mut node);
    let opens = want(&mut node, &mut bench, secs(5), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 2 }]);
    assert_eq!(open(&mut node, &mut bench, secs(5), &key, 1), []);
    let found = Effect::Found { request: 7, place: Place::Here };
    let served = [Effect::Serve { key: key.clone() }, found];
    assert_eq!(open(&mut node, &mut bench, secs(5), &key, 2), served);
}

#[test]
fn a_room_whose_save_another_owner_has_written_ends() {
    let (mut node, mut bench, key) = serving();
    node.event(secs(2), Event::Fenced { key: key.clone() });
    node.exchange(secs(2), &mut bench);
    let expected =
        [Effect::Freeze { key: key.clone() }, Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(effects(&mut node), expected);
    let changed = Event::Opened { key: key.clone(), attempt: 2, save: Some(Save::Changed) };
    node.event(secs(2), changed);
    node.exchange(secs(2), &mut bench);
    assert_eq!(effects(&mut node), [Effect::End { key: key.clone() }]);
    assert_eq!(bench.claim(&key), None);
}

#[test]
fn a_write_whose_outcome_is_unknown_is_written_again_before_the_room_is_served() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    bench.loses_answer = true;
    bench.sent.clear();
    let opens = want(&mut node, &mut bench, secs(2), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 2 }]);
    let writes = bench.sent.iter().filter(|command| matches!(command, Command::Write { .. }));
    assert_eq!(writes.count(), 2);
    assert_eq!(bench.claim(&key).unwrap().incarnation, node.incarnation().unwrap());
}

#[test]
fn a_claim_that_the_engine_has_lost_is_noticed_after_the_next_renewal() {
    let (mut node, mut bench, key) = serving();
    // The number of its revision was used again, by a removal.
    bench.records.get_mut(&key).unwrap().value = None;
    run(&mut [&mut node], &mut bench, secs(1), secs(4));
    let expected =
        [Effect::Freeze { key: key.clone() }, Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(effects(&mut node), expected);
    assert!(bench.claim(&key).is_some());
}

#[test]
fn a_key_of_a_dead_node_is_taken_over_after_the_lease_and_not_before() {
    let (gone, mut bench, key) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut other], &mut bench, secs(1), secs(2));
    let last_renewal = bench.node_record(1);
    let at = |node: &mut Node, bench: &mut Bench, now| want(node, bench, now, &key);
    let elsewhere = [Effect::Found { request: 7, place: Place::At("node 1".into()) }];
    assert_eq!(at(&mut other, &mut bench, secs(2)), elsewhere);
    run(&mut [&mut other], &mut bench, secs(2), secs(21));
    assert_eq!(bench.node_record(1), last_renewal);
    assert_eq!(at(&mut other, &mut bench, secs(21)), elsewhere);
    run(&mut [&mut other], &mut bench, secs(21), secs(23));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
    let open = Effect::Open { key: key.clone(), attempt: 1 };
    assert_eq!(at(&mut other, &mut bench, secs(23)), [open]);
    drop(gone);
}

#[test]
fn a_node_that_was_gone_before_another_began_is_declared_dead() {
    let (gone, mut bench, _) = serving();
    drop(gone);
    let mut other = Node::new(settings(2), 2, secs(30));
    run(&mut [&mut other], &mut bench, secs(30), secs(53));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
}

#[test]
fn a_claim_that_arrives_after_its_incarnation_was_forgotten_is_taken_over_after_the_lease() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    // The engine was wiped since, so no record says that the node of slot 9 is dead.
    bench.put(&key, ClaimRecord { slot: 9, incarnation: Incarnation(9), nonce: [9; 16] }.encode());
    let busy = [Effect::Found { request: 7, place: Place::Busy }];
    assert_eq!(want(&mut node, &mut bench, secs(2), &key), busy);
    run(&mut [&mut node], &mut bench, secs(2), secs(22));
    assert_eq!(want(&mut node, &mut bench, secs(22), &key), busy);
    run(&mut [&mut node], &mut bench, secs(22), secs(24));
    let open = [Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(want(&mut node, &mut bench, secs(24), &key), open);
}

#[test]
fn an_answer_that_waited_while_the_observer_stood_still_does_not_count_for_others() {
    let (mut node, mut bench, _) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut node, &mut other], &mut bench, secs(1), secs(4));
    run(&mut [&mut other], &mut bench, secs(4), secs(12));
    // Its renewal is answered at once, and it stands still before it reads the answer.
    let mut now = secs(12);
    while bench.events.is_empty() {
        now += Duration::from_millis(100);
        other.turn(now);
        for command in commands(&mut other, now) {
            bench.begin(command);
        }
    }
    other.exchange(secs(40), &mut bench);
    // The engine is away at first. After that, the node of slot 1 has not renewed yet.
    bench.is_away = true;
    run(&mut [&mut other], &mut bench, secs(40), secs(43));
    bench.is_away = false;
    run(&mut [&mut other], &mut bench, secs(43), secs(62));
    assert_eq!(bench.node_record(1).state, NodeState::Serving);
}

#[test]
fn a_node_that_finds_no_free_slot_says_so_and_goes_on() {
    let mut bench = Bench::default();
    let taken = NodeRecord {
        incarnation: Incarnation(1),
        state: NodeState::Serving,
        beat: 1,
        address: String::new(),
        lock: String::new(),
    };
    for slot in 0..SLOTS {
        bench.put(&format!("n.{slot}"), taken.encode());
    }
    let mut node = Node::new(settings(1), 1, secs(0));
    run(&mut [&mut node], &mut bench, secs(0), secs(1));
    let noted = Effect::Noted(Notice::SlotsTaken { tried: 32 });
    assert_eq!(effects(&mut node), [noted]);
    for slot in 0..SLOTS {
        let dead = NodeRecord { state: NodeState::Dead, ..taken.clone() };
        bench.put(&format!("n.{slot}"), dead.encode());
    }
    run(&mut [&mut node], &mut bench, secs(1), secs(3));
    assert!(node.acts(secs(3)));
}

#[test]
fn no_node_is_declared_dead_after_an_outage_of_the_engine() {
    let (mut node, mut bench, _) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut node, &mut other], &mut bench, secs(1), secs(5));
    bench.is_away = true;
    run(&mut [&mut node, &mut other], &mut bench, secs(5), secs(65));
    bench.is_away = false;
    // The node of slot 1 comes back late.
    run(&mut [&mut other], &mut bench, secs(65), secs(80));
    assert_eq!(bench.node_record(1).state, NodeState::Serving);
    run(&mut [&mut other], &mut bench, secs(80), secs(95));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
}

#[test]
fn a_restarted_process_that_holds_the_lock_has_its_slot_and_keys_at_once() {
    let locked = |slot| Settings { lock: "machine/lock".into(), ..settings(slot) };
    let (mut bench, key) = (Bench::default(), Key::from("r.board.1"));
    let mut gone = Node::new(locked(1), 1, secs(0));
    run(&mut [&mut gone], &mut bench, secs(0), secs(1));
    want(&mut gone, &mut bench, secs(1), &key);
    let mut next = Node::new(locked(1), 2, secs(2));
    run(&mut [&mut next], &mut bench, secs(2), secs(3));
    assert_eq!(next.slot(), 1);
    let opens = want(&mut next, &mut bench, secs(3), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 1 }]);

    // Without the lock, the slot is another's.
    let mut third = Node::new(settings(1), 3, secs(3));
    run(&mut [&mut third], &mut bench, secs(3), secs(4));
    assert_ne!(third.slot(), 1);
}

#[test]
fn a_claim_for_this_node_that_it_has_not_written_is_left_alone() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    let incarnation = node.incarnation().unwrap();
    bench.put(&key, ClaimRecord { slot: 1, incarnation, nonce: [7; 16] }.encode());
    let busy = Effect::Found { request: 7, place: Place::Busy };
    assert_eq!(want(&mut node, &mut bench, secs(2), &key), [busy]);
}

#[test]
fn a_record_of_a_later_format_is_reported_and_not_overwritten() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    bench.put(&key, vec![2, 1, 2, 3]);
    let error = "at byte 0: a record of the format 2, and this build reads 1: upgrade this node";
    let expected = [
        Effect::Noted(Notice::Unreadable { key: key.clone(), error: error.into() }),
        Effect::Found { request: 7, place: Place::Busy },
    ];
    assert_eq!(want(&mut node, &mut bench, secs(2), &key), expected);
    assert_eq!(bench.records[&key].value.as_deref(), Some(&[2, 1, 2, 3][..]));

    // A message that can't be read is none.
    let mut bytes =
        Beat { slot: 3, incarnation: node.incarnation().unwrap(), revision: 9 }.encode();
    bytes[0] = 2;
    node.event(secs(2), Event::Engine(EngineEvent::Received { bytes }));
    assert_eq!(effects(&mut node), []);
}

#[test]
fn a_lease_that_is_too_short_is_refused() {
    let error = Settings::new(secs(4), "").unwrap_err().to_string();
    assert_eq!(error, "a lease of 4s is too short: set 5s or more");
}
