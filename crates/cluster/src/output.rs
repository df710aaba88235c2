//! Output of a node: commands to the engine, and effects for the host.

use std::collections::{HashMap, VecDeque};

use crate::effect::{Effect, Handed, NodeId, Place};
use crate::engine::{Command, Key, Revision, Tag};
use crate::event::RequestId;
use crate::record::{Incarnation, Slot};

/// The part of a node that an answer is for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// The lease.
    Lease,
    /// The observer, about all nodes.
    Peers,
    /// The observer, about the node in a slot.
    Peer(Slot),
    /// The claim of a key.
    Claim(Key),
    /// The removal of a claim.
    Purge { key: Key, revision: Revision },
}

#[derive(Debug, Default)]
pub(crate) struct Output {
    commands: VecDeque<Command>,
    effects: VecDeque<Effect>,
    asked: HashMap<Tag, Asked>,
    last_tag: Tag,
    last_attempt: u64,
}

impl Output {
    pub(crate) fn read(&mut self, asked: Asked, key: Key) -> Tag {
        let tag = self.tag(asked);
        self.commands.push_back(Command::Read { key, tag });
        tag
    }

    pub(crate) fn list(&mut self, asked: Asked, prefix: &'static str) -> Tag {
        let tag = self.tag(asked);
        self.commands.push_back(Command::List { prefix, tag });
        tag
    }

    pub(crate) fn write(
        &mut self,
        asked: Asked,
        key: Key,
        value: Vec<u8>,
        expect: Revision,
    ) -> Tag {
        let tag = self.tag(asked);
        self.commands.push_back(Command::Write { key, value, expect, tag });
        tag
    }

    pub(crate) fn purge(&mut self, key: Key, revision: Revision) {
        let tag = self.tag(Asked::Purge { key: key.clone(), revision });
        self.commands.push_back(Command::Purge { key, expect: revision, tag });
    }

    pub(crate) fn broadcast(&mut self, bytes: Vec<u8>) {
        self.commands.push_back(Command::Broadcast { bytes });
    }

    pub(crate) fn send(&mut self, to: NodeId, bytes: Vec<u8>) {
        let NodeId { slot, incarnation } = to;
        self.commands.push_back(Command::Send { to: slot, incarnation, bytes });
    }

    pub(crate) fn listen(&mut self, slot: Slot, incarnation: Incarnation) {
        self.commands.push_back(Command::Listen { slot, incarnation });
    }

    /// Tells a request to ask again in a second.
    pub(crate) fn busy(&mut self, request: RequestId) {
        self.effect(Effect::Found { request, place: Place::Busy, is_code: false });
    }

    /// Tells the host the outcome of a move.
    pub(crate) fn handed(&mut self, request: RequestId, handed: Handed) {
        self.effect(Effect::HandedOver { request, handed });
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// Asks the host to open the save of a key. Returns the number of the attempt, which no other
    /// one has: an answer to an earlier attempt may still come.
    pub(crate) fn open(&mut self, key: Key) -> u64 {
        self.last_attempt += 1;
        let attempt = self.last_attempt;
        self.effect(Effect::Open { key, attempt });
        attempt
    }

    pub(crate) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    pub(crate) fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    pub(crate) fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The part that an answer is for. `None` if the command was answered before.
    pub(crate) fn answered(&mut self, tag: Tag) -> Option<Asked> {
        self.asked.remove(&tag)
    }

    fn tag(&mut self, asked: Asked) -> Tag {
        self.last_tag += 1;
        self.asked.insert(self.last_tag, asked);
        self.last_tag
    }
}
