//! Joins, which a node may redirect to another node that has the room.
//!
//! ```text
//!  join ──▶ first node ──▶ joined, or refused
//!    ▲          │ redirect
//!    │          ▼
//!    └───── other node ──▶ joined, or refused
//!           unreachable, or the reservation is over
//! ```

use std::sync::Arc;

use playfield_client::poll::{Connection, Dialer, Room, Token};
use playfield_client::session::server::Redirect;
use playfield_client::session::{Build, Failure as Failed, Route, Session, Target, Turn, Url};
use playfield_client::{Error, ErrorCode};

use crate::client::ClientCell;
use crate::event::{PfEventKind, Report};
use crate::failure::{Failure, Outcome, PfCode};
use crate::node::{Elsewhere, Link, Node};
use crate::settings::Settings;
use crate::state::{Asked, Command, Given, Sender, State, What};

/// The token of the first socket to another node: the waiter has those before.
const FIRST_TOKEN: usize = 2;

/// A join of the program.
pub(crate) struct Join {
    pub(crate) room: Room,
    route: Route,
    /// The room that is asked for now.
    target: Target,
}

/// The next step of a join, for when the events of the node are taken.
pub(crate) struct Step {
    asked: Asked,
    /// The node to ask. `None`: the first.
    at: Option<Url>,
}

/// The way to other nodes.
pub(crate) struct Ways {
    settings: Box<Settings>,
    dialer: Arc<Dialer>,
    /// The token of the sockets of the next connection.
    token: usize,
}

impl Ways {
    pub(crate) fn new(settings: Box<Settings>, dialer: Arc<Dialer>) -> Self {
        Self { settings, dialer, token: FIRST_TOKEN }
    }

    /// Begins to connect to another node, in this session.
    fn open(&mut self, client: &ClientCell, url: Url, session: u32) -> Result<Node, Error> {
        let dialer = Arc::new(self.dialer.another(url.clone())?);
        let token = Token(self.token);
        self.token += 1;
        let registration = client.registration().with_token(token);
        let connection = Connection::open(dialer, self.settings.connect.clone(), registration);
        let elsewhere = Some(Box::new(Elsewhere::new(url, token)));
        Ok(Node::new(Link::Open(Box::new(connection)), session, elsewhere))
    }
}

impl Join {
    fn request(&self) -> impl Command + use<> {
        let (target, copy) = (self.target.clone(), self.room.copy());
        move |session: &mut Session| session.enter(target, Build::Any, copy).map(Given::Request)
    }
}

impl State {
    /// Begins to enter a room. Returns the number of the request.
    pub(crate) fn join(&mut self, target: Target) -> Outcome<u64> {
        self.check_connected()?;
        let Link::Open(connection) = &self.node.link else { return Err(Failure::closed()) };
        let route = Route::new(target.clone(), connection.reach());
        let join = Box::new(Join { room: Room::new(self.kept), route, target });
        let request = join.request();
        self.ask(None, What::Enter(join), request)
    }

    /// The present node has redirected a join.
    pub(crate) fn redirected(&mut self, redirect: &Redirect<'_>) {
        let Some(mut asked) = self.node.asked.remove(&redirect.request) else { return };
        let What::Enter(join) = &mut asked.what else { return };
        let turn = join.route.redirected(&redirect.addresses, &redirect.reservation);
        self.turn(asked, turn);
    }

    /// A request has failed. Returns it, unless it is a join that goes on elsewhere.
    pub(crate) fn goes_on(&mut self, mut asked: Asked, failure: &Failed<'_>) -> Option<Asked> {
        if let What::Enter(join) = &mut asked.what
            && let &Failed::Refused { code, .. } = failure
            && let Some(turn) = join.route.refused(code)
        {
            self.turn(asked, turn);
            return None;
        }
        Some(asked)
    }

    /// The connection to another node has ended, or there was none. Its joins go on elsewhere,
    /// unless they were refused with it.
    pub(crate) fn go_on_elsewhere(
        &mut self,
        asked: Vec<Asked>,
        code: Option<ErrorCode>,
        why: &Failure,
    ) {
        let is_over = self.is_leaving || self.ended.is_some();
        for mut asked in asked {
            let turn = match (&mut asked.what, code) {
                (What::Enter(join), Some(code)) if !is_over => join.route.refused(code),
                (What::Enter(join), None) if !is_over => Some(join.route.unreachable(&why.message)),
                _ => None,
            };
            match turn {
                Some(turn) => self.turn(asked, turn),
                None => self.answer(asked.what.report(asked.request).because(why.clone())),
            }
        }
    }

    fn turn(&mut self, mut asked: Asked, turn: Turn) {
        let What::Enter(join) = &mut asked.what else { return };
        let at = match turn {
            Turn::There { address, target } => {
                join.target = target;
                Some(address)
            }
            Turn::Again => {
                join.target = join.route.target().clone();
                None
            }
            Turn::Unreachable(text) => {
                let reason = ErrorCode::Unreachable.name().into_owned();
                let failure = Failure { reason, ..Failure::new(PfCode::Unreachable, text) };
                let answer = Report::answer(PfEventKind::Joined, asked.request);
                return self.answer(answer.because(failure));
            }
        };
        self.steps.push_back(Step { asked, at });
    }

    /// Takes the next steps of joins. The first node is the present one.
    pub(crate) fn follow(&mut self, client: &ClientCell) {
        if self.is_leaving || self.ended.is_some() {
            return self.fail_steps(&Failure::closed());
        }
        while let Some(Step { asked, at }) = self.steps.pop_front() {
            let What::Enter(join) = &asked.what else { continue };
            let request = join.request();
            match at.map(|url| self.node_at(client, url)) {
                None | Some(Ok(None)) => self.give(None, Some(asked), Sender::Nobody, request),
                Some(Ok(Some(other))) => {
                    self.at(other, |state| state.give(None, Some(asked), Sender::Nobody, request));
                }
                Some(Err(error)) => self.go_on_elsewhere(vec![asked], None, &error.into()),
            }
        }
    }

    /// The place of the node at this address, which is connected to if it is none of those that are
    /// there. `None`: it is the first.
    fn node_at(&mut self, client: &ClientCell, url: Url) -> Result<Option<usize>, Error> {
        if self.node.is_at(&url) {
            return Ok(None);
        }
        if let Some(known) = self.others.iter().position(|node| node.is_at(&url)) {
            return Ok(Some(known));
        }
        let Some(ways) = &mut self.ways else { return Ok(None) };
        self.sessions += 1;
        self.others.push(ways.open(client, url, self.sessions)?);
        Ok(Some(self.others.len() - 1))
    }

    /// Fails the joins whose next step is not taken.
    pub(crate) fn fail_steps(&mut self, failure: &Failure) {
        let steps = std::mem::take(&mut self.steps);
        self.fail_all(steps.into_iter().map(|step| step.asked).collect(), failure);
    }
}
