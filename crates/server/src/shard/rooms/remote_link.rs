//! The link of a member to a session of another shard.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::addresses::Address;
use crate::config::Config;
use crate::shard::connection::Kind;
use crate::shard::frames::{Frame, Stay, ToSession, append_message};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::Act;
use crate::shard::mail::member::ResumeCopy;
use crate::shard::outbound::Outbound;
use crate::shard::rooms::link::has_space;

/// The most bytes that may be on their way to a log, as a multiple of what it keeps.
const LOGS_ON_THE_WAY: usize = 16;

/// The link to a session of another shard.
pub(crate) struct RemoteLink {
    pub(crate) shard: u16,
    stay: Stay,
    /// More waits for the client than its transport takes.
    pub(crate) blocked: bool,
    /// The bytes of messages that are not known to be passed on.
    unconfirmed: usize,
    /// The unconfirmed bytes appended before the turn of the last message, which is the turn
    /// `appended_in`.
    earlier: usize,
    appended_in: u64,
    /// The link is given up: too much was unconfirmed. If its session turns out to be away, it
    /// goes on, and what it was not sent meanwhile is lost.
    pub(crate) doomed: bool,
    /// The link takes only what is counted: its session has no connection, or is being resumed.
    pub(crate) held: bool,
    /// The address that its client connects from.
    pub(crate) address: Arc<Address>,
    /// The return of its client that waits for what brings the copy up to date, if one does.
    pub(crate) resume_copy: Option<ResumeCopy>,
    /// Acts that wait until its client has read more of what it was sent.
    pub(crate) waiting: VecDeque<Act<'static>>,
}

impl RemoteLink {
    pub(crate) fn new(shard: u16, stay: Stay, address: Arc<Address>) -> Self {
        Self {
            shard,
            stay,
            blocked: false,
            unconfirmed: 0,
            earlier: 0,
            appended_in: 0,
            doomed: false,
            held: false,
            address,
            resume_copy: None,
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn connection(&self) -> ConnectionKey {
        self.stay.connection
    }

    /// Returns whether the client has yet to read something: the transport is full, or messages of
    /// earlier turns are not known to be passed on.
    pub(crate) fn is_behind(&self, turn: u64) -> bool {
        let unconfirmed = if self.appended_in == turn { self.earlier } else { self.unconfirmed };
        self.blocked || unconfirmed > 0
    }

    /// Returns whether there is space for `bytes` more on the way to the client. To a session
    /// without a connection, more may be on the way than its log keeps, since that keeps the
    /// newest.
    pub(super) fn has_space(&self, config: &Config, bytes: usize) -> bool {
        let limits = &config.limits.session;
        let logs = if self.held { LOGS_ON_THE_WAY } else { 0 };
        let held_bytes_max = limits.resume_bytes.saturating_mul(logs);
        has_space(self.unconfirmed, bytes, limits.outbox_bytes.max.saturating_add(held_bytes_max))
    }

    /// Returns whether more than `high_bytes` wait for the client.
    pub(crate) fn is_loaded(&self, high_bytes: usize) -> bool {
        self.unconfirmed > high_bytes
    }

    /// The session's shard has passed on this many bytes of messages, and the transport is empty.
    pub(crate) fn confirm(&mut self, bytes: usize) {
        self.blocked = false;
        self.unconfirmed = self.unconfirmed.saturating_sub(bytes);
        self.earlier = self.earlier.saturating_sub(bytes);
    }

    pub(crate) fn put(&self, outbound: &mut Outbound, what: ToSession<'_>) {
        outbound.frames(self.shard, |out| Frame::Session(self.stay, what).append(out));
    }

    /// Appends a message, which is what `write` appends, or nothing if it answers `false`.
    pub(super) fn append(
        &mut self,
        outbound: &mut Outbound,
        turn: u64,
        kind: Kind,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let appended =
            outbound.frames(self.shard, |out| append_message(out, self.stay, kind, write));
        self.count(turn, appended.unwrap_or(0));
        appended.is_some()
    }

    pub(super) fn count(&mut self, turn: u64, bytes: usize) {
        if std::mem::replace(&mut self.appended_in, turn) != turn {
            self.earlier = self.unconfirmed;
        }
        self.unconfirmed += bytes;
    }
}
