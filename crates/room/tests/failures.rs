//! A failure of a room's code stays in that room: its players receive an error, its host goes on.

use crate::support;

use playfield_room::{
    Answer, AskId, Context, EndReason, Handle, InternalMessage, LeaveReason, Mail, Message, On,
    Player, PlayerId, Result, Room, room,
};
use playfield_state::{Data, DecodeError, Format, Map, State, TreeWriter};
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::{ErrorCode, RequestNumber};
use support::{Host, Output, room_named};

/// The place where the room's code panics.
#[derive(State, Data, Clone, Copy, Debug, Default, PartialEq)]
enum Where {
    #[default]
    Nowhere,
    Options,
    Create,
    Join,
    Leave,
    Tick,
    Handle,
    InternalMessage,
    Answer,
    Reply,
    Diff,
    Encode,
    Drop,
}

/// A value of the state that panics when it is compared or encoded.
#[derive(State, Clone, Debug, Default)]
enum Mine {
    #[default]
    Safe,
    InDiff,
    InEncode,
}

impl Data for Mine {
    fn schema() -> Type {
        Type::Bool
    }
    fn encode(&self, out: &mut Vec<u8>) {
        assert!(!matches!(self, Self::InEncode), "a mine in the encoder");
        false.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bool::decode(reader).map(|_| Self::Safe)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        assert!(!matches!(self, Self::InEncode), "a mine in the encoder");
        false.to_tree(out);
    }
    fn from_json(value: &serde_json::Value) -> Result<Self, DecodeError> {
        bool::from_json(value).map(|_| Self::Safe)
    }
    fn same(&self, other: &Self) -> bool {
        assert!(
            !matches!(self, Self::InDiff) && !matches!(other, Self::InDiff),
            "a mine in the comparison"
        );
        matches!((self, other), (Self::Safe, Self::Safe) | (Self::InEncode, Self::InEncode))
    }
}

/// Options whose decoder panics when they say so.
#[derive(Default)]
struct Setup(Where);

impl Data for Setup {
    fn schema() -> Type {
        <Where as Data>::schema()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = Where::decode(reader)?;
        assert!(at != Where::Options, "a mine in the options");
        Ok(Self(at))
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        self.0.to_tree(out);
    }
    fn from_json(value: &serde_json::Value) -> Result<Self, DecodeError> {
        Where::from_json(value).map(Self)
    }
}

#[derive(State, Default)]
struct Field {
    #[sync(hidden)]
    at: Where,
    mine: Mine,
    players: Map<PlayerId, u32>,
}

impl Drop for Field {
    fn drop(&mut self) {
        assert!(!self.is_at(Where::Drop) || std::thread::panicking(), "a mine in the destructor");
    }
}

impl Field {
    fn is_at(&self, at: Where) -> bool {
        self.at == at
    }

    fn pass(&self, at: Where) {
        assert!(!self.is_at(at), "a mine in {at:?}");
    }
}

#[derive(Message)]
#[reply(Loaded)]
struct Poke;

#[derive(Message)]
struct Arm;

#[derive(Message)]
#[reply(u32)]
struct Ring;

/// A reply that panics when it is encoded, if it is loaded.
struct Loaded(bool);

impl Data for Loaded {
    fn schema() -> Type {
        Type::Bool
    }
    fn encode(&self, out: &mut Vec<u8>) {
        assert!(!self.0, "a mine in the reply");
        false.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bool::decode(reader).map(Self)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        self.0.to_tree(out);
    }
    fn from_json(value: &serde_json::Value) -> Result<Self, DecodeError> {
        bool::from_json(value).map(Self)
    }
}

#[room(messages(Poke, Arm), internal(Ring), asks(Ring), tick_hz = 10)]
impl Room for Field {
    type Options = Setup;

    fn create(Setup(at): Setup, _: &mut Context<Self>) -> Result<Self> {
        let mut field = Self::default();
        field.at = at;
        field.pass(Where::Create);
        Ok(field)
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), 0);
        if player.name() == "last" {
            cx.ask("other", &Ring);
            self.pass(Where::Join);
        }
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.pass(Where::Leave);
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.pass(Where::Tick);
    }
}

impl Handle<Poke> for Field {
    fn handle(&mut self, _: Poke, _: &Player, _: &mut Context<Self>) -> Result<Loaded> {
        self.pass(Where::Handle);
        Ok(Loaded(self.is_at(Where::Reply)))
    }
}

impl Handle<Arm> for Field {
    fn handle(&mut self, _: Arm, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.mine = if self.is_at(Where::Diff) { Mine::InDiff } else { Mine::InEncode };
        Ok(())
    }
}

impl On<Ring> for Field {
    fn on(&mut self, _: Ring, _: &mut Context<Self>) -> Result<u32> {
        self.pass(Where::InternalMessage);
        Ok(1)
    }
}

impl Answer<Ring> for Field {
    fn answer(&mut self, _: AskId, _: Result<u32>, _: &mut Context<Self>) {
        self.pass(Where::Answer);
    }
}

const POKE: u32 = 0;
const ARM: u32 = 1;
const UNIT: [u8; 1] = [0];

/// A room that panics there, and two players in it, with links 1 and 2.
fn field(at: Where) -> Host {
    let mut host = created(at).unwrap();
    host.join("first").unwrap();
    host.join("second").unwrap();
    host.sync();
    host.out.take();
    host
}

fn created(at: Where) -> Result<Host> {
    let mut options = Vec::new();
    at.encode(&mut options);
    Host::create::<Field>(1, &options)
}

fn ring() -> InternalMessage {
    InternalMessage::of(&Ring)
}

/// These links received the error, once each, and from now on the room does nothing.
fn assert_failed(host: &mut Host, links: &[u64]) {
    assert!(host.room.is_closed(), "a room that panicked is closed");
    let expected: Vec<_> = links.iter().map(|link| (*link, ErrorCode::RoomFailed)).collect();
    assert_eq!(host.removed(), expected, "each seated player receives it once");
    assert_is_over(host);
}

/// Every call does nothing, or returns that the room has ended.
fn assert_is_over(host: &mut Host) {
    let (first, mut body) = (PlayerId(1), Vec::new());
    assert_eq!(host.room.summary().players, 0);
    assert_eq!(host.room.wake_at(), None);
    assert!(!host.room.wants_sync());
    assert_eq!(host.join("late").unwrap_err().code(), ErrorCode::RoomNotFound);
    host.message(first, POKE, &UNIT, Some(RequestNumber(1)));
    host.leave(first);
    host.tick(9);
    host.wake_after(100_000);
    let version = host.room.version();
    host.sync();
    assert_eq!(host.room.version(), version);
    assert!(!host.room.patch(first, 1, Format::Packed, &mut body));
    host.room.snapshot(first, Format::Json, &mut body);
    assert!(body.is_empty());
    host.mail(Mail::Told { from: room_named("x"), message: ring() });
    host.mail(Mail::Panicked { task: 1 });
    host.close(EndReason::Drained, "");
    assert_eq!(host.out.take(), []);
}

#[test]
fn a_panic_while_a_room_is_created_refuses_the_creation() {
    for at in [Where::Options, Where::Create] {
        let error = created(at).err().unwrap();
        assert_eq!(error.code(), ErrorCode::Internal, "{at:?}: {error}");
    }
}

#[test]
fn a_panic_in_join_fails_the_join_and_the_room() {
    let mut host = field(Where::Join);
    assert_eq!(host.join("last").unwrap_err().code(), ErrorCode::RoomFailed);
    // The third link receives nothing but the error.
    assert_failed(&mut host, &[1, 2]);
}

#[test]
fn a_panic_in_leave_closes_the_room_for_those_who_stayed() {
    let mut host = field(Where::Leave);
    host.leave(PlayerId(1));
    assert_failed(&mut host, &[2]);
}

#[test]
fn a_panic_in_tick_closes_the_room() {
    let mut host = field(Where::Tick);
    host.tick(1);
    assert_failed(&mut host, &[1, 2]);
}

#[test]
fn a_panic_in_a_handler_or_in_its_reply_closes_the_room() {
    for at in [Where::Handle, Where::Reply] {
        let mut host = field(at);
        host.message(PlayerId(1), POKE, &UNIT, Some(RequestNumber(7)));
        assert_failed(&mut host, &[1, 2]);
    }
}

#[test]
fn a_panic_in_an_internal_message_closes_the_room_and_answers_the_request() {
    let mut host = field(Where::InternalMessage);
    host.mail(Mail::Asked { from: room_named("other"), ask: 5, message: ring() });
    let [.., Output::Post { to, mail: Mail::Answered { ask: 5, reply: Err(error) } }] =
        &host.out.outputs[..]
    else {
        panic!("{:?}", host.out.outputs)
    };
    assert_eq!((to.as_str(), error.code()), ("other", ErrorCode::RoomFailed));
    assert_failed(&mut host, &[1, 2]);
}

#[test]
fn a_panic_in_an_answer_closes_the_room() {
    let mut host = field(Where::Answer);
    host.join("last").unwrap();
    host.out.take();
    host.mail(Mail::Answered { ask: 1, reply: Ok(vec![1]) });
    assert_failed(&mut host, &[1, 2, 3]);
}

#[test]
fn a_panic_while_the_state_is_compared_closes_the_room() {
    let mut host = field(Where::Diff);
    host.message(PlayerId(1), ARM, &UNIT, None);
    host.sync();
    assert_failed(&mut host, &[1, 2]);
}

#[test]
fn a_panic_while_a_patch_or_a_snapshot_is_written_closes_the_room_at_its_next_wake() {
    for format in Format::ALL {
        for snapshot in [false, true] {
            let mut host = field(Where::Encode);
            let since = host.room.version();
            host.message(PlayerId(1), ARM, &UNIT, None);
            host.sync();
            let mut body = b"before".to_vec();
            if snapshot {
                host.room.snapshot(PlayerId(1), format, &mut body);
            } else {
                assert!(!host.room.patch(PlayerId(1), since, format, &mut body));
            }
            assert_eq!(body, b"before", "nothing half written is left");
            assert!(
                !host.room.patch(PlayerId(2), since, format, &mut body),
                "its state is not trusted again"
            );
            assert_eq!(host.room.wake_at(), Some(host.at));
            host.wake_after(0);
            assert_failed(&mut host, &[1, 2]);
        }
    }
}

#[test]
fn a_panic_in_a_destructor_stays_in_the_room() {
    let mut host = field(Where::Drop);
    host.close(EndReason::Drained, "the end");
    assert_eq!(host.removed(), [(1, ErrorCode::RoomClosed), (2, ErrorCode::RoomClosed)]);
    assert_is_over(&mut host);

    // A host may drop a room that has not ended.
    drop(field(Where::Drop));
}

#[test]
fn a_background_task_that_panicked_closes_only_its_own_room() {
    let mut host = field(Where::Nowhere);
    host.mail(Mail::Panicked { task: 99 });
    host.mail(Mail::Done { task: 99, message: ring() });
    host.mail(Mail::Answered { ask: 99, reply: Ok(vec![1]) });
    assert!(!host.room.is_closed());
    assert_eq!(host.out.take(), []);
}

#[test]
fn an_answer_that_cannot_be_decoded_is_delivered_as_an_error() {
    let mut host = field(Where::Nowhere);
    host.join("last").unwrap();
    host.mail(Mail::Answered { ask: 1, reply: Ok(vec![0xFF]) });
    assert!(!host.room.is_closed());
}

#[test]
fn a_request_to_a_room_that_has_ended_is_answered_with_an_error() {
    let mut host = field(Where::Nowhere);
    host.close(EndReason::Drained, "the end");
    host.out.take();
    host.mail(Mail::Asked { from: room_named("other"), ask: 1, message: ring() });
    let [Output::Post { mail: Mail::Answered { reply: Err(error), .. }, .. }] =
        &host.out.take()[..]
    else {
        panic!("one answer")
    };
    assert_eq!(error.code(), ErrorCode::RoomNotFound);
}
