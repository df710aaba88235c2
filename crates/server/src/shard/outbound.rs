//! Mail to other shards and between the rooms of this one, and work in the background.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{AnyRoom, Mail, RoomType};

use crate::background::Background;
use crate::channel::Payload;
use crate::fleet::Gone;
use crate::founding::Founding;
use crate::memory::release;
use crate::room_id::RoomId;
use crate::service::{Closed, CommandId};
use crate::shard::journaled::{Journaled, Lanes};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::room_places::RoomPlaces;
use crate::shard::subscriptions::SessionChannels;

/// A piece of mail with this many bytes of frames takes no more: the shard that it goes to looks at
/// the time only between pieces.
const FRAMES_BYTES: usize = 8 << 10;

/// Work that a part of a shard leaves to those above it. It is done, in order, as soon as the part
/// is done with what it was asked for.
pub(in crate::shard) enum Effect {
    /// Mail to this shard.
    Mail(ShardMail),
    /// A connection has become one of a service.
    ServiceEntered { key: ConnectionKey, service: u16, address: SocketAddr, kept: Vec<u8> },
    /// A service has lost a connection.
    ServiceEnded { key: ConnectionKey, service: u16, why: Closed },
    /// A client of a service is to be asked for a sign of life.
    ServiceSilent { key: ConnectionKey, service: u16 },
    /// A command for the device of a service's connection.
    ServiceCommand {
        key: ConnectionKey,
        service: u16,
        id: Option<CommandId>,
        payload: Arc<Payload>,
    },
    /// The timeouts of a connection were checked.
    Examined(ConnectionKey),
    /// A device is gone.
    DeviceEnded { key: ConnectionKey, why: Gone },
    /// A session has ended, and with it its subscriptions.
    ChannelsEnded { session: u64, channels: Box<SessionChannels> },
    /// The session of a connection has lost its client.
    Lost(ConnectionKey),
    /// The session of a connection was resumed.
    Resumed(ConnectionKey),
    /// The session of a connection takes output again.
    ResumeEnded(ConnectionKey),
    /// The session of a connection was away for so long that it is over.
    AwayTooLong(ConnectionKey),
}

/// Everything that leaves a shard except by connections.
pub(crate) struct Outbound {
    /// Mail to other shards, in the order it was written.
    pub(in crate::shard) outgoing: Vec<VecDeque<ShardMail>>,
    /// Shards whose mailbox was full the last time.
    pub(in crate::shard) congested: Vec<bool>,
    /// Mail between rooms of this shard.
    pub(in crate::shard) local_mail: VecDeque<(RoomId, Mail)>,
    /// Rooms that rooms of this shard want here.
    pub(in crate::shard) local_foundings: Vec<Founding>,
    /// The places of rooms that rooms of this shard send to.
    pub(in crate::shard) room_places: RoomPlaces,
    pub(in crate::shard) background: Arc<dyn Background>,
    pub(in crate::shard) effects: VecDeque<Effect>,
    /// The numbers of the queues in `outgoing`.
    pub(in crate::shard) lanes: Lanes,
    /// The journal, if a room type has one.
    pub(in crate::shard) journaled: Option<Box<Journaled>>,
}

impl Outbound {
    pub(in crate::shard) fn new(shards: usize, background: Arc<dyn Background>) -> Self {
        Self {
            outgoing: (0..shards).map(|_| VecDeque::new()).collect(),
            congested: vec![false; shards],
            local_mail: VecDeque::new(),
            local_foundings: Vec::new(),
            room_places: RoomPlaces::default(),
            background,
            effects: VecDeque::new(),
            lanes: Lanes::new(shards),
            journaled: None,
        }
    }

    /// Adds the journal, and the lanes of its rooms.
    pub(in crate::shard) fn add_journal(&mut self, journaled: Journaled) {
        self.outgoing.resize_with(self.lanes.count(), VecDeque::new);
        self.congested.resize(self.lanes.count(), false);
        self.journaled = Some(Box::new(journaled));
    }

    /// A turn begins: memory that much mail took is given back.
    pub(in crate::shard) fn begin(&mut self) {
        self.outgoing.iter_mut().for_each(release);
        release(&mut self.local_mail);
    }

    /// Sends mail to another shard.
    pub(in crate::shard) fn post(&mut self, shard: u16, mail: ShardMail) {
        self.outgoing[usize::from(shard)].push_back(mail);
    }

    /// Appends [frames](crate::shard::frames) to the mail that leaves last for another shard.
    #[inline]
    pub(in crate::shard) fn frames<R>(
        &mut self,
        shard: u16,
        append: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> R {
        let mail = &mut self.outgoing[usize::from(shard)];
        let has_space =
            |last: &ShardMail| matches!(last, ShardMail::Frames(of) if of.len() < FRAMES_BYTES);
        let last = if mail.back().is_some_and(has_space) { mail.pop_back() } else { None };
        let mut frames = match last {
            Some(ShardMail::Frames(frames)) => frames,
            _ => Vec::new(),
        };
        let appended = append(&mut frames);
        if !frames.is_empty() {
            mail.push_back(ShardMail::Frames(frames));
        }
        appended
    }

    /// Mail to another shard, oldest first. What can't be sent stays there.
    pub(crate) fn outgoing(&mut self, shard: u16) -> &mut VecDeque<ShardMail> {
        &mut self.outgoing[usize::from(shard)]
    }

    /// Returns whether mail waits for space in the mailbox of another shard, which says nothing when
    /// it has some. The journal wakes the shard itself.
    pub(in crate::shard) fn is_congested(&self) -> bool {
        self.congested[..usize::from(self.lanes.shards())].contains(&true)
    }

    /// Returns whether all mail has left.
    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.outgoing.iter().all(VecDeque::is_empty)
            && self.journaled.as_ref().is_none_or(|journaled| journaled.is_empty())
    }

    /// Journals a room that was made, if its type is to be.
    pub(in crate::shard) fn journal(
        &mut self,
        room: Box<dyn AnyRoom>,
        id: RoomId,
        room_type: &RoomType,
        criteria: impl FnOnce() -> Vec<u8>,
    ) -> Box<dyn AnyRoom> {
        match &mut self.journaled {
            Some(journaled) => journaled.journal(room, id, room_type, criteria()),
            None => room,
        }
    }

    /// Takes the next piece of what sessions of this shard say to its journaled rooms.
    pub(in crate::shard) fn next_input(&mut self) -> Option<ShardMail> {
        let is_stalled = self.journaled.as_ref().is_none_or(|journaled| journaled.is_stalled());
        let inputs = usize::from(self.lanes.inputs());
        if is_stalled { None } else { self.outgoing[inputs].pop_front() }
    }

    /// Returns whether sessions of this shard have said something to its journaled rooms that
    /// waits, or has to.
    pub(in crate::shard) fn has_input(&self) -> bool {
        let is_stalled = self.journaled.as_ref().is_none_or(|journaled| journaled.is_stalled());
        is_stalled || !self.outgoing[usize::from(self.lanes.inputs())].is_empty()
    }

    /// Takes the next piece of mail of journaled rooms for this shard that need not wait any more.
    /// That for other shards goes on.
    pub(in crate::shard) fn next_released(&mut self, own: u16) -> Option<ShardMail> {
        let journaled = self.journaled.as_mut()?;
        loop {
            if let Some(mail) = journaled.released.pop_front() {
                return Some(mail);
            }
            let (shard, mut mail) = journaled.release()?;
            if shard == own {
                journaled.released = mail;
            } else {
                self.outgoing[usize::from(shard)].append(&mut mail);
            }
        }
    }

    /// Ends the block of this turn: what journaled rooms have sent waits for it. Returns whether
    /// it begins a file of the journal.
    pub(in crate::shard) fn hold_for_block(&mut self, now: Duration) -> bool {
        let Some(journaled) = &mut self.journaled else { return false };
        let begins_file = journaled.end_block(now);
        for shard in 0..self.lanes.shards() {
            let lane = &mut self.outgoing[usize::from(self.lanes.held(shard))];
            if !lane.is_empty() {
                journaled.hold(shard, std::mem::take(lane));
            }
        }
        begins_file
    }

    /// Returns whether journaled rooms have something to do, or to send, at once.
    pub(in crate::shard) fn has_held(&self) -> bool {
        let Some(journaled) = &self.journaled else { return false };
        let (first, inputs) = (self.lanes.held(0).into(), usize::from(self.lanes.inputs()));
        journaled.may_release()
            || self.outgoing[first..inputs].iter().any(|lane| !lane.is_empty())
            || !journaled.is_stalled() && !self.outgoing[inputs].is_empty()
            || journaled.to_write.is_some() && journaled.is_write_due
    }

    /// Returns whether journaled rooms that could not be written whole are to be tried again. They
    /// do not change while the journal stands still.
    pub(in crate::shard) fn has_to_write(&self) -> bool {
        let waits = |of: &Journaled| of.to_write.is_some() && !of.is_stalled();
        self.journaled.as_deref().is_some_and(waits)
    }
}
