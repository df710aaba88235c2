//! Recordings: their bytes, what is kept in memory, and how a difference is named.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::Duration;

use playfield_room::recording::{
    Cursor, Entry, Input, Moment, Position, RecorderSettings, Recording, RecordingError, Replay,
    ReplayError, Step, Why,
};
use playfield_room::sim::Sim;
use playfield_room::{
    Claims, Context, EndReason, Entrant, Error, Handle, InternalMessage, LeaveReason, Link, Mail,
    Message, On, Operation, Player, PlayerId, Result, Room, RoomType, SeatFor, StoreError,
    StoreErrorKind, room,
};
use playfield_state::{Data, Format, State, TreeWriter};
use playfield_wire::DecodeError;
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::{ErrorCode, RequestNumber};
use proptest::prelude::*;

use crate::support::recorded::Recorded;
use crate::support::{Host, room_named};

thread_local! {
    /// The amount that another build adds beyond this one.
    pub(crate) static MORE: Cell<u32> = const { Cell::new(0) };
}

/// Counts.
#[derive(State, Default)]
struct Counter {
    count: u32,
    #[sync(hidden)]
    ticks: u32,
}

/// Adds a number. 13 panics, and 14 is an internal error.
#[derive(Message)]
struct Add(u32);

#[room(messages(Add), internal(Add), tick_hz = 20)]
impl Room for Counter {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        match player.name() {
            "14" => Err(Error::new(ErrorCode::Internal, "14 is too much")),
            _ => Ok(()),
        }
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.ticks += 1;
    }
}

impl On<Add> for Counter {
    fn on(&mut self, Add(it): Add, _: &mut Context<Self>) -> Result<()> {
        self.add(it)
    }
}

impl Handle<Add> for Counter {
    fn handle(&mut self, Add(it): Add, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.add(it)
    }
}

impl Counter {
    fn add(&mut self, it: u32) -> Result<()> {
        assert!(it != 13, "13 brings no luck");
        if it == 14 {
            return Err(Error::new(ErrorCode::Internal, "14 is too much"));
        }
        self.count += it + MORE.get();
        Ok(())
    }
}

pub(crate) struct Recordable {
    pub(crate) host: Host,
    pub(crate) recorded: Recorded,
    player: PlayerId,
    ticks: u64,
}

impl Recordable {
    fn new(settings: RecorderSettings) -> Self {
        let mut host = Host::create::<Counter>(1, &[]).unwrap();
        let recorded = Recorded::default();
        let other = Host::create::<Counter>(1, &[]).unwrap().room;
        host.room = recorded.record(std::mem::replace(&mut host.room, other), settings);
        Self { host, recorded, player: PlayerId(0), ticks: 0 }
    }

    pub(crate) fn to_file(settings: RecorderSettings) -> Self {
        let mut this = Self::new(settings);
        assert!(this.host.room.recorder().unwrap().begin_file(&Why::Request));
        this.player = this.host.join("Ann").unwrap();
        this
    }

    /// Ticks and syncs.
    pub(crate) fn run(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.ticks += 1;
            self.host.at += Duration::from_millis(50);
            self.host.tick(self.ticks);
            self.host.sync();
        }
    }

    pub(crate) fn add(&mut self, number: u32) {
        self.host.act(self.player, &Add(number), Some(number));
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.host.room.recorder().unwrap().end_file(&Why::Request);
        let (bytes, is_whole) = self.recorded.files().pop().unwrap();
        assert!(is_whole);
        bytes
    }
}

pub(crate) fn counters() -> RoomType {
    RoomType::of::<Counter>("test")
}

#[test]
fn a_recorded_room_runs_again_and_any_tick_is_found() {
    let mut room = Recordable::to_file(RecorderSettings {
        keyframe_every: Duration::from_secs(1),
        ..RecorderSettings::default()
    });
    for number in 0..10 {
        room.add(number);
        room.run(10);
    }
    let bytes = room.end();
    let recording = Recording::read(&bytes).unwrap();
    assert_eq!((recording.about().room_type.as_str(), recording.fault()), ("test", None));
    assert_eq!(recording.end().unwrap().why, "on request");
    let mut replay = Replay::new(&recording, &counters()).unwrap();
    let summary = replay.verify().unwrap();
    assert_eq!((summary.difference, summary.position.tick), (None, 100));
    assert!(summary.compared >= 5, "{} hashes", summary.compared);
    for tick in [1, 99, 50, 51, 20, 100] {
        replay.seek(Moment::Tick(tick)).unwrap();
        let mut whole = Vec::new();
        assert!(replay.room().whole(&mut whole));
        let state: Counter = playfield_state::load(&whole).unwrap();
        let added = (0..=(tick as u32 - 1) / 10).sum::<u32>();
        assert_eq!((u64::from(state.ticks), state.count), (tick, added));
    }
    let error = replay.seek(Moment::Tick(101)).unwrap_err();
    assert_eq!(error, ReplayError::NoTick { tick: 101, first: 0, last: Some(100) });
    assert_eq!(error.to_string(), "the recording ends at tick 100, before tick 101");
}

#[test]
fn the_inputs_that_make_a_difference_are_named() {
    let record = |inputs_per_hash| {
        let mut room = Recordable::to_file(RecorderSettings {
            inputs_per_hash,
            ..RecorderSettings::default()
        });
        room.run(5);
        room.add(7);
        room.run(5);
        room.end()
    };
    let difference = |bytes: &[u8]| {
        let recording = Recording::read(bytes).unwrap();
        MORE.set(1);
        let summary = Replay::new(&recording, &counters()).unwrap().verify();
        MORE.set(0);
        *summary.unwrap().difference.unwrap()
    };
    // A join, five ticks and syncs, then the message.
    let exact = difference(&record(1));
    assert_eq!((exact.same_until.inputs, exact.position.inputs), (11, 12));
    let text = exact.to_string();
    assert!(text.contains("Input 12 made the difference: Message"), "{text}");
    let rough = difference(&record(8));
    assert_eq!((rough.same_until.inputs, rough.position.inputs), (8, 16));
    let text = rough.to_string();
    assert!(text.contains("one of the inputs 9 to 16 made the difference"), "{text}");
}

#[test]
fn a_keyframe_names_the_field_that_differs() {
    let mut room = Recordable::to_file(RecorderSettings {
        keyframe_every: Duration::from_millis(250),
        ..RecorderSettings::default()
    });
    room.add(7);
    room.run(20);
    let bytes = room.end();
    let recording = Recording::read(&bytes).unwrap();
    MORE.set(1);
    let summary = Replay::new(&recording, &counters()).unwrap().verify();
    MORE.set(0);
    let difference = summary.unwrap().difference.unwrap();
    assert_eq!(difference.fields, [["count".to_owned(), "7".to_owned(), "8".to_owned()]]);
    let text = difference.to_string();
    assert!(text.contains("count: 7 was recorded, 8 is here"), "{text}");
}

#[test]
fn a_simulated_room_goes_on_from_a_recording() {
    let mut room = Recordable::to_file(RecorderSettings::default());
    room.add(7);
    room.run(10);
    let player = room.player;
    let file = std::env::temp_dir().join(format!("playfield-replay-{}.rec", std::process::id()));
    std::fs::write(&file, room.end()).unwrap();
    let mut sim = Sim::<Counter>::replay(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!((sim.room().count, sim.room().ticks), (7, 10));
    assert_eq!(sim.now(), Duration::from_millis(500));
    sim.request(player, Add(1)).unwrap();
    sim.advance(Duration::from_millis(100));
    assert_eq!((sim.copy(player).count, sim.room().ticks), (8, 12));
    let error = Sim::<Counter>::replay(&file).err().unwrap().to_string();
    assert!(error.starts_with(&file.display().to_string()), "{error}");
}

fn last_minutes() -> RecorderSettings {
    RecorderSettings { keeps: Duration::from_secs(60), ..RecorderSettings::default() }
}

#[test]
fn the_last_minutes_of_a_room_that_fails_are_written() {
    let mut room = Recordable::new(last_minutes());
    room.player = room.host.join("Ann").unwrap();
    room.run(20 * 600);
    assert!(room.recorded.files().is_empty());
    room.add(13);
    assert!(room.host.room.is_closed());
    let files = room.recorded.files();
    let [(bytes, true)] = &files[..] else { panic!("{} files", files.len()) };
    let recording = Recording::read(bytes).unwrap();
    assert!(recording.end().unwrap().has_failed);
    assert_eq!(recording.about().why, "the room failed");
    let mut replay = Replay::new(&recording, &counters()).unwrap();
    let from = replay.position().at;
    assert!(from <= room.host.at - Duration::from_secs(60), "{from:?}");
    assert!(from >= room.host.at - Duration::from_secs(80), "{from:?}");
    // The replay fails again.
    assert_eq!(replay.verify().unwrap().difference, None);
    assert!(replay.room().is_closed());
}

#[test]
fn the_last_minutes_before_an_internal_error_are_written_once_a_minute() {
    let mut room = Recordable::new(last_minutes());
    room.player = room.host.join("Ann").unwrap();
    room.run(100);
    room.add(14);
    room.run(100);
    room.add(14);
    let files = room.recorded.files();
    let [(bytes, true)] = &files[..] else { panic!("{} files", files.len()) };
    let recording = Recording::read(bytes).unwrap();
    assert_eq!(recording.about().why, "a handler returned an internal error: 14 is too much");
    assert_eq!(Replay::new(&recording, &counters()).unwrap().verify().unwrap().difference, None);
    room.run(20 * 60);
    room.add(14);
    assert_eq!(room.recorded.files().len(), 2);
}

#[test]
fn internal_errors_of_joins_and_of_internal_messages_are_written_too() {
    let message = InternalMessage::of(&Add(14));
    let mails = [
        Some(Mail::Told { from: None, message: message.clone() }),
        Some(Mail::Asked { from: None, ask: 7, message }),
        None,
    ];
    for mail in mails {
        let mut room = Recordable::new(last_minutes());
        room.player = room.host.join("Ann").unwrap();
        room.run(100);
        let Host { room: recorded, at, out, .. } = &mut room.host;
        match mail {
            Some(mail) => recorded.mail(*at, mail, out),
            None => drop(room.host.join("14").unwrap_err()),
        }
        let files = room.recorded.files();
        let [(bytes, true)] = &files[..] else { panic!("{} files", files.len()) };
        let recording = Recording::read(bytes).unwrap();
        assert_eq!(recording.about().why, "a handler returned an internal error: 14 is too much");
    }
}

#[test]
fn what_is_kept_in_memory_has_a_limit() {
    let mut room = Recordable::new(RecorderSettings { kept_bytes_max: 20_000, ..last_minutes() });
    room.player = room.host.join("Ann").unwrap();
    for number in 0..20_000 {
        room.add(if number == 13 || number == 14 { 0 } else { number });
        room.run(1);
    }
    room.add(13);
    let (bytes, _) = room.recorded.files().remove(0);
    let recording = Recording::read(&bytes).unwrap();
    let mut replay = Replay::new(&recording, &counters()).unwrap();
    let from = replay.position().inputs;
    assert_eq!(replay.verify().unwrap().difference, None);
    // Each round has more than 10 bytes.
    let rounds = (replay.position().inputs - from) / 3;
    assert!((500..2_000).contains(&rounds), "{rounds} rounds");
}

#[test]
fn a_build_that_numbers_messages_otherwise_finds_them_by_name() {
    let recorded = |name: &str| {
        let mut room = Recordable::new(RecorderSettings::default());
        let other = Host::create::<Counter>(1, &[]).unwrap().room;
        room.recorded.1 = [name.to_owned()].into();
        room.host.room = room.recorded.record(other, RecorderSettings::default());
        room.host.room.recorder().unwrap().begin_file(&Why::Request);
        room.player = room.host.join("Ann").unwrap();
        room.add(5);
        room.run(3);
        Recording::read(&room.end()).unwrap()
    };
    let mut of = counters();
    of.messages = ["Sub".to_owned(), "Add".to_owned()].into();
    let same = recorded("Add");
    let summary = Replay::new(&same, &of).unwrap().verify().unwrap();
    assert_eq!((summary.difference, summary.compared), (None, 1));
    // A name that no message has any more is refused.
    let gone = recorded("Mul");
    assert!(Replay::new(&gone, &of).unwrap().verify().unwrap().difference.is_some());
}

#[test]
fn a_recording_is_hashed_every_five_seconds_and_at_its_end() {
    let mut room = Recordable::to_file(RecorderSettings::default());
    room.run(250);
    let recording = Recording::read(&room.end()).unwrap();
    let summary = Replay::new(&recording, &counters()).unwrap().verify().unwrap();
    assert_eq!((summary.difference, summary.compared), (None, 3));
    // The black box, too.
    let mut room = Recordable::new(last_minutes());
    room.player = room.host.join("Ann").unwrap();
    room.add(14);
    let (bytes, _) = room.recorded.files().remove(0);
    let recording = Recording::read(&bytes).unwrap();
    let summary = Replay::new(&recording, &counters()).unwrap().verify().unwrap();
    assert_eq!((summary.difference, summary.compared), (None, 1));
}

#[test]
fn a_damaged_recording_goes_on_at_the_next_keyframe() {
    let mut room = Recordable::to_file(RecorderSettings {
        keyframe_every: Duration::from_secs(60),
        ..RecorderSettings::default()
    });
    for number in 20..30 {
        room.add(number);
        // A block of a file is at most 15 s old.
        room.run(301);
    }
    let bytes = room.end();
    let whole = Recording::read(&bytes).unwrap();
    let last = Replay::new(&whole, &counters()).unwrap().verify().unwrap().position;
    for place in [bytes.len() / 2, bytes.len() - 10] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 4;
        let recording = Recording::read(&flipped).unwrap();
        let fault = recording.fault().unwrap().to_string();
        assert!(fault.contains("is damaged"), "{fault}");
        let mut replay = Replay::new(&recording, &counters()).unwrap();
        let summary = replay.verify().unwrap();
        assert_eq!((summary.difference, summary.position), (None, last));
        if place == bytes.len() / 2 {
            assert_eq!(recording.end().unwrap().why, "on request");
            let [(until, why)] = &summary.gaps[..] else { panic!("{:?}", summary.gaps) };
            assert_eq!(*why, fault);
            let error = replay.seek(Moment::Tick(until.tick - 1)).unwrap_err();
            assert_eq!(error, ReplayError::Missing { tick: until.tick - 1, why: fault });
            replay.seek(Moment::Tick(until.tick)).unwrap();
            replay.seek(Moment::Tick(1)).unwrap();
        }
    }
    let cut = Recording::read(&bytes[..bytes.len() - 10]).unwrap();
    assert!(cut.fault().unwrap().to_string().contains("was not written whole"));
    assert_eq!(cut.end(), None);
    assert_eq!(Recording::read(b"no").unwrap_err(), RecordingError::NotARecording);
    assert_eq!(
        Recording::read(b"PFREC\n\x02\x00").unwrap_err(),
        RecordingError::Format { version: 2 }
    );
    assert!(Recording::read(&bytes[..40]).is_err());
}

#[test]
fn no_damage_makes_a_replay_panic() {
    let mut room = Recordable::to_file(RecorderSettings::default());
    room.add(1);
    room.run(3);
    let bytes = room.end();
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(recording) = Recording::read(&flipped) {
            assert!(recording.fault().is_some(), "bit {bit}");
            Replay::new(&recording, &counters()).unwrap().verify().unwrap();
        }
    }
}

#[test]
fn a_room_that_was_frozen_goes_on_in_its_recording() {
    let mut room = Recordable::to_file(RecorderSettings::default());
    room.add(1);
    room.run(3);
    let mut form = playfield_room::frozen::FrozenWriter::new();
    room.host.room.freeze(room.host.at, &mut form, &mut room.host.out).unwrap();
    room.host.room.moved(room.host.at, &mut room.host.out);
    room.run(3);
    room.add(2);
    room.run(3);
    let bytes = room.end();
    let recording = Recording::read(&bytes).unwrap();
    let mut replay = Replay::new(&recording, &counters()).unwrap();
    let mut gaps = 0;
    while let Some(step) = replay.step(None).unwrap() {
        match step {
            Step::Gap(_, why) => {
                assert_eq!(why, "the room was frozen");
                gaps += 1;
            }
            Step::Differs(difference) => panic!("{difference}"),
            _ => {}
        }
    }
    assert_eq!((gaps, replay.position().tick), (1, 9));
}

fn texts() -> impl Strategy<Value = String> {
    ".{0,12}"
}

fn errors() -> impl Strategy<Value = Error> {
    (texts(), proptest::option::of(any::<u32>()), any::<u16>()).prop_map(|(text, ms, code)| {
        let error = Error::with_code(code, text);
        match ms {
            Some(ms) => error.with_retry_after(Duration::from_millis(ms.into())),
            None => error,
        }
    })
}

fn times() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn ends() -> impl Strategy<Value = EndReason> {
    proptest::sample::select(&[
        EndReason::Closed,
        EndReason::Empty,
        EndReason::ShuttingDown,
        EndReason::Drained,
        EndReason::Moved,
    ])
}

fn leaves() -> impl Strategy<Value = LeaveReason> {
    prop_oneof![
        Just(LeaveReason::Left),
        Just(LeaveReason::ConnectionLost),
        Just(LeaveReason::TakenOver),
        Just(LeaveReason::Kicked),
        ends().prop_map(LeaveReason::RoomEnded),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..40)
}

fn mail() -> impl Strategy<Value = Mail> {
    let from = || proptest::option::of(texts()).prop_map(|id| id.and_then(|id| room_named(&id)));
    let message = || {
        (texts(), bytes())
            .prop_map(|(name, payload)| InternalMessage { name: name.into(), payload })
    };
    let kinds = proptest::sample::select(&[
        StoreErrorKind::Busy,
        StoreErrorKind::InUse,
        StoreErrorKind::Fenced,
        StoreErrorKind::Away,
        StoreErrorKind::Full,
        StoreErrorKind::Io,
        StoreErrorKind::Damaged,
        StoreErrorKind::Other,
    ]);
    let outcome = prop_oneof![
        Just(Ok(())),
        (kinds, texts()).prop_map(|(kind, text)| Err(StoreError::new(kind, text))),
    ];
    prop_oneof![
        (any::<u64>(), message()).prop_map(|(task, message)| Mail::Done { task, message }),
        any::<u64>().prop_map(|task| Mail::Panicked { task }),
        (any::<u64>(), outcome).prop_map(|(save, outcome)| Mail::Saved { save, outcome }),
        (from(), message()).prop_map(|(from, message)| Mail::Told { from, message }),
        (from(), any::<u64>(), message()).prop_map(|(from, ask, message)| Mail::Asked {
            from,
            ask,
            message
        }),
        (any::<u64>(), bytes()).prop_map(|(ask, it)| Mail::Answered { ask, reply: Ok(it) }),
        (any::<u64>(), errors()).prop_map(|(ask, it)| Mail::Answered { ask, reply: Err(it) }),
    ]
}

fn operations() -> impl Strategy<Value = Operation> {
    let to = proptest::option::of(any::<u64>().prop_map(PlayerId));
    prop_oneof![
        (any::<u64>(), texts())
            .prop_map(|(player, text)| Operation::Kick { player: PlayerId(player), text }),
        any::<bool>().prop_map(Operation::Lock),
        any::<bool>().prop_map(Operation::Record),
        (any::<u32>(), [bytes(), bytes(), bytes()], to)
            .prop_map(|(event, payloads, to)| Operation::Emit { event, payloads, to }),
    ]
}

fn entrants() -> impl Strategy<Value = Entrant> {
    let maybe = || proptest::option::of(texts());
    let claims = prop_oneof![
        Just(Claims::default()),
        Just(Claims::from_json(r#"{"team":"red","level":[1,2.5,null]}"#).unwrap()),
    ];
    (proptest::sample::select(&Format::ALL), texts(), maybe(), claims, maybe(), maybe()).prop_map(
        |(format, name, user, claims, seat, reservation)| Entrant {
            link: Link(0),
            format,
            name,
            user,
            claims,
            seat,
            reservation,
        },
    )
}

fn all_inputs() -> impl Strategy<Value = Input<'static>> {
    let player = || any::<u64>().prop_map(PlayerId);
    let message = prop_oneof![
        any::<u32>().prop_map(MessageRef::Index),
        texts().prop_map(|name| MessageRef::Name(name.into())),
    ];
    let request = proptest::option::of(any::<u32>().prop_map(RequestNumber));
    prop_oneof![
        any::<u64>().prop_map(Input::Tick),
        (0..9_u64).prop_map(Input::Tick),
        Just(Input::Sync),
        Just(Input::Wake),
        any::<u64>().prop_map(Input::PassSyncs),
        (player(), message, bytes(), request).prop_map(|(player, message, payload, request)| {
            Input::Message { player, message, payload: payload.into(), request }
        }),
        entrants().prop_map(|entrant| Input::Join(Cow::Owned(entrant))),
        (any::<bool>(), texts(), times()).prop_map(|(is_user, text, wait)| {
            let who = if is_user { SeatFor::User(text) } else { SeatFor::Name(text) };
            Input::Reserve(Cow::Owned(who), wait)
        }),
        player().prop_map(Input::Lost),
        (player(), times()).prop_map(|(player, away)| Input::Returned(player, away)),
        (player(), times()).prop_map(|(player, time)| Input::Measured(player, time)),
        (player(), leaves()).prop_map(|(player, why)| Input::Leave(player, why)),
        mail().prop_map(|mail| Input::Mail(Cow::Owned(mail))),
        operations().prop_map(|operation| Input::Operate(Cow::Owned(operation))),
        (ends(), texts()).prop_map(|(why, text)| Input::Close(why, text.into())),
        Just(Input::Part),
        Just(Input::Abandon),
        times().prop_map(Input::Resumed),
    ]
}

proptest! {
    #[test]
    fn inputs_are_read_as_they_were_written(
        inputs in proptest::collection::vec((0..2_000_000_000_u64, all_inputs()), 1..20),
    ) {
        let (mut bytes, mut cursor, mut at) = (Vec::new(), Cursor::default(), Duration::ZERO);
        let mut written = Vec::new();
        for (passed, input) in inputs {
            at += Duration::from_nanos(if passed % 3 == 0 { 0 } else { passed });
            cursor.put(at, &input, &mut bytes);
            written.push(Entry::Input(at, input));
        }
        let (mut reader, mut cursor) = (Reader::new(&bytes), Cursor::default());
        for entry in &written {
            prop_assert_eq!(&cursor.read(&mut reader).unwrap(), entry);
        }
        prop_assert!(reader.is_empty());
        // Cut anywhere, the last entry is refused at a place within the bytes.
        for end in 0..bytes.len() {
            let (mut reader, mut cursor) = (Reader::new(&bytes[..end]), Cursor::default());
            while !reader.is_empty() {
                match cursor.read(&mut reader) {
                    Ok(_) => {}
                    Err(error) => {
                        prop_assert!(error.offset().is_some_and(|offset| offset <= end), "{error}");
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_no_inputs_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut reader, mut cursor) = (Reader::new(&bytes), Cursor::default());
        while !reader.is_empty() && cursor.read(&mut reader).is_ok() {}
    }
}

#[test]
fn an_entry_of_an_unknown_kind_is_named_with_its_place() {
    let bytes = [1, 1, 0x3f];
    let (mut reader, mut cursor) = (Reader::new(&bytes), Cursor::default());
    let sync = Entry::Input(Duration::ZERO, Input::Sync);
    assert_eq!(cursor.read(&mut reader).unwrap(), sync);
    assert_eq!(cursor.read(&mut reader).unwrap(), sync);
    let error = cursor.read(&mut reader).unwrap_err();
    assert_eq!(error.to_string(), "at byte 2: an entry of a record has no number 63");
}

thread_local! {
    /// The number of times that the text of a [`Large`] was written.
    static WRITTEN: Cell<u32> = const { Cell::new(0) };
}

/// A text that is longer than what is kept.
#[derive(State, Clone, Default)]
enum Text {
    #[default]
    Long,
}

impl Data for Text {
    fn schema() -> playfield_wire::schema::Type {
        <String as Data>::schema()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        WRITTEN.set(WRITTEN.get() + 1);
        "#".repeat(40_000).encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> std::result::Result<Self, DecodeError> {
        String::decode(reader).map(|_| Self::Long)
    }

    fn to_tree(&self, out: TreeWriter<'_>) {
        String::new().to_tree(out);
    }

    fn from_json(_: &serde_json::Value) -> std::result::Result<Self, DecodeError> {
        Ok(Self::Long)
    }

    fn same(&self, _: &Self) -> bool {
        true
    }
}

#[derive(State, Default)]
struct Large {
    ticks: u32,
    text: Text,
}

#[room(tick_hz = 20)]
impl Room for Large {
    fn tick(&mut self, _: &mut Context<Self>) {
        self.ticks += 1;
    }
}

#[test]
fn a_room_too_large_for_memory_is_not_written_at_each_sync() {
    let mut host = Host::create::<Large>(1, &[]).unwrap();
    let recorded = Recorded::default();
    let other = Host::create::<Large>(1, &[]).unwrap().room;
    let settings = RecorderSettings { kept_bytes_max: 20_000, ..last_minutes() };
    host.room = recorded.record(std::mem::replace(&mut host.room, other), settings);
    let mut run = |ticks: u64| {
        let before = WRITTEN.get();
        for _ in 0..ticks {
            host.at += Duration::from_millis(50);
            host.tick(host.at.as_millis() as u64 / 50);
            host.sync();
        }
        WRITTEN.get() - before
    };
    let first = run(20);
    assert!(first < 20, "written {first} times");
    let written = run(20 * 60);
    assert!(written <= 5 * first, "written {written} times in a minute, and first {first} times");
}

#[test]
fn a_position_of_a_room_without_ticks_names_none() {
    let position = Position { inputs: 7, at: Duration::from_millis(1_500), tick: 3 };
    assert_eq!(position.to_string(), "input 7, tick 3, 1.500s");
    assert_eq!(Position { tick: 0, ..position }.to_string(), "input 7, 1.500s");
}
