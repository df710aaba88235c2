//! How the task carries out the commands of the handles.

use playfield_wire::RequestNumber;

use super::command::{Command, Enter, Query, Register, Subscribe};
use super::dispatch::{Subscribed, Waiting};
use super::task::{OUTPUT_BYTES_MAX, Task};
use crate::Error;
use crate::session::CommandError;

/// The most commands that are carried out before the socket is polled again.
const COMMANDS_MAX: usize = 256;

impl Task {
    /// Asks to enter a room.
    fn enter(&mut self, enter: Enter) {
        let Enter { target, build, copy, room, answer } = enter;
        let asked = self.client.enter(target, build, copy);
        self.wait(asked, Waiting::Enter { room, answer });
    }

    fn subscribe(&mut self, subscribe: Subscribe) {
        // A handle for the same channel that was dropped before makes way.
        self.signals.take_now().into_iter().for_each(|signal| self.heed(signal));
        let Subscribe { channel, since, presence, subscriber, answer } = subscribe;
        match self.client.subscribe(&channel, since, presence) {
            Ok(subscription) => {
                let beginning = Some(answer);
                let to = Subscribed { subscriber, beginning, epoch: 0, is_bytes: false };
                self.dispatch.subscriptions.insert(subscription, to);
            }
            Err(error) => drop(answer.send(Err(error.into()))),
        }
    }

    /// Waits for the answer to a request, unless the session refused it.
    fn wait(&mut self, asked: Result<RequestNumber, CommandError>, waiting: Waiting) {
        match asked {
            Ok(request) => drop(self.dispatch.waiting.insert(request, waiting)),
            Err(error) => waiting.fail(error.into()),
        }
    }

    /// Carries out a command, and those queued after it.
    pub(super) fn carry_out_all(&mut self, first: Command) {
        // A room whose handle was dropped is left before the program enters it again.
        self.signals.take_now().into_iter().for_each(|signal| self.heed(signal));
        self.carry_out(first);
        for _ in 1..COMMANDS_MAX {
            if self.farewell_ends.is_some()
                || self.client.output_bytes() >= OUTPUT_BYTES_MAX
                || self.client.is_full()
            {
                break;
            }
            match self.dispatch.commands.try_recv() {
                Some(command) => self.carry_out(command),
                None => break,
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        let client = &mut self.client;
        // A room of an earlier session has a number that may be another's now.
        if command.place().is_some_and(|place| !self.dispatch.is_now(place)) {
            return command.fail(&Error::new_session());
        }
        let (asked, waiting) = match command {
            Command::Leave { place, answer } => (client.leave(place.room), Waiting::Leave(answer)),
            Command::Schema { room_type, answer } => {
                (client.schema(&room_type), Waiting::ShowSchema(answer))
            }
            Command::List { query: Query { room_type, filter, limit }, answer } => {
                let filter: Vec<_> =
                    filter.iter().map(|(name, value)| (&**name, &**value)).collect();
                (client.list(room_type.as_deref(), &filter, limit), Waiting::List(answer))
            }
            Command::Request { place, index, payload, answer } => {
                (client.request(place.room, index, &payload), Waiting::Reply(answer))
            }
            Command::Send { place, index, payload } => {
                if let Err(error) = client.send(place.room, index, &payload)
                    && let Some(room) = self.dispatch.rooms.get(&place.room)
                {
                    room.room.failed(Error::from(error));
                }
                return;
            }
            Command::Ping { answer } => {
                // The caller may have stopped waiting for the answer.
                return match client.ping() {
                    Ok(nonce) => drop(self.dispatch.pings.insert(nonce, answer)),
                    Err(error) => drop(answer.send(Err(error.into()))),
                };
            }
            Command::Publish { channel, payload, answer } => {
                (asked(client.publish(&channel, &payload, true)), Waiting::Published(answer))
            }
            Command::Members { channel, answer } => {
                (client.members(&channel), Waiting::Members(answer))
            }
            Command::History { channel, since, limit, answer } => {
                (client.history(&channel, since, limit), Waiting::History(answer))
            }
            Command::ReportAnswered { payload, answer } => {
                (asked(client.report(&payload, true)), Waiting::Reply(answer))
            }
            Command::Register(Register { device, metadata, tags, commands, answer }) => {
                let metadata: Vec<_> =
                    metadata.iter().map(|(name, value)| (&**name, &**value)).collect();
                let tags: Vec<_> = tags.iter().map(|tag| &**tag).collect();
                let asked = client.register(&device, &metadata, &tags);
                (asked, Waiting::Register { commands, answer })
            }
            Command::PublishUnconfirmed { channel, payload } => {
                let is_taken = client.publish(&channel, &payload, false).is_ok();
                return self.dispatch.note_send(is_taken);
            }
            Command::Report { payload } => {
                let is_taken = client.report(&payload, false).is_ok();
                return self.dispatch.note_send(is_taken);
            }
            Command::Answer { session, command, answer } => {
                if self.dispatch.is_session(session) {
                    let answer = answer.as_ref().map(|bytes| &**bytes).map_err(|why| &**why);
                    let is_taken = client.answer(command, answer).is_ok();
                    self.dispatch.note_send(is_taken);
                }
                return;
            }
            Command::Subscribe(subscribe) => return self.subscribe(subscribe),
            Command::Enter(enter) => {
                self.leave_forsaken();
                return self.enter(enter);
            }
            Command::Forsake { place } => {
                self.dispatch.forsaken.push((place.room, 0));
                return;
            }
            Command::Close => return self.begin_farewell(),
        };
        self.wait(asked, waiting);
    }
}

/// The request of a message that asks for an answer.
fn asked(told: Result<Option<RequestNumber>, CommandError>) -> Result<RequestNumber, CommandError> {
    told.map(|request| request.expect("an answer was asked for"))
}
