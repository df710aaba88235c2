//! Players with the session of the clients: it restores their connections, and checks versions. Here
//! is counted what must not be lost, doubled or late.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use playfield_client::RoomNumber;
use playfield_client::session::{
    ClientConfig, Event, RoomCopy, Session, Step as Next, Transport, Update, UpdateKind,
};
use playfield_state::{Accepts, Data, Mirror};
use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::server::{Arena, Count, Done, Step, Struck};
use crate::harness::fleet::{self, Fleet, Links, Script, wrong};
use crate::harness::source::Source;

/// The most clients without a welcome yet, at the start.
const OPENING_MAX: usize = 64;
/// The interval between looks at what is due.
const LOOK: Duration = Duration::from_millis(20);
/// The looks from one step of a player to the next. Each second step is followed by a request.
const STEP_LOOKS: u64 = 25;

/// The sums over all players.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) patches: u64,
    pub(super) events: u64,
    pub(super) replies: u64,
    /// Snapshots, without the first of each player.
    pub(super) snapshots: u64,
    pub(super) events_lost: u64,
    pub(super) events_doubled: u64,
    /// Requests and steps that were executed again, or out of order.
    pub(super) executed_twice: u64,
    /// Requests and steps that were not executed.
    pub(super) not_executed: u64,
    /// The times that a connection was restored.
    pub(super) resumed: u64,
}

impl Counts {
    /// The number of faults.
    pub(super) fn wrong(&self) -> u64 {
        let Self { snapshots, events_lost, events_doubled, executed_twice, not_executed, .. } =
            *self;
        snapshots + events_lost + events_doubled + executed_twice + not_executed
    }
}

/// All players.
pub(super) struct Players {
    all: Vec<Player>,
    per_room: usize,
    pub(super) counts: Counts,
    /// The next event is read with a wrong number.
    pub(super) corrupt: bool,
    began: Instant,
    looked: Instant,
    looks: u64,
    /// Players without a connection.
    away: Vec<usize>,
    /// Nothing more is sent but by [`settle`].
    is_over: bool,
}

#[derive(Default)]
struct Player {
    session: Option<Session>,
    room: Option<RoomNumber>,
    /// Of the last event.
    hour: u64,
    steps: u64,
    /// The steps before each request that waits for its reply, oldest first.
    asked: Vec<u64>,
    /// The number of replies.
    answered: u64,
    has_copy: bool,
    patched: Option<Instant>,
    /// The longest time between two patches since the last look.
    gap: Duration,
    /// The patches since then.
    patches: u64,
}

/// A copy, which the session checks by its digest.
#[derive(Default)]
struct Copy(Mirror<Arena>);

impl RoomCopy for Copy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        match update.kind {
            UpdateKind::Snapshot => self.0.snapshot(update.body),
            UpdateKind::Patch => self.0.patch(update.body),
        }
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.0.digest() == digest
    }
}

impl Players {
    /// Opens all sessions, and waits until each is in its room and has a copy.
    pub(super) fn fleet(
        node: SocketAddr,
        rooms: usize,
        per_room: usize,
    ) -> io::Result<Fleet<Self>> {
        let now = Instant::now();
        let players = Self {
            all: (0..rooms * per_room).map(|_| Player::default()).collect(),
            per_room,
            counts: Counts::default(),
            corrupt: false,
            began: now,
            looked: now,
            looks: 0,
            away: Vec::new(),
            is_over: false,
        };
        let all = players.all();
        let mut fleet = Fleet::new(players, node, Source::Any, None)?;
        fleet.connect(all, OPENING_MAX);
        fleet.until(|players, _| players.all.iter().all(|player| player.has_copy));
        Ok(fleet)
    }

    fn all(&self) -> Range<usize> {
        0..self.all.len()
    }

    /// Begins to measure pauses.
    pub(super) fn mark(&mut self) {
        for player in &mut self.all {
            (player.gap, player.patches) = (Duration::ZERO, 0);
        }
    }

    /// Returns whether each player has had so many patches since the mark.
    pub(super) fn all_have(&self, patches: u64) -> bool {
        self.all.iter().all(|player| player.patches >= patches)
    }

    /// Returns each player's longest pause since the mark.
    pub(super) fn pauses(&self) -> impl Iterator<Item = Duration> + '_ {
        self.all.iter().map(|player| player.gap)
    }

    fn hear(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        let Self { all, counts, corrupt, per_room, .. } = self;
        let player = &mut all[number];
        let Some(mut session) = player.session.take() else { return Ok(()) };
        while let Some(event) = session.poll_event() {
            match event {
                Event::Welcome(_) => {
                    links.ready += 1;
                    let key = format!("arena-{}", number / *per_room);
                    session.join_or_create_by_key("arena", &key, &[]).map_err(io::Error::other)?;
                }
                Event::Joined(joined) => {
                    let room = joined.room;
                    player.room = Some(room);
                    session.set_copy(room, Box::<Copy>::default());
                }
                Event::Resumed(_) => counts.resumed += 1,
                Event::Update { kind: UpdateKind::Snapshot, .. } => {
                    counts.snapshots += u64::from(std::mem::replace(&mut player.has_copy, true));
                }
                Event::Update { kind: UpdateKind::Patch, .. } => {
                    counts.patches += 1;
                    player.patched(links.now);
                }
                Event::Event(event) => {
                    counts.events += 1;
                    // The first event of a player may be any.
                    let shift = u64::from(player.hour > 0 && std::mem::take(corrupt));
                    player.event(&event.payload, shift, counts)?;
                }
                Event::Reply(reply) => {
                    counts.replies += 1;
                    player.reply(&reply.payload, counts)?;
                }
                Event::ConnectionLost { .. }
                | Event::AttemptFailed { is_last: false, .. }
                | Event::Checked { .. }
                | Event::Pong { .. }
                | Event::Weak { .. } => {}
                other => return Err(wrong(&format!("client {number}: {other:?}"))),
            }
        }
        player.session = Some(session);
        self.flush(number, links)
    }

    fn flush(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        if let Some(session) = &mut self.all[number].session
            && links.is_open(number)
            && session.output_bytes() > 0
        {
            let mut out = Vec::new();
            session.take_output(&mut out);
            links.send(number, &out)?;
        }
        Ok(())
    }

    /// Sends what is due of one player.
    fn act(&mut self, number: usize, asks: bool) -> io::Result<()> {
        let player = &mut self.all[number];
        let (Some(session), Some(room)) = (&mut player.session, player.room) else { return Ok(()) };
        if session.is_full() {
            return Ok(());
        }
        let mut payload = Vec::new();
        if asks {
            Count.encode(&mut payload);
            let index = <Arena as Accepts<Count>>::INDEX;
            session.request(room, index, &payload).map_err(io::Error::other)?;
            player.asked.push(player.steps);
        } else {
            player.steps += 1;
            Step { number: player.steps }.encode(&mut payload);
            let index = <Arena as Accepts<Step>>::INDEX;
            session.send(room, index, &payload).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Advances all sessions, and has players act whose turn it is.
    fn look(&mut self, links: &mut Links) -> io::Result<()> {
        self.looks += 1;
        for number in self.all() {
            let turn = self.looks + number as u64;
            if !self.is_over && turn.is_multiple_of(STEP_LOOKS) {
                self.act(number, false)?;
                if turn.is_multiple_of(2 * STEP_LOOKS) {
                    self.act(number, true)?;
                }
            }
            if let Some(session) = &mut self.all[number].session {
                session.advance(links.now.saturating_duration_since(self.began));
                self.hear(number, links)?;
            }
        }
        Ok(())
    }

    /// Has those connect that are to. Returns when to look again.
    fn restore(&mut self, links: &mut Links) -> io::Result<Duration> {
        let mut wait = LOOK;
        for number in std::mem::take(&mut self.away) {
            let Some(session) = &mut self.all[number].session else { continue };
            session.advance(links.now.saturating_duration_since(self.began));
            match session.next_step() {
                Next::Dial(_) => {
                    links.connect(number);
                    wait = Duration::ZERO;
                }
                _ => {
                    self.away.push(number);
                    wait = wait.min(Duration::from_millis(1));
                }
            }
            self.hear(number, links)?;
        }
        Ok(wait)
    }
}

/// Asks each room what it has done, and waits until each player has the answer, and all events up
/// to it.
pub(super) fn settle(fleet: &mut Fleet<Players>) -> io::Result<()> {
    let Fleet { script, links, .. } = fleet;
    script.is_over = true;
    for number in script.all() {
        script.act(number, true)?;
        script.flush(number, links)?;
    }
    fleet.until(|players, _| players.all.iter().all(|player| player.asked.is_empty()));
    Ok(())
}

impl Player {
    fn patched(&mut self, now: Instant) {
        if let Some(before) = self.patched.replace(now) {
            self.gap = self.gap.max(now.saturating_duration_since(before));
        }
        self.patches += 1;
    }

    fn event(&mut self, payload: &[u8], shift: u64, counts: &mut Counts) -> io::Result<()> {
        let struck = Struck::decode(&mut Reader::new(payload)).map_err(io::Error::other)?;
        let hour = struck.hour + shift;
        // The first is that of the time at which the player came.
        let next = if self.hour == 0 { hour } else { self.hour + 1 };
        counts.events_lost += hour.saturating_sub(next);
        counts.events_doubled += u64::from(hour < next);
        self.hour = self.hour.max(hour);
        Ok(())
    }

    /// Compares what the room has done with what was asked of it.
    fn reply(&mut self, payload: &[u8], counts: &mut Counts) -> io::Result<()> {
        let done = Done::decode(&mut Reader::new(payload)).map_err(io::Error::other)?;
        if self.asked.is_empty() {
            return Err(wrong("a reply that nobody asked for"));
        }
        let steps = self.asked.remove(0);
        self.answered += 1;
        counts.executed_twice += done.requests.saturating_sub(self.answered);
        counts.not_executed += self.answered.saturating_sub(done.requests);
        counts.executed_twice += done.steps.saturating_sub(steps) + done.disorder;
        counts.not_executed += steps.saturating_sub(done.steps);
        if self.hour > 0 {
            counts.events_lost += done.hour.saturating_sub(self.hour);
        }
        Ok(())
    }
}

impl Script for Players {
    fn opened(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        let player = &mut self.all[number];
        match &mut player.session {
            Some(session) => session.reconnect(Transport::Native).map_err(io::Error::other)?,
            None => {
                let mut seed = [0; 16];
                seed[..8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
                let config = ClientConfig { seed, ..ClientConfig::new(Transport::Native) };
                player.session = Some(Session::new(config).map_err(io::Error::other)?);
            }
        }
        self.flush(number, links)
    }

    fn receive(&mut self, number: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        if let Some(session) = &mut self.all[number].session {
            session.advance(links.now.saturating_duration_since(self.began));
            session.received(input);
        }
        self.hear(number, links)?;
        Ok(input.len())
    }

    fn due(&mut self, links: &mut Links) -> io::Result<Duration> {
        if links.now.saturating_duration_since(self.looked) >= LOOK {
            self.looked = links.now;
            self.look(links)?;
        }
        self.restore(links)
    }

    fn lost(
        &mut self,
        number: usize,
        why: io::Error,
        links: &mut Links,
    ) -> io::Result<fleet::Next> {
        if why.kind() == io::ErrorKind::InvalidData {
            return Err(why);
        }
        let Some(session) = &mut self.all[number].session else { return Err(why) };
        session.advance(links.now.saturating_duration_since(self.began));
        if session.is_away() {
            session.attempt_failed();
        } else {
            session.ended();
        }
        self.hear(number, links)?;
        self.away.push(number);
        Ok(fleet::Next::Stay)
    }

    fn progress(&self) -> u64 {
        self.counts.patches + self.counts.replies
    }
}
