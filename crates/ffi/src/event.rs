//! What `pf_client_next` returns.

use serde_json::Value;

use crate::client::{PfChannel, PfDevice, PfRoom};
use crate::failure::{Failure, PfCode};
use crate::text::PfText;
use crate::value::PfValue;

/// What happened.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PfEventKind {
    /// Nothing, in the time given.
    #[default]
    None = 0,
    /// The connection is there.
    Connected = 1,
    /// The connection was lost, `text` says why. The client connects again by itself. This event
    /// and the others about a connection name its node in `name`, if a join was redirected to it;
    /// the name of the node that the program has connected to is empty.
    Lost = 2,
    /// An attempt to connect again failed; another follows.
    AttemptFailed = 3,
    /// The connection is restored, and the session continues. `number` is how long it was lost, in
    /// milliseconds.
    Resumed = 4,
    /// The connection is restored, but the node no longer had the session: all rooms there have
    /// ended. `number` is how many sends the node has not confirmed. If the connection to another
    /// node has ended, `code` and `text` say why; the next join that is redirected there makes
    /// another.
    NewSession = 5,
    /// The connection has ended, or could not be made: `code` and `text` say why. The last event:
    /// requests are answered before it, and rooms have ended. Requests that are made later fail.
    Ended = 6,
    /// The node is to be sent a token: answer with `pf_client_give_token`, and `request`.
    TokenWanted = 7,
    /// The answer to `request`: a room was entered, or `code` says why not.
    Joined = 8,
    /// The answer to `request`: `value` is the reply, or `bytes` if the request was in `packed`, or
    /// `code` says why there is none.
    Reply = 9,
    /// The state of `room` is another: what `pf_room_state` returns, of version `number`.
    State = 10,
    /// A place in the state of `room` has changed that is watched by `watch`: `name` is its path,
    /// `change` what happened, `old` and `value` the values before and after.
    Change = 11,
    /// An event of `room`: `name` and `value`, or `bytes` after `pf_room_set_packed`. `number` counts
    /// the room's events from 1.
    Event = 12,
    /// `number` events or changes of `room`, publications of `channel`, or commands to `device` were
    /// missed.
    Missed = 13,
    /// `room` refused a send, or an event could not be read: `code` and `text` say why. Without a
    /// room, the node refused a publication or a report that is unconfirmed.
    Error = 14,
    /// This client is no longer in `room`: `reason` and `text` say why.
    Left = 15,
    /// The answer to `request`: `channel` is subscribed to, or `code` says why not.
    Subscribing = 16,
    /// The node has answered the subscription of `channel`, on the first or a later connection.
    /// `change` is `PF_CHANGE_KIND_ENTERED` if nothing is missing, and `number` counts the members.
    Subscribed = 17,
    /// A publication in `channel`: `value` if it is JSON, and `bytes`; `name` is the user, if known;
    /// `number` its offset.
    Publication = 18,
    /// Another session subscribes to `channel` now: `name`, `number` counts joins and leaves, and
    /// `value` says who.
    MemberJoined = 19,
    /// Another session subscribes to `channel` no longer.
    MemberLeft = 20,
    /// The subscription of `channel` has ended: `reason` and `text` say why.
    Unsubscribed = 21,
    /// The answer to `request`: this client is registered as `device`, or `code` says why not.
    Registered = 22,
    /// A command to `device`: `value` if it is JSON, and `bytes`. `number` is for
    /// `pf_device_answer` and `pf_device_refuse`; 0 if no answer is wanted.
    Command = 23,
    /// The registration of `device` has ended: with the connection, because another call has taken
    /// its place, or because the node has refused it in a new session.
    Unregistered = 24,
    /// The connection is weak: a room with ticks, and all else, was not heard for about a second.
    Weak = 25,
    /// The connection is no longer weak.
    Back = 26,
}

impl PfEventKind {
    /// Whether it answers a request.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Self::Joined | Self::Reply | Self::Subscribing | Self::Registered)
    }
}

/// What happened at a place of a state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PfChangeKind {
    /// Not a change.
    #[default]
    None = 0,
    /// A value is new, or came into view.
    Entered = 1,
    /// A value changed.
    Changed = 2,
    /// A value is gone, or left the view.
    Left = 3,
    /// An element moved within its list, from the index `number`.
    Moved = 4,
}

/// Something that happened. Texts and values are valid until the next `pf_client_next` or
/// `pf_client_next_many` of the client.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PfEvent {
    /// What happened.
    pub kind: PfEventKind,
    /// 0, or why something failed.
    pub code: PfCode,
    /// What happened to the place, for `PF_EVENT_KIND_CHANGE`.
    pub change: PfChangeKind,
    /// The request that this answers.
    pub request: u64,
    /// The watch that this is for.
    pub watch: u64,
    /// A number; each kind says which.
    pub number: u64,
    /// The version of the room's state that holds everything synced before.
    pub version: u64,
    /// If `code` is not 0: how long to wait before asking again, in milliseconds; 0 if unknown.
    pub retry_after_ms: u64,
    /// The room.
    pub room: PfRoom,
    /// The channel.
    pub channel: PfChannel,
    /// The device.
    pub device: PfDevice,
    /// A name or a path.
    pub name: PfText,
    /// For people.
    pub text: PfText,
    /// The protocol's name of an error, such as `room_full`.
    pub reason: PfText,
    /// What the node or the room said itself, which is part of `text`.
    pub said: PfText,
    /// A value.
    pub value: PfValue,
    /// The value before.
    pub old: PfValue,
    /// The payload of a publication, a command, or the reply to a report; what is in `packed`.
    pub bytes: PfText,
}

/// A report that waits for `pf_client_next`.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) kind: PfEventKind,
    pub(crate) failure: Option<Box<Failure>>,
    pub(crate) change: PfChangeKind,
    pub(crate) request: u64,
    pub(crate) watch: u64,
    pub(crate) number: u64,
    pub(crate) version: u64,
    pub(crate) room: u64,
    pub(crate) channel: u64,
    pub(crate) device: u64,
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) reason: String,
    pub(crate) value: Option<Value>,
    pub(crate) old: Option<Value>,
    pub(crate) bytes: Vec<u8>,
}

impl Report {
    pub(crate) fn new(kind: PfEventKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// The answer to a request.
    pub(crate) fn answer(kind: PfEventKind, request: u64) -> Self {
        Self { kind, request, ..Self::default() }
    }

    pub(crate) fn because(mut self, failure: impl Into<Failure>) -> Self {
        self.failure = Some(Box::new(failure.into()));
        self
    }
}
