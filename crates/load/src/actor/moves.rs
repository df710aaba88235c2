//! Redirects of a connection's joins: it moves to the node that has the room.

use playfield_client::RequestNumber;
use playfield_client::session::server::Redirect;
use playfield_client::session::{
    CommandError, Creation, Failure, Route, Session, Target, Turn, Url,
};

use super::{Actor, NOWHERE, Numbers, State, What};
use crate::engine::Shared;
use crate::program::Op;
use crate::settings::Enter;

/// A join that was redirected, until its room is entered.
pub(super) struct Move {
    route: Route,
    /// The room that is asked for now.
    target: Target,
    room: u32,
    /// The time at which the join was due.
    due: u64,
    step: Step,
}

enum Step {
    /// To connect to the node at this address; `None`: to the one that the load was started with.
    Connect(Option<Url>),
    /// To ask the node.
    Ask,
    /// Its answer is awaited.
    Wait,
}

impl Actor {
    /// The room of a join is at another node.
    pub(super) fn redirected(&mut self, redirect: &Redirect<'_>, shared: &mut Shared, now: u64) {
        let Some(asked) = self.answered(redirect.request.0.into(), Numbers::Request) else {
            return;
        };
        let What::Join { room } = asked.what else { return };
        if !self.rooms.is_empty() || !self.subscriptions.is_empty() || self.registered_at != NOWHERE
        {
            let why = "its room is at another node, and a connection of a load that has rooms, \
                       channels or a device does not move: let it enter this room first";
            return self.refuse_join(why, shared);
        }
        let mut of = match self.moving.take() {
            Some(of) => of,
            None => {
                let target = self.target(shared);
                let route = Route::new(target.clone(), shared.reach);
                Box::new(Move { route, target, room, due: asked.due, step: Step::Wait })
            }
        };
        let turn = of.route.redirected(&redirect.addresses, &redirect.reservation);
        self.turn(of, turn, shared, now);
    }

    /// A join was refused. Returns whether it goes on elsewhere.
    pub(super) fn moves_on(
        &mut self,
        failure: &Failure<'_>,
        shared: &mut Shared,
        now: u64,
    ) -> bool {
        // The end of the connection is heard of as well.
        if matches!(failure, Failure::Closed) {
            return self.moving.is_some();
        }
        let Some(mut of) = self.moving.take() else { return false };
        let Failure::Refused { code, .. } = failure else { return false };
        let Some(turn) = of.route.refused(*code) else { return false };
        self.turn(of, turn, shared, now);
        true
    }

    /// The connection to the node of a room has failed. Returns whether the join goes on elsewhere.
    pub(crate) fn is_unreachable(&mut self, why: &str, shared: &mut Shared, now: u64) -> bool {
        let Some(mut of) = self.moving.take() else { return false };
        let turn = of.route.unreachable(why);
        self.turn(of, turn, shared, now);
        self.moving.is_some()
    }

    fn turn(&mut self, mut of: Box<Move>, turn: Turn, shared: &mut Shared, now: u64) {
        let to = match turn {
            Turn::There { address, target } => {
                of.target = target;
                Some(address)
            }
            Turn::Again => {
                of.target = of.route.target().clone();
                None
            }
            Turn::Unreachable(text) => return self.refuse_join(&text, shared),
        };
        of.step = Step::Connect(to);
        self.moving = Some(of);
        // What is left are pings, which the other node does not answer.
        self.asked.clear();
        (self.state, self.waits_since) = (State::Waiting, now);
    }

    fn refuse_join(&mut self, why: &str, shared: &mut Shared) {
        shared.counts.joins_refused += 1;
        shared.problem(format!("a join was refused: {why}"));
        self.end(shared);
    }

    /// The node to connect to, once, if the connection is to move. The inner `None` is the one that
    /// the load was started with.
    pub(crate) fn moves_to(&mut self) -> Option<Option<Url>> {
        let step = &mut self.moving.as_mut()?.step;
        let Step::Connect(to) = step else { return None };
        let to = to.take();
        *step = Step::Ask;
        Some(to)
    }

    /// Asks the node that the connection has moved to.
    pub(crate) fn join_there(&mut self, client: &mut Session, shared: &mut Shared) {
        let Some(of) = &mut self.moving else { return };
        if !matches!(of.step, Step::Ask) {
            return;
        }
        of.step = Step::Wait;
        let (asked, room, due) = (enter(client, &of.target), of.room, of.due);
        if let Ok(request) = self.taken(asked, shared) {
            self.ask(request.0.into(), What::Join { room }, true, due);
        }
    }

    /// The room of the step that waits.
    fn target(&self, shared: &Shared) -> Target {
        let programs = &shared.programs;
        let ops = &programs.programs[self.program as usize].ops;
        let Some(Op::Join { room, enter, options }) = ops.get(self.at as usize) else {
            return Target::Join { id: String::new() };
        };
        let (room_type, options) = (programs.rooms[*room as usize].name.clone(), options.clone());
        let key = match enter {
            Enter::Any => None,
            Enter::Create => {
                return Target::Create { room_type, creation: Creation::default(), options };
            }
            Enter::Id(id) => return Target::Join { id: id.clone() },
            Enter::Key(key) => Some(key.clone()),
            Enter::Shared { key, connections } => Some(self.shared_key(key, *connections)),
        };
        Target::JoinOrCreate { room_type, key, options }
    }

    /// The key of the room that this many connections share.
    pub(super) fn shared_key(&self, key: &str, connections: usize) -> String {
        format!("{key}{}", self.number as usize / connections.max(1))
    }
}

fn enter(client: &mut Session, target: &Target) -> Result<RequestNumber, CommandError> {
    match target {
        Target::Join { id } => client.join(id),
        Target::JoinByKey { room_type, key } => client.join_by_key(room_type, key),
        Target::Create { room_type, creation, options } => {
            client.create(room_type, creation, options)
        }
        Target::JoinOrCreate { room_type, key: None, options } => {
            client.join_or_create(room_type, options)
        }
        Target::JoinOrCreate { room_type, key: Some(key), options } => {
            client.join_or_create_by_key(room_type, key, options)
        }
    }
}
