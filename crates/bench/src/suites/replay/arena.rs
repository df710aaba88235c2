//! The arena of the examples, with players who steer, driven without sockets: a host's part of a
//! room's work, patches included.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_room::{
    AnyRoom, Birth, Claims, Completion, Context, Creator, Entrant, Error, EventHeader, Handle, Job,
    KeyOrigin, LeaveReason, Link, Mail, Message, NewRoom, Player, Publication, Push, Result, Room,
    RoomOutput, RoomType, Task, room,
};
use playfield_state::{Data, Format, Map, PlayerId, State};
use playfield_wire::RequestNumber;
use playfield_wire::message::MessageRef;

use crate::harness::dice::Dice;

const SIZE: f32 = 1_000.0;
const STEP: f32 = 5.0;
pub(super) const TICKS: u64 = 30;
const SYNCS: u64 = 20;

#[derive(State, Default)]
pub(super) struct Arena {
    #[sync(near = [x, y], viewer = ships, radius = 150.0, hysteresis = 20.0, nearest = 64)]
    ships: Map<PlayerId, Ship>,
}

#[derive(State, Default)]
struct Ship {
    x: f32,
    y: f32,
    #[sync(hidden)]
    angle: f32,
    round_trip_ms: Option<u32>,
}

#[derive(Message)]
struct Steer {
    angle: f32,
}

#[room(messages(Steer), tick_hz = 30, sync_hz = 20, capacity = 300, round_trip_ms = 2_000)]
impl Room for Arena {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let mut place = || cx.rng().below(SIZE as u64) as f32;
        let (x, y) = (place(), place());
        self.ships.insert(player.id(), Ship { x, y, ..Ship::default() });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.ships.remove(&player.id());
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        for (player, ship) in &mut self.ships {
            let round_trip = cx.round_trip(*player);
            ship.round_trip_ms = round_trip.map(|time| time.as_millis() as u32);
            ship.x = (ship.x + STEP * ship.angle.cos()).clamp(0.0, SIZE);
            ship.y = (ship.y + STEP * ship.angle.sin()).clamp(0.0, SIZE);
        }
    }
}

impl Handle<Steer> for Arena {
    fn handle(&mut self, steer: Steer, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.ships.get_mut(&player.id()).ok_or("you have no ship")?.angle = steer.angle;
        Ok(())
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Arena>("arena")
}

/// A room, its players, and the time.
pub(super) struct Driven {
    pub(super) room: Box<dyn AnyRoom>,
    players: Vec<PlayerId>,
    /// The version of each player's copy.
    version: u64,
    at: Duration,
    /// Slices of a sixtieth of a second.
    slice: u64,
    steers_per_s: f64,
    dice: Dice,
    body: Vec<u8>,
    /// The bytes of all patches.
    pub(super) sent: u64,
    /// The hash of the state after each of these ticks, once the tick has run.
    pub(super) hashes: BTreeMap<u64, Option<u64>>,
}

impl Driven {
    pub(super) fn new(
        players: u64,
        steers_per_s: f64,
        wrap: impl FnOnce(Box<dyn AnyRoom>) -> Box<dyn AnyRoom>,
    ) -> Self {
        let of = room_type();
        let birth = Birth {
            id: "arena".into(),
            room_type: of.name.clone(),
            key: None,
            key_origin: KeyOrigin::Chosen,
            seed: 7,
            settings: of.settings,
            private: false,
            options: &[],
            format: Format::Packed,
            creator: Creator::Node,
            store: None,
            seats: Vec::new(),
        };
        let mut room = wrap((of.create)(birth).expect("the arena takes all"));
        let join = |number: u64| {
            let entrant = Entrant {
                link: Link(number),
                format: Format::Packed,
                name: format!("player {number}"),
                user: None,
                claims: Claims::default(),
                seat: None,
                reservation: None,
            };
            let joined = room.join(Duration::ZERO, entrant, &mut Nowhere);
            assert!(joined.is_ok(), "the arena has seats for all");
            PlayerId(number)
        };
        let players: Vec<_> = (1..=players).map(join).collect();
        room.sync(Duration::ZERO, &mut Nowhere);
        let mut body = Vec::new();
        for player in &players {
            room.snapshot(*player, Format::Packed, &mut body);
        }
        let version = room.version();
        let dice = Dice(11);
        let (at, hashes) = (Duration::ZERO, BTreeMap::new());
        Self { room, players, version, at, slice: 0, steers_per_s, dice, body, sent: 0, hashes }
    }

    /// Lets a time pass.
    pub(super) fn run(&mut self, seconds: u64) {
        const SLICES: u64 = 60;
        for _ in 0..seconds * SLICES {
            self.slice += 1;
            // A turn of a shard is never on time to the nanosecond.
            let late = self.dice.below(300_000);
            self.at = Duration::from_nanos(self.slice * 1_000_000_000 / SLICES + late);
            self.steer();
            if self.slice.is_multiple_of(SLICES / TICKS) {
                let number = self.slice / (SLICES / TICKS);
                self.room.tick(self.at, number, &mut Nowhere);
                if let Some(hash) = self.hashes.get_mut(&number) {
                    *hash = self.room.state_hash();
                }
            }
            if self.slice.is_multiple_of(2 * SLICES) {
                for place in 0..self.players.len() {
                    // Whole, as a recording has them, so that both rooms see the same.
                    let time = Duration::from_millis(20 + self.dice.below(20));
                    self.room.measured(self.at, self.players[place], time, &mut Nowhere);
                }
            }
            if self.slice.is_multiple_of(SLICES / SYNCS) {
                self.sync();
            }
        }
    }

    /// Each player steers as often as that, at times of their own.
    fn steer(&mut self) {
        let chance = self.steers_per_s / 60.0;
        for place in 0..self.players.len() {
            if self.dice.fraction() >= chance {
                continue;
            }
            let angle = self.dice.fraction() as f32 * std::f32::consts::TAU;
            self.body.clear();
            Steer { angle }.encode(&mut self.body);
            // Input comes in a turn of its own.
            self.at += Duration::from_nanos(10_000 + self.dice.below(400_000));
            let (player, message) = (self.players[place], MessageRef::Index(0));
            self.room.message(self.at, player, &message, &self.body, None, &mut Nowhere);
        }
    }

    fn sync(&mut self) {
        self.room.sync(self.at, &mut Nowhere);
        for player in &self.players {
            self.body.clear();
            self.room.patch(*player, self.version, Format::Packed, &mut self.body);
            self.sent += self.body.len() as u64;
        }
        self.version = self.room.version();
    }

    pub(super) fn tick(&self) -> u64 {
        self.slice / 2
    }
}

/// Takes what a room sends.
struct Nowhere;

impl RoomOutput for Nowhere {
    fn reply(&mut self, _: Link, _: RequestNumber, _: &[u8]) {}
    fn error(&mut self, _: Link, _: Option<RequestNumber>, _: &Error) {}
    fn event(&mut self, _: Link, _: EventHeader, _: &[u8]) {}
    fn removed(&mut self, _: Link, _: &Error) {}
    fn admitted(&mut self, _: Link, _: PlayerId) {}
    fn refused(&mut self, _: Link, _: &Error) {}

    fn spawn(&mut self, _: u64, _: Task) -> Result<()> {
        Ok(())
    }

    fn compute(&mut self, _: u64, _: Job) -> Result<()> {
        Ok(())
    }

    fn completion(&mut self, _: u64) -> Completion {
        Completion::new(drop)
    }

    fn create(&mut self, _: NewRoom) -> Result<()> {
        Ok(())
    }

    fn find(&mut self, _: std::any::TypeId, _: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn publish(&mut self, _: Publication) {}
    fn push(&mut self, _: Push) {}
    fn post(&mut self, _: &str, _: Mail) {}
}
