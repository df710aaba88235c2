//! The reports of audits.

use std::fmt;
use std::time::Duration;

use playfield_state::PlayerId;

use super::{Divergence, Refusals};

/// The result of [`Sim::audit`](crate::sim::Sim::audit).
#[derive(Clone, Debug)]
#[must_use = "an audit says what it found by `assert_silent` or `leaks`"]
pub struct AuditReport {
    pub(super) leaks: Vec<Leak>,
    pub(super) void: Option<Void>,
    pub(super) runs: usize,
    pub(super) inputs: usize,
    pub(super) messages: usize,
    pub(super) refusals: Vec<Refusals>,
}

/// The reason why an audit proves nothing.
#[derive(Clone, Debug)]
pub(super) enum Void {
    /// The room differs without another secret.
    Divergence(Divergence),
    /// Inputs of players who may not see the secret depend on it.
    Inputs([String; 2]),
    /// Nothing in the room depends on the secret.
    NoEffect,
    /// Nobody who may not see the secret was there.
    Nobody,
    FewerThanTwo,
}

/// A difference between two runs that one party can see, and may not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leak {
    /// The player who is sent it; `None` if it is not sent to a player.
    pub player: Option<PlayerId>,
    /// That player's name and number, or another party: a channel, or clients that list rooms.
    pub to: String,
    /// The kind of message.
    pub kind: LeakKind,
    /// The difference between the messages.
    pub difference: Difference,
    /// The place in it: the path of a field of the state, or the name of a message and the path in
    /// it, such as `hands.2.0` or `Shown.numbers.1`. Empty for the whole of it.
    pub path: String,
    /// The values in the two runs, for people: numbers, texts and so on in JSON.
    pub values: [String; 2],
    /// The two runs, by the position of their secrets, from 0.
    pub runs: [usize; 2],
    /// The time in the room.
    pub at: Duration,
    /// The number of the last tick.
    pub tick: u64,
    /// The number of the last input before, from 1; 0 if there was none.
    pub input: usize,
    /// A description of that input.
    pub input_text: String,
}

/// The kind of message that shows a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeakKind {
    /// The answer to a join, with the player's number.
    Joined,
    /// The refusal of a join.
    Refused,
    /// The end of a player's membership: a kick, or the room's end.
    Removed,
    /// The whole state as a player sees it.
    Snapshot,
    /// A change of the state as a player sees it.
    Patch,
    /// An event.
    Event,
    /// The reply to a request.
    Reply,
    /// The refusal of a message.
    Error,
    /// The list of rooms.
    Listing,
    /// A publication in a channel, or a push to devices.
    Publication,
    /// A message to another room. Only [`Divergence`] has this kind.
    Mail,
}

/// The difference between what two runs of a room have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Another value, which may also be longer.
    Value,
    /// The same values in other bytes: another order of entries, another length.
    Encoding,
    /// The same messages of one moment in another order.
    Order,
    /// The same message at another time.
    Time,
    /// A message that only one run has sent.
    Count,
}

impl AuditReport {
    /// The leaks: of each party, the first difference, in the order of time.
    #[must_use]
    pub fn leaks(&self) -> &[Leak] {
        &self.leaks
    }

    /// Returns whether the audit has compared anything, and nothing leaks.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.leaks.is_empty() && self.void.is_none()
    }

    /// The number of messages of each run that were compared with those of another, for parties who
    /// may not see the secret.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// The kinds of inputs that the room refused at least once. Only the refusals of such inputs
    /// were compared, so an audit with many of them proves little.
    #[must_use]
    pub fn refusals(&self) -> &[Refusals] {
        &self.refusals
    }

    /// Ends a test.
    ///
    /// # Panics
    /// With the report, if there is a leak, or if the audit proves nothing: the secrets change
    /// nothing in the room, nobody is there who may not see them, the test drives such players
    /// differently, or the room is not deterministic.
    #[track_caller]
    pub fn assert_silent(&self) {
        assert!(self.is_silent(), "{self}");
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leaks, runs, inputs, messages, void, refusals } = self;
        match (&leaks[..], void) {
            ([], Some(void)) => write!(f, "the audit proves nothing: {void}")?,
            ([], None) => write!(
                f,
                "no leak: {messages} messages are equal in {runs} runs of {inputs} inputs"
            )?,
            _ => {
                let depend = if leaks.len() == 1 { "place depends" } else { "places depend" };
                let count = leaks.len();
                write!(f, "{count} {depend} on the secret and can be seen without a right to:")?;
                leaks.iter().try_for_each(|leak| write!(f, "\n- {leak}"))?;
            }
        }
        if !refusals.is_empty() {
            f.write_str("\nThe room refused these inputs, so only the refusals were compared:")?;
        }
        refusals.iter().try_for_each(|refusals| write!(f, "\n- {refusals}"))
    }
}

impl fmt::Display for Void {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Divergence(divergence) => divergence.fmt(f),
            Self::Inputs([one, other]) => write!(
                f,
                "without a leak before, the inputs of the runs differ: {one}, and {other}. Give \
                 players who may not see the secret the same inputs at the same time in each run, \
                 or declare by `Sim::may_see` that a player may see it"
            ),
            Self::NoEffect => f.write_str(
                "nothing in the room depends on the secret, not even its hidden state. Let the \
                 closure use it",
            ),
            Self::Nobody => f.write_str(
                "nobody was sent anything who may not see the secret. Let a player join whom \
                 `Sim::may_see` does not name",
            ),
            Self::FewerThanTwo => f.write_str("there are fewer than two secrets to compare"),
        }
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to, kind, difference, path, values: [one, other], runs, .. } = self;
        let of = if path.is_empty() { "" } else { ", " };
        let [first, second] = runs;
        write!(
            f,
            "{kind} to {to}{of}{path}: {difference}: {one} with secret {first}, {other} with \
             secret {second}; at {:?}, tick {}, ",
            self.at, self.tick
        )?;
        match self.input {
            0 => f.write_str("before any input"),
            number => write!(f, "after input {number}: {}", self.input_text),
        }
    }
}

impl fmt::Display for LeakKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joined => "the answer to the join",
            Self::Refused => "the refusal to join",
            Self::Removed => "the removal",
            Self::Snapshot => "the snapshot",
            Self::Patch => "the patch",
            Self::Event => "the event",
            Self::Reply => "the reply",
            Self::Error => "the error",
            Self::Listing => "the listing",
            Self::Publication => "the publication",
            Self::Mail => "the message",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "another value",
            Self::Encoding => "the same values in other bytes",
            Self::Order => "another order",
            Self::Time => "another time",
            Self::Count => "sent in one run only",
        })
    }
}
