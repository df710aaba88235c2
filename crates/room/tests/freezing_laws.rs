//! The law of freezing: a room that is frozen at any call, and goes on from the bytes, sends what
//! it would have sent otherwise, byte for byte.

use std::time::Duration;

use playfield_room::frozen::{FreezeError, FrozenWriter};
use playfield_room::{
    AnyRoom, Claims, Entrant, InternalMessage, Link, Mail, MemoryStore, PlayerId, RoomType,
    SeatFor, split_reservation,
};
use playfield_state::{Data, Format};
use playfield_wire::RequestNumber;
use proptest::prelude::*;

use crate::support::park::{Act, Gong, Park, Quick};
use crate::support::{Host, Output, room_named};

/// One input.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Freezes the room, or syncs it. What follows must not tell.
    Freeze,
    Join(Format, u8),
    Leave(u8),
    Reserve(u8),
    Act(u8, Act, bool),
    Quick(u8, u8),
    Wait(u8),
    Tick,
    Sync,
    Answer(u8, bool),
    Told(u8),
    Asked(u8),
    Measured(u8, u16),
    Lost(u8),
    Returned(u8),
    Done,
}

fn acts() -> impl Strategy<Value = Act> {
    let (a, b) = (0..8_u8, any::<u8>());
    let few = 0..6_u8;
    prop_oneof![
        4 => Just(Act::Draw),
        3 => Just(Act::Roll),
        8 => (a.clone(), a.clone()).prop_map(|(x, y)| Act::Move(x, y)),
        8 => (few.clone(), a.clone(), a.clone()).prop_map(|(one, x, y)| Act::Beast(one, x, y)),
        4 => few.clone().prop_map(Act::Gone),
        5 => (few.clone(), few.clone()).prop_map(|(one, food)| Act::Feed(one, food)),
        5 => (few.clone(), few.clone()).prop_map(|(one, floor)| Act::Note(one, floor)),
        3 => b.prop_map(Act::Log),
        6 => (0..3_u8, few.clone(), b).prop_map(|(ride, seat, by)| Act::Ride(ride, seat, by)),
        4 => (0..3_u8).prop_map(Act::Stop),
        4 => few.clone().prop_map(Act::Tag),
        2 => b.prop_map(Act::Score),
        4 => (few.clone(), any::<bool>()).prop_map(|(one, is_there)| Act::Spot(one, is_there)),
        5 => (few, b).prop_map(|(thing, count)| Act::Bag(thing, count)),
        2 => b.prop_map(Act::Shout),
        2 => (a.clone(), b).prop_map(|(to, what)| Act::Whisper(to, what)),
        4 => (b, b).prop_map(|(ms, what)| Act::After(ms, what)),
        2 => b.prop_map(Act::Every),
        3 => b.prop_map(Act::Cancel),
        1 => b.prop_map(Act::Work),
        1 => b.prop_map(Act::Look),
        4 => Just(Act::Defer),
        3 => b.prop_map(Act::Answer),
        3 => b.prop_map(Act::Ask),
        1 => b.prop_map(Act::Tell),
        1 => a.clone().prop_map(Act::Kick),
        3 => a.prop_map(Act::Ping),
        1 => Just(Act::Turn(true)),
        2 => Just(Act::Turn(false)),
        1 => any::<bool>().prop_map(Act::Hide),
        3 => b.prop_map(Act::Keep),
        1 => b.prop_map(Act::Name),
        1 => Just(Act::Found),
        1 => Just(Act::Save),
        1 => Just(Act::TrySave),
        1 => b.prop_map(Act::Publish),
        1 => Just(Act::Refuse),
        2 => Just(Act::Sync),
    ]
}

pub(crate) fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let player = 1..9_u8;
    let format = proptest::sample::select(&Format::ALL);
    let input = prop_oneof![
        8 => Just(Input::Freeze),
        6 => (format, 0..6_u8).prop_map(|(format, who)| Input::Join(format, who)),
        1 => player.clone().prop_map(Input::Leave),
        2 => any::<u8>().prop_map(Input::Reserve),
        30 => (player.clone(), acts(), any::<bool>()).prop_map(|(who, act, ask)| Input::Act(who, act, ask)),
        1 => player.clone().prop_map(|who| Input::Act(who, Act::Close, false)),
        5 => (player.clone(), any::<u8>()).prop_map(|(who, what)| Input::Quick(who, what)),
        6 => any::<u8>().prop_map(Input::Wait),
        3 => Just(Input::Tick),
        6 => Just(Input::Sync),
        2 => (0..20_u8, any::<bool>()).prop_map(|(ask, well)| Input::Answer(ask, well)),
        2 => any::<u8>().prop_map(Input::Told),
        3 => any::<u8>().prop_map(Input::Asked),
        2 => (player.clone(), any::<u16>()).prop_map(|(who, ms)| Input::Measured(who, ms)),
        3 => player.clone().prop_map(Input::Lost),
        3 => player.prop_map(Input::Returned),
        6 => Just(Input::Done),
    ];
    prop::collection::vec(input, 1..100)
}

/// For a player and a format: a patch, a snapshot and the digest.
type Bodies = (Option<Vec<u8>>, Vec<u8>, Option<u64>);

/// All that a room shows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shown {
    pub(crate) outputs: Vec<Output>,
    facts: Vec<String>,
    bodies: Vec<Bodies>,
    saves: Option<Vec<u8>>,
}

pub(crate) struct Play {
    pub(crate) host: Host,
    store: MemoryStore,
    freezes: bool,
    froze: usize,
    ticks: u64,
    pub(crate) requests: u32,
    /// Copies have a version from here on.
    since: u64,
    /// A reservation.
    kept: Option<String>,
}

impl Play {
    pub(crate) fn new(seed: u64, freezes: bool) -> Self {
        let store = MemoryStore::new();
        let kept = Some(("key", std::sync::Arc::new(store.clone()) as _));
        let host = Host::create_kept(RoomType::of::<Park>("test"), seed, &[], kept).unwrap();
        let (ticks, requests, since) = (0, 0, 1);
        let mut play = Self { host, store, freezes, froze: 0, ticks, requests, since, kept: None };
        // The room begins when its save is loaded.
        play.host.wake_after(0);
        play.host.finish_work();
        play
    }

    /// Freezes a room without work in flight, and continues it in the result of `wrap`.
    pub(crate) fn go_on_in(&mut self, wrap: impl FnOnce(Box<dyn AnyRoom>) -> Box<dyn AnyRoom>) {
        let host = &mut self.host;
        let mut form = FrozenWriter::new();
        host.room.freeze(host.at, &mut form, &mut host.out).unwrap();
        let (room_type, frozen) = (RoomType::of::<Park>("test"), form.finish().unwrap());
        host.thaw_in(room_type, &frozen, Some(self.store.clone()), wrap);
    }

    fn freeze(&mut self) {
        let host = &mut self.host;
        if self.freezes {
            let mut form = FrozenWriter::new();
            match host.room.freeze(host.at, &mut form, &mut host.out) {
                Ok(()) => {
                    self.froze += 1;
                    let frozen = form.finish().unwrap();
                    host.thaw(RoomType::of::<Park>("test"), &frozen, Some(self.store.clone()));
                }
                Err(FreezeError::Busy(_)) => host.sync(),
                Err(FreezeError::Ended) => {}
                Err(error) => panic!("{error}"),
            }
        } else if !host.room.is_closed() {
            host.sync();
        }
        host.follow_up();
        self.since = self.host.room.version();
    }

    fn join(&mut self, format: Format, who: u8) {
        let reservation = self.kept.take_if(|_| who == 0);
        let reservation = reservation.as_deref().and_then(split_reservation);
        let entrant = Entrant {
            link: Link(0),
            format,
            name: if who == 0 { "kept".into() } else { "guest".into() },
            user: (who > 3).then(|| format!("user {who}")),
            claims: match who {
                5 => Claims::from_json(r#"{"team":"red","level":[1,2.5,null]}"#).unwrap(),
                _ => Claims::default(),
            },
            seat: (who == 2).then(|| "north".into()),
            reservation: reservation.map(|(_, secret)| secret.to_owned()),
        };
        let joined = self.host.enter(entrant);
        self.host
            .out
            .outputs
            .push(Output::Post { to: format!("{joined:?}"), mail: Mail::Panicked { task: 0 } });
    }

    fn message(&mut self, player: u8, index: u32, message: &impl Data, is_request: bool) {
        // The format is the player's, so some of it is noise, which is input as well.
        let mut payload = Vec::new();
        message.encode(&mut payload);
        self.requests += 1;
        let request = is_request.then_some(RequestNumber(self.requests));
        self.host.message(PlayerId(player.into()), index, &payload, request);
    }

    pub(crate) fn take(&mut self, input: &Input) {
        let player = |player: u8| PlayerId(player.into());
        let (at, host) = (self.host.at, &mut self.host);
        match *input {
            Input::Freeze => self.freeze(),
            Input::Join(format, who) => self.join(format, who),
            Input::Leave(who) => host.leave(player(who)),
            Input::Reserve(ms) => {
                let (who, wait) = (SeatFor::Name("kept".into()), Duration::from_millis(ms.into()));
                let reserved = host.room.reserve(at, who, wait, &mut host.out);
                self.kept = reserved.ok().map(|seat| seat.as_str().to_owned()).or(self.kept.take());
            }
            Input::Act(who, ref act, ask) => self.message(who, 0, act, ask),
            Input::Quick(who, what) => self.message(who, 1, &Quick(what), true),
            Input::Wait(ms) => host.wake_after(ms.into()),
            Input::Tick => {
                self.ticks += 1;
                host.tick(self.ticks);
            }
            Input::Sync => host.sync(),
            Input::Answer(ask, well) => {
                let reply = if well { Ok(vec![3]) } else { Err("no".into()) };
                host.mail(Mail::Answered { ask: ask.into(), reply });
            }
            Input::Told(what) => host.mail(Mail::Told {
                from: room_named("x"),
                message: InternalMessage::of(&Gong(what)),
            }),
            Input::Asked(what) => host.mail(Mail::Asked {
                from: room_named("x"),
                ask: what.into(),
                message: InternalMessage::of(&Gong(what)),
            }),
            Input::Measured(who, ms) => {
                // Whole, as rooms that are recorded are told.
                let round_trip = Duration::from_millis(ms.into());
                host.room.measured(at, player(who), round_trip, &mut host.out);
            }
            Input::Lost(who) => host.lost(player(who)),
            Input::Returned(who) => {
                let away = Duration::from_secs(1);
                host.room.returned(at, player(who), away, &mut host.out);
            }
            Input::Done => host.finish_work(),
        }
    }

    pub(crate) fn note(&mut self, shown: &mut Shown) {
        let room = &mut self.host.room;
        let facts =
            (room.summary(), room.wake_at(), room.version(), room.stage(), room.wants_sync());
        shown.facts.push(format!("{facts:?} {:?}", room.players(&mut |_| true)));
        for viewer in (1..9).map(PlayerId) {
            for format in Format::ALL {
                let (mut patch, mut snapshot) = (Vec::new(), Vec::new());
                let any = room.patch(viewer, self.since, format, &mut patch);
                room.snapshot(viewer, format, &mut snapshot);
                let digest = room.digest(viewer, format);
                shown.bodies.push((any.then_some(patch), snapshot, digest));
            }
            shown.facts.push(room.left_out(viewer).to_string());
        }
        shown.outputs.extend(self.host.out.take());
    }
}

fn play(seed: u64, inputs: &[Input], freezes: bool) -> (Shown, usize) {
    let mut play = Play::new(seed, freezes);
    let mut shown = Shown::default();
    for input in inputs {
        play.take(input);
        play.note(&mut shown);
    }
    shown.saves = play.store.get("test", "key");
    (shown, play.froze)
}

pub(crate) fn cases() -> u32 {
    std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

/// The law says nothing about a room that is always busy.
#[test]
fn rooms_of_the_law_are_frozen() {
    let mut inputs = Vec::new();
    for act in [Act::Draw, Act::Roll, Act::After(9, 1), Act::Defer, Act::Ask(1), Act::Keep(1)] {
        inputs.push(Input::Join(Format::Packed, 1));
        inputs.extend((1..9).map(|player| Input::Act(player, act.clone(), true)));
        inputs.extend([Input::Freeze, Input::Freeze]);
    }
    let (shown, froze) = play(1, &inputs, true);
    assert_eq!(froze, 12);
    let replies = |output: &&Output| matches!(output, Output::Reply { .. });
    assert!(shown.outputs.iter().filter(replies).count() > 5);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn freezing_shows_in_no_byte(seed: u64, inputs in inputs()) {
        let ((frozen, _), (other, _)) = (play(seed, &inputs, true), play(seed, &inputs, false));
        for (place, (one, two)) in frozen.facts.iter().zip(&other.facts).enumerate() {
            prop_assert_eq!(one, two, "fact {}", place);
        }
        for (one, two) in frozen.outputs.iter().zip(&other.outputs) {
            prop_assert_eq!(one, two);
        }
        prop_assert_eq!(frozen.outputs.len(), other.outputs.len());
        prop_assert_eq!(&frozen.saves, &other.saves);
        prop_assert!(frozen == other, "bodies differ");
    }
}
