//! A shard: connections, sessions and rooms that share nothing with others.
//!
//! It is a state machine over events and time, with no sockets and no clock. The event loop, or a
//! test, passes in the time and the input, and takes out what is to be written, closed and sent to
//! other shards. Its parts have fields of their own, and reach only those below them
//! (`docs/architecture.md`). A turn is:
//!
//! 1. [`begin`](Shard::begin) with the time, then [`mail`](Shard::mail),
//!    [`accepted`](session::outlet::Outlet::accepted), [`accepted_for`](Shard::accepted_for),
//!    [`received_behind`](Shard::received_behind), [`hung_up`](session::outlet::Outlet::hung_up) as they happen;
//! 2. [`advance`](Shard::advance): ticks, syncs, timers and timeouts that are due;
//! 3. writing: [`next_dirty`](Shard::next_dirty), [`unsent`](connection::Links::unsent),
//!    [`wrote`](Shard::wrote);
//! 4. taking what else came of it: connections that leave, mail, sockets that change hands or go.

#[macro_use]
mod borrows;

pub(crate) mod allowance;
mod beside;
pub(crate) mod connection;
mod dispatch;
pub(crate) mod env;
mod fair_queue;
mod frames;
pub(crate) mod frozen;
pub(crate) mod journaled;
pub(crate) mod keys;
mod log_limit;
pub(crate) mod mail;
mod messages;
mod moment;
mod outbound;
mod pacing;
mod reading;
mod room_places;
pub(crate) mod rooms;
mod services;
pub(crate) mod session;
mod slab;
mod snapshots;
mod subscriptions;
pub(crate) mod topics;
pub(crate) mod work;
mod working;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::EndReason;
use playfield_room::frozen::FrozenWriter;
use playfield_wire::ErrorCode;

use crate::addresses::Tally;
use crate::background::Background;
use crate::entropy::Entropy;
use crate::journal::Ending;
use crate::node::Node;
use crate::pulse::Watch;
use crate::service::Closed;
use crate::stats::Counters;
use connection::Links;
pub(crate) use connection::SocketChange;
use connection::patience::Patience;
pub(crate) use env::Stopwatch;
use env::{Env, SHUTTING_DOWN, nanoseconds};
use frozen::ThawedRoom;
use journaled::Journaled;
use keys::{ConnectionKey, RoomKey};
use mail::ShardMail;
use outbound::Outbound;
use pacing::Pacing;
pub(crate) use pacing::Part;
use rooms::host::RoomHost;
use services::Services;
use session::round_trips;
use session::sessions::Sessions;
use topics::Topics;
use topics::channels::ShardChannels;

/// The interval between searches for a room that a waiting join needs.
const PARKED_RETRY: Duration = Duration::from_millis(5);
/// The time to wait before trying a full mailbox again.
const CONGESTED_RETRY: Duration = Duration::from_millis(1);

/// The state machine of one shard: its parts, and the turn that they take.
pub(crate) struct Shard {
    pub(crate) env: Env,
    pub(crate) links: Links,
    pub(crate) sessions: Sessions,
    topics: Topics,
    pub(crate) services: Services,
    pub(crate) outbound: Outbound,
    pub(crate) host: RoomHost,
    pub(crate) pacing: Pacing,
    said_goodbye: bool,
    /// Rooms whose frozen form lacks their members yet.
    frozen: Vec<(RoomKey, FrozenWriter)>,
    /// Rooms whose work was ended so that they could be frozen.
    given_up: Vec<RoomKey>,
    /// The rooms whose saves the store had when the shard began to drain, each with its last
    /// completed save, and the number of the upgrade.
    saving: (u64, Vec<(RoomKey, Option<u64>)>),
    /// The reason that a room can't be frozen, if one can't.
    not_frozen: Option<String>,
    /// Mail from outside since the rooms were written, if they are: it is not in their frozen form.
    held_mail: Option<Vec<ShardMail>>,
    /// Rooms that go on from their frozen form.
    thawed: Vec<ThawedRoom>,
    /// The process that had them has ended.
    is_recovered: bool,
}

impl Shard {
    pub(crate) fn new(
        index: u16,
        node: Arc<Node>,
        background: Arc<dyn Background>,
        mut entropy: Entropy,
        watch: Watch,
        stopwatch: Stopwatch,
    ) -> Self {
        let shards = node.shards;
        let patience = node.room_types.iter().map(|room_type| Patience::of(room_type.settings));
        let shortest = patience
            .chain([Patience::of_node(&node.config)])
            .fold(node.config.timeouts.hello, |shortest, patience| shortest.min(patience.ask))
            .min(node.config.http.request_timeout)
            .min(node.config.timeouts.message);
        let silent = node.fleet.as_ref().and_then(|fleet| fleet.silent);
        let shortest = silent.map_or(shortest, |silent| shortest.min(silent / 2));
        let periods = node.room_types.iter().filter_map(|of| round_trips::period(of.settings));
        let shortest = periods.fold(shortest, Duration::min);
        let links = Links::new(&node.config, shortest);
        let sessions = Sessions::new(&node.config);
        let channels = ShardChannels::new(&node, index, entropy.number(), entropy.hasher());
        let host = RoomHost::new(node.room_types.len());
        let (now, counters) = (Duration::ZERO, Counters::default());
        let (shard, turn, is_shutting_down, is_frozen) = (index, 0, false, false);
        Self {
            env: Env {
                node,
                shard,
                now,
                turn,
                is_shutting_down,
                is_frozen,
                counters,
                watch,
                stopwatch,
                entropy,
            },
            links,
            sessions,
            topics: Topics::new(channels),
            services: Services::default(),
            outbound: Outbound::new(shards, background),
            host,
            pacing: Pacing::default(),
            said_goodbye: false,
            frozen: Vec::new(),
            given_up: Vec::new(),
            saving: (0, Vec::new()),
            not_frozen: None,
            held_mail: None,
            thawed: Vec::new(),
            is_recovered: false,
        }
    }

    /// Adds the journal of its rooms. There are none yet.
    pub(crate) fn with_journal(mut self, journaled: Journaled) -> Self {
        self.outbound.add_journal(journaled);
        self
    }

    /// Takes rooms that were ending when their process ended, to be saved once the store is back.
    /// Until then, they are in the journal of this process.
    pub(crate) fn save_later(&mut self, rooms: Vec<Ending>) {
        let (store, journaled) = (self.env.node.store.lend(), &mut self.outbound.journaled);
        if let (Some(store), Some(journaled)) = (store, journaled) {
            rooms.into_iter().for_each(|room| journaled.save_later(room, Arc::clone(&store)));
        }
    }

    /// A turn begins. `now` is the time since the node started, and never goes back.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.env.now = self.env.now.max(now);
        self.topics.channels.now = self.env.now;
        self.env.turn += 1;
        self.host.schedule.begin(self.env.now);
        self.pacing.begin(self.env.stopwatch.read());
        self.sessions.snapshots.begin();
        self.outbound.begin();
        if self.env.node.cluster.is_some() {
            self.host.look_at_lease(&mut below!(self));
        }
    }

    /// Begins to serve a connection: what was kept of its input is handled.
    pub(crate) fn visit(&mut self, key: ConnectionKey) {
        self.links.visit.begin(self.env.stopwatch.read());
        self.links.visited = Some(key);
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.pause.turn = false;
        if !connection.partial.is_empty() || connection.is_in_messages() {
            self.handle_kept(key);
            self.apply_effects();
        }
    }

    /// The visit is over. Whether the connection has to be served again, because it has input left.
    pub(crate) fn visited(&mut self, key: ConnectionKey) -> bool {
        self.links.visited = None;
        let time = self.env.stopwatch.read().saturating_sub(self.links.visit.began());
        self.env.counters.input_ns += nanoseconds(time);
        self.links.work.took(time);
        let Some(connection) = self.links.slab.get_mut(key) else { return false };
        connection.taken.add(self.env.now, time);
        let comes_back = connection.pause.turn;
        if std::mem::take(&mut connection.put_off) {
            if connection.pause.greeting {
                // The hello has come just now. To decide about it, there is the whole time.
                connection.heard = self.env.now.into();
            }
            self.links.read_late.push(key);
        }
        self.links.is_over_budget |= connection.count_bytes();
        comes_back
    }

    /// Returns whether the part of the turn is over.
    pub(crate) fn is_part_over(&mut self) -> bool {
        self.pacing.is_part_over(&self.env, self.host.due_at())
    }

    /// Does all that is due by now.
    pub(crate) fn advance(&mut self) {
        if self.host.has_parked() {
            self.host.retry_parked(&mut below!(self));
        }
        self.apply_effects();
        if self.outbound.journaled.is_some() {
            self.begin_journaled();
        }
        self.host.deliver_local_mail(&mut below!(self));
        self.host.run_due_rooms(&mut below!(self));
        self.host.report_late_saves(&mut self.env);
        self.services.wake(&mut below!(self));
        self.apply_effects();
        self.topics.channels.home.expire(self.env.now);
        self.topics.expire_commands(&mut outlet!(self));
        self.by_outlet(|out| out.expire_connections());
        self.by_outlet(|out| out.keep_to_budget());
        self.go_on_working();
        self.settle();
        self.host.end_block(&mut below!(self));
    }

    /// Lets go on what waited for the journal, and gives journaled rooms what sessions of this
    /// shard have said to them.
    #[inline(never)]
    pub(in crate::shard) fn begin_journaled(&mut self) {
        let now = self.env.now;
        if self.outbound.journaled.as_mut().is_some_and(|journaled| journaled.look(now)) {
            self.journal_stalls();
        }
        // One after the other, to its end: what follows from a piece comes before the next.
        while let Some(mail) = self.outbound.next_released(self.env.shard) {
            self.deliver_mail(mail);
            self.apply_effects();
        }
        self.hear_inputs();
        self.host.leave_behind(&mut below!(self));
    }

    /// Delivers the messages of this shard's sessions to journaled rooms.
    pub(in crate::shard) fn hear_inputs(&mut self) {
        while let Some(mail) = self.outbound.next_input() {
            self.deliver_mail(mail);
            self.apply_effects();
        }
    }

    /// The journal is too late, or is in time again.
    fn journal_stalls(&mut self) {
        let is_stalled = self.outbound.journaled.as_ref().is_some_and(|it| it.is_stalled());
        let inputs = self.outbound.lanes.inputs();
        outlet!(self).posted(inputs, !is_stalled);
        if is_stalled {
            log::warn!(
                "shard {}: the journal takes longer than journal.wait = {:?}; rooms with \
                 `durability = journal` stand still until it is written",
                self.env.shard,
                self.env.node.config.journal.wait
            );
        } else {
            self.host.wake_journaled(&mut below!(self));
        }
    }

    /// When [`advance`](Self::advance) has something to do, even if nothing comes in.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let at_once = !self.links.resumed.is_empty()
            || !self.links.work.is_empty()
            || self.links.is_over_budget
            || !self.outbound.local_mail.is_empty()
            || !self.topics.devices.posts.is_empty()
            || !self.sessions.user_posts.is_empty()
            || !self.outbound.local_foundings.is_empty()
            || !self.host.touched.is_empty()
            || self.outbound.has_held()
            || !self.services.leaving.is_empty();
        let soon = |waits: bool, after: Duration| waits.then(|| self.env.now + after);
        let candidates = [
            soon(at_once, Duration::ZERO),
            soon(self.host.has_parked(), PARKED_RETRY),
            soon(!self.sessions.to_resume.is_empty(), PARKED_RETRY),
            soon(self.outbound.has_to_write(), PARKED_RETRY),
            soon(self.outbound.is_congested(), CONGESTED_RETRY),
            self.host.due_at(),
            self.host.shard_lateness.next(),
            self.host.busy.next(),
            self.host.queues.saves.deadline(),
            self.outbound.journaled.as_ref().and_then(|journaled| journaled.deadline()),
            self.host.left_behind.front().map(|(at, ..)| *at),
            self.sessions.snapshots.deadline(),
            self.services.next_wake(),
            self.topics.channels.home.next(),
            self.topics.devices.next(),
            self.links.timeouts.next(),
        ];
        candidates.into_iter().flatten().min()
    }

    /// The next connection that has something to write.
    pub(crate) fn next_dirty(&mut self) -> Option<ConnectionKey> {
        loop {
            if let Some(key) = self.links.next_dirty() {
                // Nothing is written to it now, so what it holds is not counted there.
                let connection = self.links.get(key);
                if connection.is_some_and(|connection| {
                    connection.blocked || connection.held || connection.waiting_bytes > 0
                }) {
                    self.links.count_bytes(key);
                }
                return Some(key);
            }
            // What a connection missed while it was blocked may be due now that it has drained.
            let drained = self.links.drained.pop()?;
            self.host.catch_up_all(&mut below!(self), drained);
            self.apply_effects();
        }
    }

    /// A client of a service connected.
    pub(crate) fn accepted_for(
        &mut self,
        service: u16,
        address: SocketAddr,
        tally: Tally,
    ) -> ConnectionKey {
        let key = self.services.accept(&mut below!(self), service, address, tally);
        self.apply_effects();
        key
    }

    /// The socket took this many bytes.
    pub(crate) fn wrote(&mut self, key: ConnectionKey, bytes: usize) {
        self.env.counters.bytes_out += bytes as u64;
        // Space in a full buffer is a sign of life: the client reads, if slowly.
        if bytes > 0
            && let Some(connection) = self.links.get_mut(key)
            && connection.blocked
        {
            connection.heard = self.env.now.into();
            connection.pinged = false;
        }
        if self.links.wrote(key, bytes) {
            outlet!(self).flushed(key);
            self.apply_effects();
            return self.links.count_bytes(key);
        }
        outlet!(self).note_blocked(key);
        // Its answer would tell how long the client takes to read.
        if let Some(session) = self.sessions.get_mut(key)
            && let Some(round_trips) = session.round_trips()
        {
            round_trips.give_up();
        }
        self.links.count_bytes(key);
    }

    /// Accounts for the writes to sockets between this time on the stopwatch and now.
    pub(crate) fn wrote_since(&mut self, began: Duration) {
        self.host.writing = self.env.stopwatch.read().saturating_sub(began);
        self.env.counters.writes_ns += nanoseconds(self.host.writing);
    }

    /// Begins the shutdown: the rooms end, and no players come in. Clients stay for now.
    pub(crate) fn close_rooms(&mut self) {
        if std::mem::replace(&mut self.env.is_shutting_down, true) {
            return;
        }
        for key in self.host.rooms.keys() {
            self.host.call(&mut below!(self), key, |room, at, out| {
                room.close(at, EndReason::ShuttingDown, SHUTTING_DOWN, out);
            });
        }
        // They are refused now.
        self.host.retry_parked(&mut below!(self));
        self.settle();
    }

    /// Returns whether all rooms have ended, and what they sent elsewhere has left.
    pub(crate) fn has_closed_rooms(&self) -> bool {
        self.env.is_shutting_down && self.host.rooms.len() == 0 && self.outbound.is_empty()
    }

    /// Says goodbye to everyone. Rooms that have not ended are dropped.
    pub(crate) fn say_goodbye(&mut self) {
        if std::mem::replace(&mut self.said_goodbye, true) {
            return;
        }
        for key in self.host.rooms.keys() {
            self.host.call(&mut below!(self), key, |room, at, out| room.abandon(at, out));
        }
        self.settle();
        for key in self.links.keys() {
            if self.sessions.get(key).is_some() {
                outlet!(self).goodbye(key, ErrorCode::ShuttingDown, SHUTTING_DOWN, None);
            } else {
                outlet!(self).leave_service(key, Closed::ShuttingDown);
                outlet!(self).go_away(key, SHUTTING_DOWN);
            }
            self.apply_effects();
        }
        self.settle();
    }

    /// The counters so far, and the present gauges.
    pub(crate) fn counters(&mut self) -> Counters {
        let lateness_us_max = std::mem::take(&mut self.env.counters.lateness_us_max);
        let evicted = self.topics.channels.home.evicted();
        Counters {
            turns: self.env.turn,
            connections: self.links.len() as u64 - self.sessions.away,
            sessions: self.sessions.count,
            sessions_away: self.sessions.away,
            rooms: self.host.rooms.len() as u64,
            channels: self.topics.channels.home.len() as u64,
            subscriptions: self.topics.channels.subscriptions,
            history_evicted: evicted.by_node,
            history_evicted_by_address: evicted.by_creator,
            devices: self.topics.devices.count,
            devices_silent: self.topics.devices.silent,
            devices_taken_over: self.topics.devices.taken_over,
            messages_out: self.links.messages_out,
            lateness_us_max,
            clients_unnamed: self.links.unnamed.count,
            ..self.env.counters
        }
    }
}
