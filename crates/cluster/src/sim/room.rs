//! Rooms of the simulation: each is a list of numbers, which clients append to, and an answer comes
//! after a save.

use std::collections::VecDeque;

use crate::engine::Command;
use crate::event::{Event, Save};
use crate::sim::Mutation;
use crate::sim::client::{ReplyKind, Request, RequestKind};
use crate::sim::host::{EMPTY, Process, index};
use crate::sim::laws::State;
use crate::sim::saves::{Opened, SaveAnswer, SaveOutcome, SaveRequest};
use crate::sim::world::World;

#[derive(Debug)]
pub(super) struct Room {
    pub(super) is_frozen: bool,
    reign: u32,
    fence: u64,
    state: State,
    /// The newest state that is saved.
    saved: State,
    /// States that were sent to the store, later than the saved one.
    sent: Vec<State>,
    is_saving: bool,
    /// Requests that are answered when their state is saved.
    unanswered: VecDeque<(Request, State)>,
    /// Requests that came while the room could not be called.
    waiting: VecDeque<Request>,
    used_at: u64,
}

/// The save of a key that was opened last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    pub(super) attempt: u64,
    pub(super) save: Opened,
    /// A save that was opened before the claim: a mutation.
    pub(super) early: Option<Opened>,
}

/// The most requests that wait for a frozen room.
const WAITING_MAX: usize = 64;

impl Room {
    pub(super) fn new(save: Opened, reign: u32, now: u64) -> Self {
        Self {
            is_frozen: false,
            reign,
            fence: save.fence,
            state: save.state,
            saved: save.state,
            sent: Vec::new(),
            is_saving: false,
            unanswered: VecDeque::new(),
            waiting: VecDeque::new(),
            used_at: now,
        }
    }

    /// Returns whether a save is the last one of this room.
    pub(super) fn has_written(&self, state: State) -> bool {
        state == self.saved || self.sent.contains(&state)
    }

    pub(super) fn thaw(&mut self, save: Opened, reign: u32) {
        self.is_frozen = false;
        self.reign = reign;
        self.fence = save.fence;
        self.saved = save.state;
        self.sent.clear();
        self.is_saving = false;
    }
}

impl World {
    /// Takes the request of a client to a room that is in memory.
    pub(super) fn room_request(&mut self, host: u8, process: &mut Process, request: Request) {
        let acts = self.acts(host, process);
        let key = usize::from(request.key);
        let Some(room) = &mut process.rooms[key] else {
            self.reply(host, request, ReplyKind::Gone);
            return;
        };
        if room.is_frozen || !acts {
            if room.waiting.len() < WAITING_MAX {
                room.waiting.push_back(request);
            }
            return;
        }
        let (is_sound, now) = (self.is_sound(host), self.now);
        self.laws.act(now, key, room.reign, is_sound);
        room.used_at = now;
        match request.kind {
            RequestKind::Join => {
                self.laws.join(now, key, room.reign, room.state, is_sound);
                self.counts.joined += 1;
                self.reply(host, request, ReplyKind::Done);
            }
            RequestKind::Append { number } => {
                room.state = self.laws.append(room.state, number);
                room.unanswered.push_back((request, room.state));
                self.save(host, process, request.key);
            }
        }
    }

    /// Goes on with what waits, and ends a room without clients.
    pub(super) fn room_turn(&mut self, host: u8, process: &mut Process, key: u8) {
        let acts = self.acts(host, process);
        let Some(room) = &mut process.rooms[usize::from(key)] else { return };
        if room.is_frozen || !acts {
            return;
        }
        for request in std::mem::take(&mut room.waiting) {
            self.room_request(host, process, request);
        }
        self.answer(host, process, key);
        self.save(host, process, key);
        let Some(room) = &mut process.rooms[usize::from(key)] else { return };
        let is_clean = room.state == room.saved && room.unanswered.is_empty();
        let is_empty = self.now > room.used_at + EMPTY || self.random.one_in(64);
        if is_clean && !room.is_saving && is_empty {
            process.rooms[usize::from(key)] = None;
            let key = self.keys[usize::from(key)].clone();
            self.node_event(host, process, Event::Released { key });
        }
    }

    pub(super) fn room_saved(
        &mut self,
        host: u8,
        process: &mut Process,
        key: u8,
        fence: u64,
        state: State,
        outcome: SaveOutcome,
    ) {
        let Some(room) = &mut process.rooms[usize::from(key)] else { return };
        if room.fence != fence {
            return;
        }
        room.is_saving = false;
        match outcome {
            SaveOutcome::Saved => {
                room.saved = state;
                room.sent.retain(|&sent| sent > state);
                self.answer(host, process, key);
                self.save(host, process, key);
            }
            SaveOutcome::Fenced => {
                room.is_frozen = true;
                let key = self.keys[usize::from(key)].clone();
                self.node_event(host, process, Event::Fenced { key });
            }
            // Tried again with the next turn.
            SaveOutcome::Failed => {}
        }
    }

    /// Answers what is saved.
    fn answer(&mut self, host: u8, process: &mut Process, key: u8) {
        let acts = self.acts(host, process);
        let Some(room) = &mut process.rooms[usize::from(key)] else { return };
        if room.is_frozen || !acts {
            return;
        }
        while let Some(&(request, state)) = room.unanswered.front() {
            if state > room.saved {
                break;
            }
            room.unanswered.pop_front();
            let (now, reign) = (self.now, room.reign);
            let is_sound = self.is_sound(host);
            self.laws.act(now, usize::from(key), reign, is_sound);
            self.laws.confirm(usize::from(key), state, is_sound);
            self.reply(host, request, ReplyKind::Done);
        }
    }

    fn save(&mut self, host: u8, process: &mut Process, key: u8) {
        let acts = self.acts(host, process);
        let Some(room) = &mut process.rooms[usize::from(key)] else { return };
        if room.is_frozen || !acts || room.is_saving || room.state == room.saved {
            return;
        }
        room.is_saving = true;
        room.sent.push(room.state);
        let (fence, state) = (room.fence, room.state);
        let life = self.hosts[usize::from(host)].life;
        self.saves_send(host, life, SaveRequest::Save { key, fence, state });
    }

    pub(super) fn saves_answered(&mut self, host: u8, process: &mut Process, answer: SaveAnswer) {
        match answer {
            SaveAnswer::Opened { key, attempt, save } => {
                self.opened(host, process, key, attempt, save);
            }
            SaveAnswer::Saved { key, fence, state, outcome } => {
                self.room_saved(host, process, key, fence, state, outcome);
            }
        }
    }

    pub(super) fn opened(
        &mut self,
        host: u8,
        process: &mut Process,
        key: u8,
        attempt: u64,
        save: Option<Opened>,
    ) {
        let opening = &mut process.opened[usize::from(key)];
        if opening.attempt != attempt {
            return;
        }
        let room = &process.rooms[usize::from(key)];
        let save = save.map(|save| {
            opening.save = save;
            match room {
                Some(room) if !room.has_written(save.state) => Save::Changed,
                _ => Save::Intact,
            }
        });
        let key = self.keys[usize::from(key)].clone();
        process.node.event(self.local(host), Event::Opened { key, attempt, save });
    }

    /// Opens a save when its claim is read, before it is written: a mutation.
    pub(super) fn open_early(&mut self, process: &mut Process, command: &Command) {
        let Command::Read { key, .. } = command else { return };
        if self.mutation != Some(Mutation::OpenBeforeClaim) || !key.starts_with("r.") {
            return;
        }
        let key = index(key);
        let early = &mut process.opened[usize::from(key)].early;
        if early.is_none() && process.rooms[usize::from(key)].is_none() {
            *early = Some(self.saves.open(key));
        }
    }
}
