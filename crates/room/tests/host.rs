//! The guarantees of a room to its host: what it sends, to whom, and in which order.

use crate::support;

use std::cell::Cell;
use std::time::Duration;

use playfield_room::{
    Answer, AskId, Context, Error, Handle, InternalMessage, LeaveReason, Link, METADATA_BYTES_MAX,
    METADATA_MAX, Mail, Message, On, PENDING_MAX, Player, PlayerId, Result, Room, RoomType,
    Settings, Stage, TIMERS_MAX, room,
};
use playfield_state::{Data, DecodeError, Format, List, State, TreeWriter};
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::{ErrorCode, RequestNumber};
use support::{Host, Output, room_named};

#[derive(State, Default)]
struct Hall {
    log: List<String>,
}

/// The actions of `create`.
#[derive(Data, Default)]
enum Setup {
    #[default]
    Nothing,
    Close,
    /// All that is possible without a host.
    Everything,
}

/// The actions of a handler.
#[derive(Message)]
enum Do {
    Say(u32),
    SayThenRefuse(u32),
    Kick(Vec<PlayerId>),
    KickAndClose(PlayerId),
    Compute,
    WorkUpTo(u32),
    Beat,
    After(u32),
    TimersUpTo(u32),
    Metadata(String, String),
    Hide,
    Players,
}

/// An event that counts how often it is encoded.
struct Said(u32);

thread_local! {
    static ENCODED: Cell<u32> = const { Cell::new(0) };
}

impl Data for Said {
    fn schema() -> Type {
        Type::U32
    }
    fn encode(&self, out: &mut Vec<u8>) {
        ENCODED.set(ENCODED.get() + 1);
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        u32::decode(reader).map(Self)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        ENCODED.set(ENCODED.get() + 1);
        self.0.to_tree(out);
    }
    fn from_json(value: &serde_json::Value) -> Result<Self, DecodeError> {
        u32::from_json(value).map(Self)
    }
}

impl Message for Said {
    const NAME: &'static str = "Said";
    type Reply = ();
}

#[derive(Message)]
struct Rang(u32);

#[derive(Message)]
struct Other;

#[room(
    messages(Do),
    events(Other, Said),
    internal(Rang),
    asks(Rang),
    capacity = 4,
    empty_ms = 1000
)]
impl Room for Hall {
    type Options = Setup;

    fn create(options: Setup, cx: &mut Context<Self>) -> Result<Self> {
        match options {
            Setup::Nothing => {}
            Setup::Close => cx.close("not in this weather"),
            Setup::Everything => {
                cx.emit(&Said(1));
                cx.tell("a", &Rang(1));
                cx.ask("b", &Rang(2));
                cx.spawn(async { Rang(3) })?;
                cx.after(Duration::from_millis(10), Rang(4));
                cx.compute(|| Rang(5))?;
            }
        }
        Ok(Self::default())
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&Said(0));
        match player.name() {
            "refused" => return Err(Error::with_code(7, "no")),
            "kicked" => cx.kick(player.id(), "not you"),
            "last" => cx.close("that will do"),
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        let here = cx.players().any(|other| other.id() == player.id());
        self.log.push(format!("{} left, here: {here}", player.name()));
        cx.emit_to(player.id(), &Said(99));
    }
}

impl Handle<Do> for Hall {
    fn handle(&mut self, what: Do, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        match what {
            Do::Say(number) => cx.emit(&Said(number)),
            Do::SayThenRefuse(number) => {
                cx.emit_to(player.id(), &Said(number));
                return Err("no".into());
            }
            Do::Kick(players) => players.into_iter().for_each(|player| cx.kick(player, "out")),
            Do::KickAndClose(other) => {
                cx.kick(other, "out");
                cx.close("the end");
                cx.kick(player.id(), "too late");
            }
            Do::Compute => cx.compute(|| Rang(1))?,
            Do::WorkUpTo(count) => {
                for _ in 0..count {
                    cx.spawn(std::future::pending::<Rang>())?;
                }
            }
            Do::Beat => drop(cx.every(Duration::from_millis(100), Rang(0))),
            Do::After(ms) => drop(cx.after(Duration::from_millis(ms.into()), Rang(ms))),
            Do::TimersUpTo(count) => {
                for _ in 0..count {
                    cx.after(Duration::from_secs(1), Rang(0));
                }
            }
            Do::Metadata(key, value) => cx.set_metadata(&key, &value)?,
            Do::Hide => cx.set_private(true),
            Do::Players => self.log.extend(cx.players().map(|player| player.name().to_owned())),
        }
        Ok(())
    }
}

impl On<Rang> for Hall {
    fn on(&mut self, Rang(number): Rang, cx: &mut Context<Self>) -> Result<()> {
        self.log.push(format!("{number} at {}", cx.now().as_millis()));
        if number == 7 {
            cx.after(Duration::ZERO, Rang(8));
        }
        Ok(())
    }
}

impl Answer<Rang> for Hall {
    fn answer(&mut self, _: AskId, _: Result<()>, _: &mut Context<Self>) {}
}

const DO: u32 = 0;

fn hall() -> Host {
    Host::create::<Hall>(1, &[]).unwrap()
}

/// A hall with players 1, 2, 3…, with links of the same numbers.
fn hall_of(players: u64) -> Host {
    let mut host = hall();
    for number in 1..=players {
        assert_eq!(host.join(&format!("p{number}")), Ok(PlayerId(number)));
    }
    host.out.take();
    host
}

fn packed(message: &impl Data) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

fn send(host: &mut Host, player: u64, what: &Do) {
    host.message(PlayerId(player), DO, &packed(what), None);
}

fn request(host: &mut Host, player: u64, what: &Do) {
    host.message(PlayerId(player), DO, &packed(what), Some(RequestNumber(1)));
}

/// The room's log, as player 1's snapshot shows it.
fn log(host: &mut Host) -> Vec<String> {
    host.sync();
    let mut body = Vec::new();
    host.room.snapshot(PlayerId(1), Format::Json, &mut body);
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
    value[0][1]["log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap().to_owned())
        .collect()
}

fn event(link: u64, number: u8) -> Output {
    Output::Event { link: Link(link), index: 1, name: "Said", version: 1, payload: vec![number] }
}

fn removed(link: u64, code: ErrorCode, text: &str) -> Output {
    Output::Removed { link: Link(link), why: Error::new(code, text) }
}

#[test]
fn a_room_may_refuse_to_be_created_by_closing() {
    let error = Host::create::<Hall>(1, &packed(&Setup::Close)).err().unwrap();
    assert_eq!((error.code(), error.text()), (ErrorCode::Refused, "not in this weather"));
}

#[test]
fn options_that_cannot_be_decoded_are_refused() {
    let error = Host::create::<Hall>(1, &[77]).err().unwrap();
    assert_eq!(error.code(), ErrorCode::BadPayload);
    assert!(error.text().starts_with("the options of the room: "), "{error}");
}

#[test]
fn what_a_room_starts_in_create_is_passed_on_at_the_first_call() {
    let mut host = Host::create::<Hall>(1, &packed(&Setup::Everything)).unwrap();
    assert_eq!(host.room.wake_at(), Some(Duration::ZERO), "it asks to be called at once");
    host.wake_after(0);
    let out = host.out.take();
    assert!(matches!(
        &out[..],
        [Output::Post { to: a, .. }, Output::Post { to: b, .. }, Output::Spawn { .. }, Output::Compute { .. }]
            if a == "a" && b == "b"
    ));
    host.join("p1").unwrap();
    host.out.take();
    host.wake_after(10);
    assert_eq!(log(&mut host), ["4 at 10"], "an event for nobody is dropped, a timer is kept");
    assert_eq!(host.out.take(), []);
}

#[test]
fn a_room_whose_task_begun_in_create_is_refused_ends() {
    let mut host = Host::create::<Hall>(1, &packed(&Setup::Everything)).unwrap();
    host.out.pool_is_full = true;
    host.wake_after(0);
    assert!(host.room.is_closed());
}

#[test]
fn an_event_is_encoded_once_for_each_format_in_use() {
    let mut host = hall();
    for format in [Format::Packed, Format::Msgpack, Format::Json, Format::Msgpack] {
        host.join_in("guest", format).unwrap();
    }
    host.out.take();
    ENCODED.set(0);
    send(&mut host, 1, &Do::Say(5));
    assert_eq!(ENCODED.get(), 3);
    assert_eq!(host.out.take(), [event(1, 5), event(2, 5), event(3, b'5'), event(4, 5)]);
}

#[test]
fn an_event_has_the_version_at_which_it_was_sent() {
    let mut host = hall_of(1);
    host.sync();
    host.sync();
    send(&mut host, 1, &Do::Say(5));
    assert!(matches!(host.out.take()[..], [Output::Event { version: 3, .. }]));
}

#[test]
fn a_refused_send_gives_an_error_without_a_number_after_its_events() {
    let mut host = hall_of(2);
    send(&mut host, 2, &Do::SayThenRefuse(3));
    request(&mut host, 2, &Do::SayThenRefuse(4));
    let refusal = |request| Output::Error { link: Link(2), request, error: Error::from("no") };
    assert_eq!(
        host.out.take(),
        [event(2, 3), refusal(None), event(2, 4), refusal(Some(RequestNumber(1)))]
    );
}

#[test]
fn a_send_that_succeeds_is_not_answered() {
    let mut host = hall_of(1);
    send(&mut host, 1, &Do::Hide);
    assert_eq!(host.out.take(), []);
    request(&mut host, 1, &Do::Hide);
    assert_eq!(
        host.out.take(),
        [Output::Reply { link: Link(1), request: RequestNumber(1), payload: vec![0] }]
    );
    assert!(host.room.summary().private);
}

#[test]
fn an_unknown_message_is_refused_by_number_and_by_name() {
    let mut host = hall_of(1);
    let (at, player) = (host.at, PlayerId(1));
    for message in
        [MessageRef::Index(1), MessageRef::Index(u32::MAX), MessageRef::Name("Said".into())]
    {
        host.room.message(at, player, &message, &[], Some(RequestNumber(1)), &mut host.out);
        let [Output::Error { error, .. }] = &host.out.take()[..] else { panic!("one error") };
        assert_eq!(error.code(), ErrorCode::UnknownMessage);
    }
}

#[test]
fn a_payload_that_cannot_be_decoded_is_refused_with_the_message_and_the_reason() {
    let mut host = hall_of(1);
    host.message(PlayerId(1), DO, &[0], Some(RequestNumber(1)));
    let [Output::Error { error, .. }] = &host.out.take()[..] else { panic!("one error") };
    assert_eq!(error.code(), ErrorCode::BadPayload);
    assert_eq!(error.text(), "Do: at byte 1: a varint was expected, 0 bytes remain");
}

#[test]
fn a_message_from_someone_not_in_the_room_does_nothing() {
    let mut host = hall_of(1);
    request(&mut host, 9, &Do::Say(1));
    host.leave(PlayerId(9));
    assert_eq!(host.out.take(), []);
}

#[test]
fn a_player_who_leaves_is_not_listed_and_receives_nothing_more() {
    let mut host = hall_of(2);
    host.leave(PlayerId(2));
    assert_eq!(host.out.take(), []);
    assert_eq!(log(&mut host), ["p2 left, here: false"]);
}

#[test]
fn kicked_players_are_removed_after_the_callback_once_each_in_order() {
    let mut host = hall_of(3);
    let (p2, p3) = (PlayerId(2), PlayerId(3));
    request(&mut host, 1, &Do::Kick(vec![p3, p2, p3, PlayerId(77)]));
    let reply = Output::Reply { link: Link(1), request: RequestNumber(1), payload: vec![0] };
    let kicked = |link| removed(link, ErrorCode::Kicked, "out");
    assert_eq!(host.out.take(), [reply, kicked(3), kicked(2)]);
    assert_eq!(log(&mut host), ["p3 left, here: false", "p2 left, here: false"]);
    assert_eq!(host.room.summary().players, 1);
}

#[test]
fn a_room_that_closes_still_removes_whom_it_kicked() {
    let mut host = hall_of(3);
    send(&mut host, 1, &Do::KickAndClose(PlayerId(2)));
    let kicked = |link, text| removed(link, ErrorCode::Kicked, text);
    let closed = removed(3, ErrorCode::RoomClosed, "the end");
    assert_eq!(host.out.take(), [kicked(2, "out"), kicked(1, "too late"), closed]);
    assert!(host.room.is_closed());
}

#[test]
fn a_refused_player_receives_the_answer_to_the_join_alone() {
    let mut host = hall_of(1);
    let refused = host.join("refused").unwrap_err();
    assert_eq!((refused.code(), refused.text()), (ErrorCode::Room(1007), "no"));
    assert_eq!(host.join("kicked").unwrap_err(), Error::new(ErrorCode::Kicked, "not you"));
    assert_eq!(host.room.summary().players, 1);
    assert!(host.removed().is_empty());
    assert_eq!(log(&mut host), ["kicked left, here: false"], "whom join took in, leave sees off");
}

#[test]
fn a_room_that_closes_in_join_takes_the_player_in_before_it_ends() {
    let mut host = hall_of(1);
    assert_eq!(host.join("last"), Ok(PlayerId(2)));
    assert_eq!(host.room.stage(), Stage::Closing);
    assert_eq!(host.join("later").unwrap_err().code(), ErrorCode::RoomClosed);
    host.follow_up();
    assert_eq!(host.removed(), [(1, ErrorCode::RoomClosed), (2, ErrorCode::RoomClosed)]);
}

#[test]
fn a_refused_join_does_not_keep_an_empty_room_open() {
    let mut host = hall();
    host.wake_after(999);
    assert!(host.join("refused").is_err());
    assert_eq!(host.room.wake_at(), Some(Duration::from_millis(1000)));
    host.wake_after(1);
    assert!(host.room.is_closed());
}

#[test]
fn a_room_type_may_have_other_settings_than_the_attribute() {
    let usual = RoomType::of::<Hall>("test");
    let settings =
        Settings { tick_hz: 60, sync_hz: 30, capacity: 1, empty_ms: 5_000, ..usual.settings };
    assert_ne!(usual.settings, settings);
    let mut host = Host::create_of(RoomType { settings, ..usual }, 1, &[]).unwrap();
    assert_eq!(
        (host.room.tick_hz(), host.room.sync_hz(), host.room.summary().capacity),
        (60, 30, 1)
    );
    assert_eq!(host.room.wake_at(), Some(Duration::from_secs(5)));
    assert_eq!(host.join("p1"), Ok(PlayerId(1)));
    assert_eq!(host.join("p2").unwrap_err().code(), ErrorCode::RoomFull);
}

#[test]
fn a_seat_is_held_from_the_join_on() {
    let mut host = hall_of(4);
    assert_eq!(host.room.summary().players, 4);
    assert_eq!(host.join("p5").unwrap_err().code(), ErrorCode::RoomFull);
    host.leave(PlayerId(1));
    assert_eq!(host.join("p5"), Ok(PlayerId(5)), "a number is not used again");
    send(&mut host, 5, &Do::Players);
    assert_eq!(log(&mut host)[1..], ["p2", "p3", "p4", "p5"]);
}

#[test]
fn a_full_pool_is_an_error_that_the_room_sees() {
    let mut host = hall_of(1);
    host.out.pool_is_full = true;
    request(&mut host, 1, &Do::Compute);
    let [Output::Error { error, .. }] = &host.out.take()[..] else { panic!("one error") };
    assert_eq!(error.code(), ErrorCode::Busy);
    // The task never began: its number is unknown.
    host.mail(Mail::Done { task: 1, message: InternalMessage::of(&Rang(1)) });
    assert!(log(&mut host).is_empty());
}

#[test]
fn timers_due_in_one_wake_fire_by_time_then_in_the_order_set() {
    let mut host = hall_of(1);
    for ms in [30, 10, 20, 10] {
        send(&mut host, 1, &Do::After(ms));
    }
    assert_eq!(host.room.wake_at(), Some(Duration::from_millis(10)));
    host.wake_after(35);
    assert_eq!(log(&mut host), ["10 at 35", "10 at 35", "20 at 35", "30 at 35"]);
    assert_eq!(host.room.wake_at(), None);
}

#[test]
fn a_timer_of_zero_fires_at_the_next_wake_and_not_in_the_same() {
    let mut host = hall_of(1);
    send(&mut host, 1, &Do::After(7));
    host.wake_after(7);
    assert_eq!(log(&mut host), ["7 at 7"]);
    host.wake_after(1);
    assert_eq!(log(&mut host), ["7 at 7", "8 at 8"]);
}

#[test]
fn a_missed_period_is_skipped_and_the_next_is_on_time() {
    let mut host = hall_of(1);
    host.wake_after(50);
    send(&mut host, 1, &Do::Beat);
    host.wake_after(1_000);
    assert_eq!(log(&mut host), ["0 at 1050"]);
    assert_eq!(host.room.wake_at(), Some(Duration::from_millis(1150)));
}

#[test]
fn one_timer_too_many_closes_the_room() {
    let mut host = hall_of(1);
    send(&mut host, 1, &Do::TimersUpTo(TIMERS_MAX as u32));
    assert!(!host.room.is_closed());
    send(&mut host, 1, &Do::TimersUpTo(1));
    assert_eq!(host.removed(), [(1, ErrorCode::RoomFailed)]);
}

#[test]
fn one_background_task_too_many_is_refused() {
    let mut host = hall_of(1);
    send(&mut host, 1, &Do::WorkUpTo(PENDING_MAX as u32));
    host.out.take();
    for what in [Do::Compute, Do::WorkUpTo(1)] {
        request(&mut host, 1, &what);
        let [Output::Error { error, .. }] = &host.out.take()[..] else { panic!("one error") };
        assert_eq!(error.code(), ErrorCode::Limit);
    }
}

#[test]
fn metadata_has_limits() {
    let mut host = hall_of(1);
    let mut set = |key: &str, value: &str| {
        request(&mut host, 1, &Do::Metadata(key.into(), value.into()));
        let full = host.room.summary().metadata.len();
        let code = match &host.out.take()[..] {
            [Output::Reply { .. }] => None,
            [Output::Error { error, .. }] => Some(error.code()),
            other => panic!("{other:?}"),
        };
        (code, full)
    };
    let (longest, too_long) = ("x".repeat(METADATA_BYTES_MAX), "x".repeat(METADATA_BYTES_MAX + 1));
    assert_eq!(set(&longest, &longest), (None, 1));
    assert_eq!(set("key", &too_long), (Some(ErrorCode::Limit), 1));
    assert_eq!(set(&too_long, "value"), (Some(ErrorCode::Limit), 1));
    for number in 2..=METADATA_MAX {
        assert_eq!(set(&number.to_string(), "value"), (None, number));
    }
    assert_eq!(set("one more", "value"), (Some(ErrorCode::Limit), METADATA_MAX));
    assert_eq!(set("2", "another"), (None, METADATA_MAX), "what is there may be changed");
    assert_eq!(set("2", ""), (None, METADATA_MAX - 1), "an empty value takes it away");
}

#[test]
fn time_does_not_go_back() {
    let mut host = hall_of(1);
    host.wake_after(100);
    host.tick(1);
    host.at = Duration::from_millis(40);
    host.mail(Mail::Told { from: room_named("x"), message: InternalMessage::of(&Rang(1)) });
    assert_eq!(log(&mut host), ["1 at 100"]);
}
