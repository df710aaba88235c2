//! A client whose hello has come, until the authenticator has decided.

use std::collections::BTreeSet;

use playfield_wire::client::Hello;
use playfield_wire::{ErrorCode, Format};

use crate::auth::{Decided, Deciding, Identity};
use crate::background::Underway;
use crate::node::Node;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::resume::{Opening, Wanted};
use crate::shard::session::outlet::Outlet;
use crate::users::Greeted;

/// The facts that are kept of a hello.
pub(crate) struct Greeting {
    pub(super) format: Format,
    /// The room types whose schemas differ from those that the client was built with. A set, so
    /// that each is sent once, however often the client names it.
    pub(super) mismatches: BTreeSet<u16>,
    /// Whether the client can resume the session.
    pub(super) resumable: bool,
    /// The session that it wants back.
    pub(super) wanted: Option<Wanted>,
    pub(super) greeted: Greeted,
    /// The identity, and the number of the session that opens when the user's other sessions have
    /// ended; `None` as long as the authenticator has not decided.
    pub(super) waits: Option<(Identity, u64)>,
    /// The authenticator's work.
    underway: Underway,
}

impl Greeting {
    pub(super) fn new(
        node: &Node,
        format: Format,
        hello: &Hello<'_>,
        wanted: Option<Wanted>,
    ) -> Self {
        let mismatches = hello
            .schemas
            .iter()
            .filter_map(|schema| {
                let room_type = node.room_type(&schema.room_type)?;
                let fingerprint = node.room_types[usize::from(room_type)].fingerprint;
                (fingerprint != schema.fingerprint).then_some(room_type)
            })
            .collect();
        let resumable = hello.resumable;
        let greeted = Greeted { moment: node.users.moment(), instead_of: None };
        let (waits, underway) = (None, Underway::default());
        Self { format, mismatches, resumable, wanted, greeted, waits, underway }
    }

    /// The greeting that is kept until the session with this number opens.
    pub(super) fn waiting(opening: Opening, session: u64) -> Self {
        let Opening { format, identity, resumable, mismatches, greeted } = opening;
        let (wanted, waits) = (None, Some((identity, session)));
        let underway = Underway::default();
        Self { format, mismatches, resumable, wanted, greeted, waits, underway }
    }

    /// The data for opening the session, and its number, if it waits for others to end.
    pub(super) fn into_opening(self) -> Option<(Opening, u64)> {
        let Self { format, mismatches, resumable, greeted, waits, .. } = self;
        let (identity, session) = waits?;
        Some((Opening { format, identity, resumable, mismatches, greeted }, session))
    }

    /// The user whose sessions it waits for, and the number of its own.
    pub(super) fn waits_for(&self) -> Option<(&str, u64)> {
        let (identity, session) = self.waits.as_ref()?;
        Some((identity.user.as_deref()?, *session))
    }

    /// The reason that it still waits, for an error.
    pub(in crate::shard) fn awaits(&self) -> &'static str {
        match self.waits {
            Some(_) => "the user's other sessions did not end",
            None => "the authenticator did not decide",
        }
    }
}

impl Outlet<'_> {
    /// The client waits until the authenticator has decided. Nothing more is read from it.
    pub(super) fn wait_for_identity(
        &mut self,
        key: ConnectionKey,
        mut greeting: Greeting,
        deciding: Deciding,
    ) {
        let background = &self.outbound.background;
        match background.decide(self.env.shard, key, deciding) {
            Ok(underway) => greeting.underway = underway,
            Err(error) => {
                if error.code() == ErrorCode::Busy {
                    self.env.counters.authentications_refused += 1;
                }
                return self.fail(key, error.code(), error.text());
            }
        }
        self.keep_greeting(key, greeting);
    }

    /// Returns whether a client waits for the authenticator.
    pub(in crate::shard) fn is_greeting(&self, key: ConnectionKey) -> bool {
        let connection = self.links.get(key);
        connection.is_some_and(|connection| connection.pause.greeting)
    }

    /// The authenticator has decided, or the check of a ticket's user. The client may be gone, or
    /// may have waited for too long.
    pub(in crate::shard) fn authenticated(
        &mut self,
        key: ConnectionKey,
        decision: u64,
        decided: Decided,
    ) {
        if self.links.get(key).is_none() {
            return;
        }
        let is_awaited = |of: &Greeting| of.underway.decision == decision;
        match (self.take_greeting_if(key, is_awaited), decided) {
            (Some(greeting), Ok(identity)) => self.greet(key, greeting, identity),
            (Some(_), Err(error)) => self.fail(key, error.code(), error.text()),
            (None, decided) => self.ticket_decided(key, decision, decided),
        }
        self.links.resumed.push(key);
    }
}
