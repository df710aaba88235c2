//! Requests that the task makes for the handles.

use std::sync::Arc;

use playfield_wire::RequestNumber;

use super::command::{Answer, Arrival, Command, Place, Subscription};
use super::nodes::Counted;
use super::registry::{JoinedRoom, Registry, Subscriber, Waiting};
use super::task::Task;
use crate::Error;
use crate::channel;
use crate::device::Incoming;
use crate::queue::Queue;
use crate::room::Deliver;
use crate::session::{Build, CommandError, Event, Position, RoomCopy, Session, Target};

/// The most commands that are carried out before the socket is polled again.
const COMMANDS_MAX: usize = 256;

// An answer may find nobody, as the caller may have stopped waiting. That is never an error.
impl Task {
    /// Carries out a command, and those queued after it.
    pub(super) fn carry_out_all(&mut self, first: Command) {
        // A room whose handle was dropped is left before the program enters it again.
        self.signals.take_now().into_iter().for_each(|signal| self.heed(signal));
        self.carry_out(first);
        for _ in 1..COMMANDS_MAX {
            if self.farewell_ends.is_some() || !self.client.takes_commands(0) {
                break;
            }
            match self.registry.commands.try_recv() {
                Some(command) => self.carry_out(command),
                None => break,
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        // A room of an earlier session has a number that may be another's now.
        match command.place {
            Some(place) if !self.registry.is_now(place) => command.fail(),
            _ => command.carry_out(self),
        }
    }

    /// Waits for the event that answers a request, unless the session refused it.
    pub(crate) fn wait<T: Send + 'static>(
        &mut self,
        asked: Result<RequestNumber, CommandError>,
        answer: Answer<T>,
        hear: impl FnOnce(&mut Registry, Event<'_>, Answer<T>) + Send + 'static,
    ) {
        match asked {
            Ok(request) => {
                let waiting: Waiting = Box::new(move |outcome| match outcome {
                    Ok((registry, event)) => hear(registry, event, answer),
                    Err(error) => drop(answer.send(Err(error))),
                });
                self.registry.waiting.insert(request, waiting);
            }
            Err(error) => drop(answer.send(Err(error.into()))),
        }
    }

    /// Asks to enter a room.
    pub(crate) fn enter(
        &mut self,
        target: Target,
        build: Build,
        copy: Box<dyn RoomCopy + Send>,
        (room, counted): (Arc<dyn Deliver>, Option<Counted>),
        answer: Answer<Arrival>,
    ) {
        self.leave_forsaken();
        let reach = self.client.reach();
        let asked = self.client.enter(target, build, copy);
        self.wait(asked, answer, move |registry, event, answer| match event {
            Event::Joined(joined) => {
                let entering = Some((joined.to_static(), answer));
                let joined_room = JoinedRoom { room, entering, _counted: counted };
                registry.rooms.insert(joined.room, joined_room);
            }
            Event::Redirected(redirect) => {
                // The session lets a redirect through only if it follows them.
                if let Some(reach) = reach {
                    let redirected = Arrival::Redirected(redirect.into_owned(), reach);
                    let _ = answer.send(Ok(redirected));
                }
            }
            _ => {}
        });
    }

    /// Sends a message without a reply to a room.
    pub(crate) fn send(&mut self, place: Place, index: u32, payload: &[u8]) {
        if let Err(error) = self.client.send(place.room, index, payload)
            && let Some(room) = self.registry.rooms.get(&place.room)
        {
            room.room.failed(Error::from(error));
        }
    }

    /// Subscribes to a channel.
    pub(crate) fn subscribe(
        &mut self,
        name: &str,
        since: Option<Position>,
        presence: bool,
        channel: Arc<channel::Shared>,
        answer: Answer<Subscription>,
    ) {
        // A handle for the same channel that was dropped before makes way.
        self.signals.take_now().into_iter().for_each(|signal| self.heed(signal));
        match self.client.subscribe(name, since, presence) {
            Ok(subscription) => {
                let beginning = Some(answer);
                let to = Subscriber { channel, beginning, epoch: 0, is_bytes: false };
                self.registry.subscriptions.insert(subscription, to);
            }
            Err(error) => drop(answer.send(Err(error.into()))),
        }
    }

    /// Registers as a device, whose commands go to this queue then.
    pub(crate) fn register(
        &mut self,
        device: &str,
        metadata: &[(String, String)],
        tags: &[String],
        commands: Arc<Queue<Incoming>>,
        answer: Answer<(bool, bool)>,
    ) {
        let metadata: Vec<_> = metadata.iter().map(|(name, value)| (&**name, &**value)).collect();
        let tags: Vec<_> = tags.iter().map(|tag| &**tag).collect();
        let asked = self.client.register(device, &metadata, &tags);
        self.wait(asked, answer, move |registry, event, answer| {
            if let Event::Registered { is_new, bytes, .. } = event {
                registry.replace_device(Arc::downgrade(&commands));
                let _ = answer.send(Ok((is_new, bytes)));
            }
        });
    }

    /// Answers a command of this session.
    pub(crate) fn answer(&mut self, session: u32, command: u64, answer: Result<&[u8], &str>) {
        if self.registry.is_session(session) {
            self.tell(|client| client.answer(command, answer));
        }
    }

    /// Sends a message without an answer. If it is refused, as one that is too long is, it counts as
    /// not confirmed.
    pub(crate) fn tell<T>(&mut self, send: impl FnOnce(&mut Session) -> Result<T, CommandError>) {
        self.registry.unconfirmed += u64::from(send(&mut self.client).is_err());
    }
}

/// The payload of a reply.
pub(crate) fn reply_of(event: Event<'_>) -> Option<Vec<u8>> {
    match event {
        Event::Reply(reply) => Some(reply.payload.into_owned()),
        _ => None,
    }
}

/// The request of a message that asks for an answer.
pub(crate) fn asked(
    told: Result<Option<RequestNumber>, CommandError>,
) -> Result<RequestNumber, CommandError> {
    told.map(|request| request.expect("an answer was asked for"))
}
