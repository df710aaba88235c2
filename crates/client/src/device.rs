//! Devices: registration, commands and reports.

use std::fmt;
use std::sync::Arc;

use crate::connection::{Command, Connection, Line, Obligation, Task, asked, reply_of};
use crate::queue::{Next, Queue};
use crate::session::Session;
use crate::{Error, Payload};

impl Connection {
    /// Registers this session as a device, with metadata and tags by which the fleet finds it, and
    /// waits for the node. In a new session the client registers again by itself. Another call
    /// replaces the registration; commands then go to the new handle.
    ///
    /// ```no_run
    /// # use playfield_client::{Connection, Error};
    /// # async fn example(connection: Connection) -> Result<(), Error> {
    /// use serde_json::json;
    ///
    /// let device = connection.register("meter-7", &[("model", "x2")], &["north"]).await?;
    /// let reply = device.report(json!({ "celsius": 21.5 })).await?;
    /// while let Some(command) = device.next_command().await {
    ///     println!("{}", command.payload().value()?);
    ///     command.answer(json!("done")).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the node refuses, or the connection has ended.
    pub async fn register(
        &self,
        device: &str,
        metadata: &[(&str, &str)],
        tags: &[&str],
    ) -> Result<Device, Error> {
        let commands = Arc::new(Queue::new(self.queue_limits));
        let id = device.to_owned();
        let (device, queue) = (id.clone(), Arc::clone(&commands));
        let own = |text: &str| text.to_owned();
        let metadata: Vec<_> =
            metadata.iter().map(|&(name, value)| (own(name), own(value))).collect();
        let tags: Vec<_> = tags.iter().copied().map(own).collect();
        let register =
            move |task: &mut Task, answer| task.register(&device, &metadata, &tags, queue, answer);
        let (is_new, bytes) = self.line.ask(None, register).await?;
        Ok(Device { id, is_new, bytes, commands, line: self.line.clone() })
    }
}

/// A registration as a device. It lasts as long as the session; without the handle, requests to the
/// device are refused. [`Connection::close`] ends it: at once if there is a connection to the node,
/// otherwise at the end of the session's grace.
pub struct Device {
    id: String,
    is_new: bool,
    bytes: bool,
    commands: Arc<Queue<Incoming>>,
    line: Line,
}

impl Device {
    /// The device's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether no device was registered under the id before.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns whether the payloads of the fleet are bytes, and not JSON.
    #[must_use]
    pub fn bytes(&self) -> bool {
        self.bytes
    }

    /// Waits for the next event. `None` once the connection has ended, another call has taken the
    /// place of this registration, or the node has refused it in a new session.
    ///
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&self) -> Option<DeviceEvent> {
        match self.commands.next().await {
            Next::Item(Incoming { payload, obligation }) => {
                let line = self.line.clone();
                Some(DeviceEvent::Command(DeviceCommand { payload, obligation, line }))
            }
            Next::Missed(commands) => Some(DeviceEvent::Missed { commands }),
            Next::Ended => None,
        }
    }

    /// Waits for the next command, and passes over other [events](Self::next): a program that calls
    /// this too rarely does not hear how many commands it has missed.
    ///
    /// # Cancel safety
    /// Safe: no command is lost.
    pub async fn next_command(&self) -> Option<DeviceCommand> {
        loop {
            if let DeviceEvent::Command(command) = self.next().await? {
                return Some(command);
            }
        }
    }

    /// Sends a report, and waits for the fleet's reply.
    ///
    /// # Errors
    /// If the node or the fleet refuses, or the connection has ended.
    ///
    /// # Cancel safety
    /// Once queued, the report is sent.
    pub async fn report(&self, report: impl Into<Payload>) -> Result<Payload, Error> {
        let payload = report.into().into_bytes();
        let report = move |client: &mut Session| asked(client.report(&payload, true));
        let reply = self.line.request(None, report, reply_of).await?;
        Ok(Payload::received(self.bytes, &reply))
    }

    /// Sends a report without a reply. If it is refused, such as because reports come faster than
    /// the node's rates allow, [`ConnectionEvent::Refused`](crate::ConnectionEvent::Refused) says
    /// so.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn report_unconfirmed(&self, report: impl Into<Payload>) -> Result<(), Error> {
        let payload = report.into().into_bytes();
        let report = move |task: &mut Task| task.tell(|client| client.report(&payload, false));
        self.line.tell(Command::send(None, report)).await
    }
}

/// An event of a device.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceEvent {
    /// The node sends a command.
    Command(DeviceCommand),
    /// So many commands were dropped here, the oldest first, because more came than [is
    /// kept](crate::Connect::queue_limits). Those that wanted an answer were refused.
    Missed {
        /// The number of commands.
        commands: u64,
    },
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A command as the connection's task delivers it.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) payload: Payload,
    pub(crate) obligation: Option<Obligation>,
}

/// A command to a device. If it wants an answer and is dropped, the node is told that there is
/// none.
#[derive(Debug)]
pub struct DeviceCommand {
    payload: Payload,
    obligation: Option<Obligation>,
    line: Line,
}

impl DeviceCommand {
    /// The payload, which says what is to be done.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Returns whether someone waits for the answer.
    #[must_use]
    pub fn wants_answer(&self) -> bool {
        self.obligation.is_some()
    }

    /// Answers the command. Does nothing if no answer is wanted, or the session in which it came is
    /// over.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn answer(self, payload: impl Into<Payload>) -> Result<(), Error> {
        let payload = payload.into().into_bytes();
        self.end(Ok(payload)).await
    }

    /// Refuses the command, with a reason.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn refuse(self, why: &str) -> Result<(), Error> {
        self.end(Err(why.to_owned())).await
    }

    async fn end(mut self, answer: Result<Vec<u8>, String>) -> Result<(), Error> {
        let Some(mut obligation) = self.obligation.take() else { return Ok(()) };
        let (session, command) = (obligation.session, obligation.command);
        // If this future is dropped while the queue is full, the obligation answers.
        let act = move |task: &mut Task| {
            let answer = answer.as_ref().map(|bytes| &**bytes).map_err(|why| &**why);
            task.answer(session, command, answer);
        };
        self.line.tell(Command::send(None, act)).await?;
        obligation.fulfill();
        Ok(())
    }
}
