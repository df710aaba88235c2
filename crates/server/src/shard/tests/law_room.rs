//! A room for the laws: something of every kind that players see, or don't see, and a witness of
//! what it synced.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use playfield_room::frozen::{FreezeError, FrozenWriter, ThawError};
use playfield_room::{
    Admission, AnyRoom, Birth, Context, EndReason, Entrant, Error, Handle, LeaveReason, Mail,
    Message, Player, PlayerId, Result, Room, RoomOutput, RoomSummary, RoomType, Stage, Thaw, room,
};
use playfield_state::{Data, Format, List, Map, State};
use playfield_wire::RequestNumber;
use playfield_wire::message::MessageRef;

#[derive(State, Default, Clone, Debug)]
pub(super) struct Law {
    round: u32,
    title: String,
    last: Option<u32>,
    seats: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    #[sync(hidden)]
    deck: List<u32>,
    tags: Map<String, Tag>,
    log: List<String>,
    /// The seed by which unseen parts change at each tick; 0 if they do not.
    #[sync(hidden)]
    scramble: u32,
    /// The name of the player who is to notice nothing of that.
    #[sync(hidden)]
    spared: String,
    /// Whatever changes is synced at once, be it seen or not.
    #[sync(hidden)]
    eager: bool,
}

#[derive(State, Default, Clone, Debug)]
struct Seat {
    name: String,
    is_away: bool,
    score: i32,
    #[sync(owner)]
    secret: u32,
    #[sync(owner)]
    notes: List<String>,
    #[sync(hidden)]
    luck: u32,
}

#[derive(State, Default, Clone, Debug)]
struct Hand {
    cards: List<u32>,
    marks: Map<String, u8>,
}

#[derive(State, Default, Clone, Debug)]
struct Tag {
    count: u32,
    places: List<u8>,
    #[sync(hidden)]
    trap: u32,
}

#[derive(Data, Default)]
pub(super) struct Setup {
    pub(super) scramble: u32,
    pub(super) spared: String,
    pub(super) eager: bool,
}

/// Changes something, as the seed says.
#[derive(Message)]
pub(super) struct Act {
    pub(super) seed: u64,
}

/// The event of an act.
#[derive(Message)]
struct Did {
    seed: u64,
}

#[room(
    messages(Act),
    events(Did),
    tick_hz = 40,
    sync_hz = 20,
    empty_ms = 3_600_000,
    grace_ms = 400
)]
impl Room for Law {
    type Options = Setup;

    fn create(options: Setup, _: &mut Context<Self>) -> Result<Self> {
        let Setup { scramble, spared, eager } = options;
        Ok(Self { scramble, spared, eager, ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let seat = Seat { name: player.name().to_owned(), ..Seat::default() };
        self.seats.insert(player.id(), seat);
        self.hands.insert(player.id(), Hand::default());
        self.show(cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.seats.remove(&player.id());
        self.hands.remove(&player.id());
        self.show(cx);
    }

    fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
        self.seats.get_or_default(player.id()).is_away = true;
        self.show(cx);
    }

    fn returned(&mut self, player: &Player, cx: &mut Context<Self>) {
        self.seats.get_or_default(player.id()).is_away = false;
        self.show(cx);
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        if self.scramble != 0 {
            self.scramble(cx);
            self.show(cx);
        }
    }
}

impl Handle<Act> for Law {
    fn handle(&mut self, Act { seed }: Act, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let mut dice = Dice(seed);
        for _ in 0..=dice.pick(3) {
            self.change(player.id(), &mut Dice(dice.roll()), cx);
        }
        self.show(cx);
        Ok(())
    }
}

impl Law {
    /// Changes one thing. Nothing that is seen of it depends on anything unseen.
    fn change(&mut self, actor: PlayerId, dice: &mut Dice, cx: &mut Context<Self>) {
        let seated: Vec<PlayerId> = self.seats.keys().copied().collect();
        let other = seated[dice.pick(seated.len())];
        match dice.pick(14) {
            0 => self.round += dice.pick(2) as u32,
            1 => self.title = dice.word(),
            2 => self.last = if dice.pick(2) == 0 { None } else { Some(dice.number()) },
            3 => self.seats.get_or_default(other).score -= dice.pick(3) as i32,
            4 => self.seats.get_or_default(other).secret = dice.number(),
            5 => change_texts(&mut self.seats.get_or_default(actor).notes, dice),
            6 | 7 => self.hands.get_or_default(other).change(dice),
            8 => change_list(&mut self.deck, dice, Dice::number),
            9 => drop(self.tags.remove(&dice.word())),
            10 | 11 => self.tags.get_or_default(dice.word()).change(dice),
            12 => change_texts(&mut self.log, dice),
            _ => match dice.pick(6) {
                0 => cx.kick(other, "out"),
                1 => cx.sync_now(),
                _ => cx.emit(&Did { seed: dice.roll() }),
            },
        }
    }

    /// Changes what the one to be spared does not see: what is hidden, and what is others' own.
    fn scramble(&mut self, cx: &mut Context<Self>) {
        let dice = &mut Dice(u64::from(self.scramble) ^ cx.tick());
        let others: Vec<PlayerId> =
            cx.players().filter(|player| player.name() != self.spared).map(Player::id).collect();
        for _ in 0..dice.pick(4) {
            match dice.pick(5) {
                0 => change_list(&mut self.deck, dice, Dice::number),
                1 => self.seats.values_mut().for_each(|seat| seat.luck = dice.number()),
                2 => self.tags.values_mut().for_each(|tag| tag.trap = dice.number()),
                _ if others.is_empty() => {}
                3 => {
                    let seat = self.seats.get_or_default(others[dice.pick(others.len())]);
                    seat.secret = dice.number();
                    change_texts(&mut seat.notes, dice);
                }
                _ => {
                    let other = others[dice.pick(others.len())];
                    if dice.pick(4) == 0 {
                        self.hands.remove(&other);
                    } else {
                        self.hands.get_or_default(other).change(dice);
                    }
                }
            }
        }
    }

    /// Lets the witness see it.
    fn show(&self, cx: &mut Context<Self>) {
        if self.eager {
            cx.sync_now();
        }
        LIVE.with_borrow_mut(|live| live.insert(cx.room_id().to_owned(), self.clone()));
    }
}

impl Hand {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(4) {
            0 => drop(self.marks.remove(&dice.word())),
            1 => drop(self.marks.insert(dice.word(), dice.pick(4) as u8)),
            _ => change_list(&mut self.cards, dice, Dice::number),
        }
    }
}

impl Tag {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(4) {
            0 => self.count += 1,
            1 => self.trap = dice.number(),
            _ => change_list(&mut self.places, dice, |dice| dice.pick(5) as u8),
        }
    }
}

fn change_texts(texts: &mut List<String>, dice: &mut Dice) {
    change_list(texts, dice, Dice::word);
}

fn change_list<T: State + PartialOrd>(
    list: &mut List<T>,
    dice: &mut Dice,
    make: impl FnOnce(&mut Dice) -> T,
) {
    let length = list.len();
    match dice.pick(7) {
        0..=2 => list.insert(dice.pick(length + 1), make(dice)),
        _ if length == 0 => {}
        3 => drop(list.remove(dice.pick(length))),
        4 => list.swap(dice.pick(length), dice.pick(length)),
        5 => list[dice.pick(length)] = make(dice),
        _ if length > 12 => list.truncate(3),
        _ => list.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal)),
    }
}

/// Numbers that follow from a seed: SplitMix64, by Steele, Lea and Flood.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn pick(&mut self, count: usize) -> usize {
        (self.roll() % count as u64) as usize
    }

    fn number(&mut self) -> u32 {
        self.pick(6) as u32
    }

    fn word(&mut self) -> String {
        ["a", "b", "0", "1", "ü \"quoted\"", "a longer word"][self.pick(6)].to_owned()
    }
}

thread_local! {
    /// Each room's state as it is.
    static LIVE: RefCell<HashMap<String, Law>> = RefCell::default();
    /// Each room's state at each of its versions.
    static SYNCED: RefCell<HashMap<String, BTreeMap<u64, Law>>> = RefCell::default();
    /// The version of each snapshot and patch that was written for a player, as the room counts.
    static WRITTEN: RefCell<HashMap<(String, PlayerId), VecDeque<u64>>> = RefCell::default();
}

/// Forgets all rooms.
pub(super) fn forget() {
    LIVE.with_borrow_mut(HashMap::clear);
    SYNCED.with_borrow_mut(HashMap::clear);
    WRITTEN.with_borrow_mut(HashMap::clear);
}

/// The room's version of the next snapshot or patch that was written for a player.
pub(super) fn next_written(id: &str, player: PlayerId) -> Option<u64> {
    WRITTEN.with_borrow_mut(|written| written.get_mut(&(id.to_owned(), player))?.pop_front())
}

/// Calls `look` with a room's state as it was at a version.
pub(super) fn synced<T>(id: &str, version: u64, look: impl FnOnce(&Law) -> T) -> T {
    SYNCED.with_borrow(|synced| look(&synced[id][&version]))
}

/// The version of a room's last sync; `None` before the first.
pub(super) fn version(id: &str) -> Option<u64> {
    SYNCED.with_borrow(|synced| synced.get(id)?.keys().next_back().copied())
}

/// The room type `law`; `law on demand`, which has no rate; and `law without ticks`.
pub(super) fn room_types() -> [RoomType; 3] {
    let law = |name| RoomType { create: witnessed, thaw: thawed, ..RoomType::of::<Law>(name) };
    let mut on_demand = law("law on demand");
    on_demand.settings.sync_hz = 0;
    let mut without_ticks = law("law without ticks");
    without_ticks.settings.tick_hz = 0;
    [law("law"), on_demand, without_ticks]
}

fn witnessed(birth: Birth<'_>) -> Result<Box<dyn AnyRoom>> {
    let id = birth.id.clone();
    let room = (RoomType::of::<Law>("law").create)(birth)?;
    Ok(Box::new(Witness { id, room }))
}

fn thawed(thaw: Thaw<'_>) -> Result<Box<dyn AnyRoom>, ThawError> {
    let id = thaw.frozen.room_id().to_owned();
    let room = (RoomType::of::<Law>("law").thaw)(thaw)?;
    Ok(Box::new(Witness { id, room }))
}

/// A room of which each state that it syncs is kept. Everything else is the room's own doing.
struct Witness {
    id: String,
    room: Box<dyn AnyRoom>,
}

impl Witness {
    fn was_synced(&self) {
        let live = LIVE.with_borrow(|live| live[&self.id].clone());
        let version = self.room.version();
        SYNCED.with_borrow_mut(|synced| {
            synced.entry(self.id.clone()).or_default().insert(version, live)
        });
    }

    fn wrote(&self, player: PlayerId) {
        let version = self.room.version();
        WRITTEN.with_borrow_mut(|written| {
            written.entry((self.id.clone(), player)).or_default().push_back(version);
        });
    }
}

impl AnyRoom for Witness {
    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.room.sync(at, out);
        self.was_synced();
    }

    fn freeze(
        &mut self,
        at: Duration,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        self.room.freeze(at, form, out)?;
        self.was_synced();
        Ok(())
    }

    fn capture(&mut self, form: &mut FrozenWriter) -> Result<(), FreezeError> {
        self.room.capture(form)
    }

    fn state_hash(&self) -> Option<u64> {
        self.room.state_hash()
    }

    fn moved(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.room.moved(at, out);
    }

    fn players(&self, wanted: &mut dyn FnMut(&Player) -> bool) -> Vec<Player> {
        self.room.players(wanted)
    }

    fn pass_syncs(&mut self, syncs: u64) {
        let before = self.room.version();
        self.room.pass_syncs(syncs);
        let live = LIVE.with_borrow(|live| live[&self.id].clone());
        SYNCED.with_borrow_mut(|synced| {
            let synced = synced.entry(self.id.clone()).or_default();
            let versions = before + 1..=self.room.version();
            synced.extend(versions.map(|version| (version, live.clone())));
        });
    }

    fn summary(&self) -> &RoomSummary {
        self.room.summary()
    }

    fn is_closed(&self) -> bool {
        self.room.is_closed()
    }

    fn version(&self) -> u64 {
        self.room.version()
    }

    fn tick_hz(&self) -> u32 {
        self.room.tick_hz()
    }

    fn sync_hz(&self) -> u32 {
        self.room.sync_hz()
    }

    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission, Error> {
        self.room.join(at, entrant, out)
    }

    fn leave(
        &mut self,
        at: Duration,
        player: PlayerId,
        why: LeaveReason,
        out: &mut dyn RoomOutput,
    ) {
        self.room.leave(at, player, why, out);
    }

    fn lost(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput) {
        self.room.lost(at, player, out);
    }

    fn returned(
        &mut self,
        at: Duration,
        player: PlayerId,
        away: Duration,
        out: &mut dyn RoomOutput,
    ) {
        self.room.returned(at, player, away, out);
    }

    fn message(
        &mut self,
        at: Duration,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
        out: &mut dyn RoomOutput,
    ) {
        self.room.message(at, player, message, payload, request, out);
    }

    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        self.room.mail(at, mail, out);
    }

    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput) {
        self.room.tick(at, number, out);
    }

    fn wake_at(&self) -> Option<Duration> {
        self.room.wake_at()
    }

    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.room.wake(at, out);
    }

    fn wants_sync(&self) -> bool {
        self.room.wants_sync()
    }

    fn reaches(&self, since: u64) -> bool {
        self.room.reaches(since)
    }

    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        // What is written stands behind a header; what is only looked at stands alone.
        let is_sent = !body.is_empty();
        let is_changed = self.room.patch(player, since, format, body);
        if is_sent && is_changed {
            self.wrote(player);
        }
        is_changed
    }

    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>) {
        self.wrote(player);
        self.room.snapshot(player, format, body);
    }

    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        self.room.digest(player, format)
    }

    fn stage(&self) -> Stage {
        self.room.stage()
    }

    fn close(&mut self, at: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        self.room.close(at, why, text, out);
    }

    fn part(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.room.part(at, out);
    }

    fn abandon(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.room.abandon(at, out);
    }
}
