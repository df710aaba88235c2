//! The nodes of a cluster that a client is connected to. The first is the one that the program has
//! named; the others are those to which joins were redirected.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use playfield_client::poll::{Buffers, Connection, NumberMap, Token};
use playfield_client::session::Url;
use playfield_client::{Error, RequestNumber, RoomNumber};

use crate::event::{PfEventKind, Report};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::state::{Asked, Seat, State, Waiting};

/// The stage of a connection.
pub(crate) enum Link {
    Setup(Box<Settings>),
    Open(Box<Connection>),
    Over,
}

/// A node, with the connection to it and all that was asked there.
pub(crate) struct Node {
    pub(crate) link: Link,
    /// The node has answered the first hello.
    pub(crate) is_welcomed: bool,
    /// The connection is to be closed once no command waits.
    pub(crate) is_closing: bool,
    pub(crate) lost_at: Option<Instant>,
    /// The number of the session: those of all nodes count together.
    pub(crate) session: u32,
    pub(crate) asked: NumberMap<RequestNumber, Asked>,
    pub(crate) pings: HashMap<u64, u64>,
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) seats: NumberMap<RoomNumber, Seat>,
    /// The request for a token that the program has not answered.
    pub(crate) token_request: u64,
    /// Sends of an ended session that the node has not confirmed.
    pub(crate) unconfirmed: u64,
    /// The place of the node, if the program has not named it.
    pub(crate) elsewhere: Option<Box<Elsewhere>>,
}

/// The place of another node, and how long the client stays there.
pub(crate) struct Elsewhere {
    /// The address that the client was sent to.
    url: Url,
    /// The token of its sockets.
    pub(crate) token: Token,
    /// The time since which nothing is left there.
    idle_since: Option<Instant>,
    /// The client has said goodbye, or is about to: no other room is entered over this connection.
    pub(crate) is_leaving: bool,
}

impl Node {
    pub(crate) fn new(link: Link, session: u32, elsewhere: Option<Box<Elsewhere>>) -> Self {
        Self {
            link,
            is_welcomed: false,
            is_closing: false,
            lost_at: None,
            session,
            asked: NumberMap::default(),
            pings: HashMap::new(),
            waiting: VecDeque::new(),
            seats: NumberMap::default(),
            token_request: 0,
            unconfirmed: 0,
            elsewhere,
        }
    }

    /// Returns whether a command can be given now. At another node the first follow the hello.
    #[inline]
    pub(crate) fn takes_commands(&self) -> bool {
        let Link::Open(connection) = &self.link else { return false };
        connection.takes_commands() || self.elsewhere.is_some() && connection.is_greeting()
    }

    /// Counts the commands that wait for an answer, or for their turn.
    pub(crate) fn waits(&self) -> usize {
        self.asked.len() + self.pings.len() + self.waiting.len()
    }

    /// The address, if it is not the node that the program has named.
    pub(crate) fn url(&self) -> Option<&Url> {
        Some(&self.elsewhere.as_deref()?.url)
    }

    /// Returns whether joins can be sent to this node, and this is one of its addresses.
    pub(crate) fn is_at(&self, url: &Url) -> bool {
        let is_leaving = self.elsewhere.as_deref().is_some_and(|of| of.is_leaving);
        let Link::Open(connection) = &self.link else { return false };
        !is_leaving && connection.is_at(url)
    }

    /// The same as text; empty for the first node.
    pub(crate) fn name(&self) -> String {
        self.url().map_or_else(String::new, Url::to_string)
    }

    /// A report about the connection. It names the node, if the program has not.
    pub(crate) fn report(&self, kind: PfEventKind) -> Report {
        Report { name: self.name(), ..Report::new(kind) }
    }

    fn due_at(&self, stays: Duration) -> Option<Instant> {
        let Link::Open(connection) = &self.link else { return None };
        let idle = self.elsewhere.as_deref().filter(|elsewhere| !elsewhere.is_leaving);
        let leaves = idle.and_then(|idle| idle.idle_since?.checked_add(stays));
        connection.due_at().into_iter().chain(leaves).min()
    }

    /// Notes whether anything is left at another node. Returns whether nothing was for so long.
    pub(crate) fn is_unused(&mut self, stays: Duration, now: Instant) -> bool {
        let is_idle = self.seats.is_empty() && self.asked.is_empty() && self.waiting.is_empty();
        let Some(elsewhere) = &mut self.elsewhere else { return false };
        elsewhere.idle_since = is_idle.then(|| elsewhere.idle_since.unwrap_or(now));
        let since = elsewhere.idle_since.filter(|_| !elsewhere.is_leaving);
        since.is_some_and(|since| now.saturating_duration_since(since) >= stays)
    }

    /// Gives the token that this request wants. Returns whether it is wanted.
    pub(crate) fn takes_token(&mut self, request: u64, token: &[u8]) -> bool {
        let Link::Open(connection) = &mut self.link else { return false };
        let is_given = self.token_request == request && connection.give_token(token.to_vec());
        if is_given {
            self.token_request = 0;
        }
        is_given
    }

    /// The connection to another node, and the token of its sockets.
    pub(crate) fn into_connection(self) -> Option<(Box<Connection>, Token)> {
        let Link::Open(connection) = self.link else { return None };
        Some((connection, self.elsewhere?.token))
    }

    /// Has the connection end once no command waits; at once if it is not there.
    fn leave(&mut self, buffers: &mut Buffers) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.is_leaving = true;
        }
        let Link::Open(connection) = &mut self.link else { return };
        // Commands that wait are not carried out if the connection is lost.
        if connection.is_connected() && !self.waiting.is_empty() {
            self.is_closing = true;
        } else {
            connection.close(buffers);
        }
    }
}

impl Elsewhere {
    pub(crate) fn new(url: Url, token: Token) -> Self {
        Self { url, token, idle_since: None, is_leaving: false }
    }
}

impl State {
    /// The time at which a connection has something to do.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let Link::Open(connection) = &self.node.link else { return None };
        let due_at = connection.due_at();
        if self.others.is_empty() {
            return due_at;
        }
        let others = self.others.iter().filter_map(|node| node.due_at(self.stays));
        due_at.into_iter().chain(others).min()
    }

    /// The place of the node whose session this is, among the other nodes.
    pub(crate) fn other(&self, session: u32) -> Option<usize> {
        self.others.iter().position(|node| node.session == session)
    }

    /// Does something with one of the other nodes in the place of the first.
    pub(crate) fn at<T>(&mut self, other: usize, act: impl FnOnce(&mut Self) -> T) -> T {
        std::mem::swap(&mut self.node, &mut self.others[other]);
        let done = act(self);
        std::mem::swap(&mut self.node, &mut self.others[other]);
        done
    }

    /// Does something at the node whose session this is. `None` if that session is over.
    #[inline]
    pub(crate) fn in_session<T>(
        &mut self,
        session: u32,
        act: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        if session == self.node.session {
            return Some(act(self));
        }
        let other = self.other(session)?;
        Some(self.at(other, act))
    }

    /// All nodes.
    pub(crate) fn nodes(&mut self) -> impl Iterator<Item = &mut Node> {
        std::iter::once(&mut self.node).chain(&mut self.others)
    }

    /// The program closes the client: all connections end.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        for node in std::iter::once(&mut self.node).chain(&mut self.others) {
            node.leave(&mut self.buffers);
        }
    }

    /// Closes the connections to other nodes where nothing is left; forgets those that are over.
    pub(crate) fn leave_unused(&mut self, now: Instant) {
        let Self { others, buffers, stays, .. } = self;
        for node in others.iter_mut() {
            if node.is_unused(*stays, now) {
                node.leave(buffers);
            }
        }
        others.retain(|node| match &node.link {
            Link::Open(connection) => !connection.is_over() || connection.has_news(),
            Link::Setup(_) | Link::Over => false,
        });
    }

    /// The connection to the present node, which is not the first, has ended.
    pub(crate) fn closed_elsewhere(&mut self, why: Option<Error>, failure: &Failure) {
        self.end_node();
        let (mut asked, has_rooms) = (self.asked(), !self.node.seats.is_empty());
        self.end_rooms(why.as_ref());
        let mut number = std::mem::take(&mut self.node.unconfirmed);
        for waiting in std::mem::take(&mut self.node.waiting) {
            match waiting.into_join() {
                Ok(join) => asked.push(join),
                Err(waiting) => number += waiting.fail(self, failure),
            }
        }
        asked.sort_unstable_by_key(|asked| asked.request);
        self.go_on_elsewhere(asked, why.and_then(|why| why.code()), failure);
        if self.is_leaving {
            *self.last.as_mut().map_or(&mut self.unconfirmed, |last| &mut last.number) += number;
        } else if has_rooms || number > 0 {
            let report = self.node.report(PfEventKind::NewSession);
            self.report(Report { number, ..report.because(failure.clone()) });
        }
    }

    /// Nothing more is asked at the present node: commands to its rooms find no session.
    fn end_node(&mut self) {
        self.sessions += 1;
        self.node.session = self.sessions;
        if let Some(elsewhere) = &mut self.node.elsewhere {
            elsewhere.is_leaving = true;
        }
    }

    /// The connection to the first node has ended: so do the others.
    pub(crate) fn close_others(&mut self, why: Option<&Error>, failure: &Failure) {
        self.fail_steps(failure);
        for other in 0..self.others.len() {
            self.at(other, |state| {
                let asked = state.asked();
                state.fail_all(asked, failure);
                state.end_rooms(why);
                state.unconfirmed += state.fail_waiting(failure);
                state.end_node();
                if let Link::Open(connection) = &mut state.node.link {
                    connection.close(&mut state.buffers);
                }
            });
        }
    }
}
