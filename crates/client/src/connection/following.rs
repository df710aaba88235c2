//! Joins that follow redirects to other nodes.

use std::sync::Arc;

use playfield_wire::ErrorCode;

use super::Connection;
use super::command::{Arrival, Entered};
use super::nodes::Counted;
use crate::Error;
use crate::room::Deliver;
use crate::session::{Build, RoomCopy, Route, Target, Turn};

/// A room's copy, as the session keeps it, and what else is delivered to the room.
pub(crate) type Copies = (Box<dyn RoomCopy + Send>, Arc<dyn Deliver>);

impl Connection {
    /// Asks to enter a room, at whichever node it is. Returns the connection to that node. Each node
    /// that is asked gets copies of its own.
    pub(crate) async fn enter(
        &self,
        target: Target,
        build: Build,
        mut copies: impl FnMut() -> Copies,
    ) -> Result<(Entered, Self), Error> {
        let mut at = (self.clone(), None);
        let (mut asked, mut route) = (target.clone(), None::<Route>);
        loop {
            let (connection, counted) = at;
            let arrival = connection.ask_to_enter(asked, build.clone(), copies(), counted).await;
            let turn = match (arrival, &mut route) {
                (Ok(Arrival::Entered(entered)), _) => return Ok((entered, connection)),
                (Ok(Arrival::Redirected(redirect, reach)), route) => {
                    let route = route.get_or_insert_with(|| Route::new(target.clone(), reach));
                    route.redirected(&redirect.addresses, &redirect.reservation)
                }
                (Err(error), Some(route)) => route.failed(error)?,
                (Err(error), None) => return Err(error),
            };
            let route = route.as_mut().expect("there was a redirect");
            (at, asked) = self.follow(route, turn).await?;
        }
    }

    /// Finds the next node to ask, and what to ask for.
    async fn follow(
        &self,
        route: &mut Route,
        mut turn: Turn,
    ) -> Result<((Self, Option<Counted>), Target), Error> {
        loop {
            let (address, target) = match turn {
                Turn::There { address, target } => (address, target),
                Turn::Again => return Ok(((self.clone(), None), route.target().clone())),
                Turn::Unreachable(text) => return Err(Error::elsewhere(text)),
            };
            let first = self.first.as_ref().unwrap_or(&self.line);
            if first.status.is_at(&address) {
                let first = Self { line: first.clone(), first: None, ..self.clone() };
                return Ok(((first, None), target));
            }
            turn = match self.nodes.at(&address).await {
                Ok((line, counted)) => {
                    let there = Self { line, first: Some(first.clone()), ..self.clone() };
                    return Ok(((there, Some(counted)), target));
                }
                Err(error) => route.failed(error)?,
            };
        }
    }

    /// Asks the node of this connection.
    async fn ask_to_enter(
        &self,
        target: Target,
        build: Build,
        (copy, room): Copies,
        counted: Option<Counted>,
    ) -> Result<Arrival, Error> {
        let enter = move |task: &mut super::Task, answer| {
            task.enter(target, build, copy, (room, counted), answer);
        };
        self.line.ask(None, enter).await
    }
}

impl Route {
    /// The node that was asked has answered by an error, or can't be reached.
    fn failed(&mut self, error: Error) -> Result<Turn, Error> {
        if !self.is_elsewhere() || error.is_token_missing() {
            return Err(error);
        }
        if error.is_refused() {
            let code = error.code().unwrap_or(ErrorCode::Internal);
            return self.refused(code).ok_or(error);
        }
        if error.is_unanswered() { Ok(self.unreachable(error)) } else { Err(error) }
    }
}
