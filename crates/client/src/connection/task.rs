//! The task that owns a connection's socket.

use std::time::Duration;

use playfield_state::JsonExchange;
use playfield_wire::DecodeError;
use playfield_wire::schema::RoomSchema;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::command::{Command, Door, Enter, Query, Signal};
use super::dispatch::{Dispatch, Waiting};
use super::schemas::Fit;
use crate::Error;
use crate::core::{Client, CommandError};

/// How much is read at once.
const INPUT_BYTES: usize = 64 << 10;

/// No command is taken while as much waits to be sent.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// Nothing is read while as much waits to be sent: a node that does not read what answers it is not
/// to fill our memory.
const ANSWERS_BYTES_MAX: usize = 4 * OUTPUT_BYTES_MAX;

/// How many commands are carried out before the socket is looked at again.
const COMMANDS_MAX: usize = 256;

/// How long the node is given to answer a goodbye and to close the transport, and the socket to
/// take what is left.
const FAREWELL: Duration = Duration::from_secs(5);

pub(super) struct Task {
    pub(super) client: Client,
    pub(super) dispatch: Dispatch,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) signals: mpsc::UnboundedReceiver<Signal>,
    pub(super) started: Instant,
    pub(super) is_web_socket: bool,
    /// It is this client that ends the connection.
    pub(super) is_leaving: bool,
    /// When the farewell is over, once it has begun.
    pub(super) farewell_ends: Option<Instant>,
}

/// What to do next.
enum Next {
    Read(std::io::Result<usize>),
    Written(std::io::Result<usize>),
    Command(Option<Command>),
    Signal(Signal),
    Time,
}

impl Task {
    /// Runs until the connection is over, or no handle is left.
    pub(super) async fn run(mut self, mut stream: TcpStream) {
        let (mut reader, mut writer) = stream.split();
        let mut input = vec![0; INPUT_BYTES];
        let mut output = Vec::new();
        let mut written = 0;
        let mut hung_up = false;
        loop {
            if written == output.len() {
                output.clear();
                written = 0;
                self.client.take_output(&mut output);
            }
            let to_write = output.len() - written;
            // On WebSocket it is the node that closes the transport, once both have said so (RFC
            // 6455, 7.1.1).
            if to_write == 0 && self.farewell_ends.is_some() && !hung_up && !self.is_web_socket {
                // A node that reads the end closes its own, goodbye or not.
                hung_up = true;
                let _ = writer.shutdown().await;
            }
            let finished = self.client.is_finished();
            if finished && to_write == 0 || self.is_farewell_over() {
                break;
            }
            let unsent = to_write + self.client.output_bytes();
            let reads = !finished && unsent < ANSWERS_BYTES_MAX;
            let takes_commands = self.farewell_ends.is_none() && unsent < OUTPUT_BYTES_MAX;
            let due_at = self.due_at();
            let next = tokio::select! {
                read = reader.read(&mut input), if reads => Next::Read(read),
                written = writer.write(&output[written..]), if to_write > 0 => Next::Written(written),
                command = self.commands.recv(), if takes_commands => Next::Command(command),
                Some(signal) = self.signals.recv() => Next::Signal(signal),
                () = sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() => Next::Time,
            };
            self.dispatch.now = self.started.elapsed();
            self.client.advance(self.dispatch.now, &mut self.dispatch);
            match next {
                Next::Read(Ok(0)) => self.client.ended(&mut self.dispatch),
                Next::Read(Ok(bytes)) => {
                    self.client.received(&mut input[..bytes], &mut self.dispatch)
                }
                Next::Read(Err(error)) => self.socket_failed(error),
                Next::Written(Ok(bytes)) => written += bytes,
                Next::Written(Err(error)) => {
                    self.socket_failed(error);
                    break;
                }
                Next::Command(Some(command)) => self.carry_out_all(command),
                Next::Command(None) => self.begin_farewell(),
                Next::Signal(signal) => self.heed(signal),
                Next::Time => {}
            }
            self.follow_schemas();
            self.leave_forsaken();
            if self.client.is_finished() {
                self.begin_farewell();
            }
        }
        self.client.ended(&mut self.dispatch);
        let ends = self.farewell_ends.filter(|_| self.is_web_socket);
        // Who asked for the end waits for that of the transport, too. All others learn of it now.
        let _asked = self.is_leaving.then_some(self);
        if let Some(ends) = ends {
            let end = async { while let Ok(1..) = reader.read(&mut input).await {} };
            let _ = timeout_at(ends, end).await;
        }
    }

    fn is_farewell_over(&self) -> bool {
        self.farewell_ends.is_some_and(|ends| ends <= Instant::now())
    }

    fn due_at(&self) -> Option<Instant> {
        let due_at = [self.client.due_at(), self.dispatch.schema_requests.due_at()]
            .into_iter()
            .flatten()
            .min();
        // What is due beyond all time is never due.
        let due_at = due_at.and_then(|due_at| self.started.checked_add(due_at));
        [due_at, self.farewell_ends].into_iter().flatten().min()
    }

    fn socket_failed(&mut self, error: std::io::Error) {
        self.dispatch.socket_error = Some(error);
        self.client.ended(&mut self.dispatch);
    }

    /// Says goodbye, if it has not been said, and waits no longer than is decent.
    fn begin_farewell(&mut self) {
        self.is_leaving |= !self.client.is_finished();
        self.client.goodbye();
        self.farewell_ends.get_or_insert_with(|| Instant::now() + FAREWELL);
    }

    fn heed(&mut self, signal: Signal) {
        match signal {
            Signal::Dropped { room } => self.dispatch.forsaken.push(room),
            // A room that was left meanwhile needs no snapshot.
            Signal::Resync { room } => drop(self.client.resync(room)),
        }
    }

    /// Leaves the rooms without a handle. One that can't be asked for now, since too many requests
    /// wait, is tried again.
    fn leave_forsaken(&mut self) {
        let client = &mut self.client;
        self.dispatch
            .forsaken
            .retain(|&room| matches!(client.leave(room), Err(CommandError::Busy { .. })));
    }

    /// Asks for the schemas that rooms wait for, goes on with what waited for one, and ends what
    /// has waited for too long.
    fn follow_schemas(&mut self) {
        for wish in std::mem::take(&mut self.dispatch.ready) {
            self.enter(wish);
        }
        while let Some(room_type) = self.dispatch.schema_requests.next(self.dispatch.now) {
            match self.client.schema(&room_type) {
                Ok(request) => {
                    drop(self.dispatch.waiting.insert(request, Waiting::Schema(room_type)))
                }
                Err(error) => self.dispatch.no_schema(&room_type, &error.into()),
            }
        }
        self.dispatch.give_up_schemas();
    }

    /// Asks to enter a room: with options in the node's form, for which its schema may have to be
    /// known first.
    fn enter(&mut self, wish: Enter) {
        let Enter { mut door, build, sink, answer } = wish;
        if let (Some((room_type, options)), Some(build)) = (door.of_type(), &build) {
            let room_type = room_type.to_owned();
            match self.dispatch.schemas.fit(&room_type, build, None) {
                Fit::Same => {}
                Fit::Unknown if !build.has_options(options) => {}
                Fit::Learned(_) if options.is_empty() => {}
                Fit::Learned(schema) => match packed_options(&schema, options) {
                    Ok(packed) => *options = packed,
                    Err(error) => return drop(answer.send(Err(error))),
                },
                Fit::Unknown => {
                    self.dispatch.schema_requests.ask(self.dispatch.now, &room_type);
                    let wish = Enter { door, build: Some(build.clone()), sink, answer };
                    return self.dispatch.unready.push((room_type, wish));
                }
                Fit::Grown(transcoder) => {
                    let mut of_node = Vec::new();
                    if let Err(error) = transcoder.options(options, &mut of_node) {
                        return drop(answer.send(Err(Error::payload("the options", error))));
                    }
                    *options = of_node;
                }
                Fit::Not(error) => return drop(answer.send(Err(error))),
            }
        }
        match enter_by(&mut self.client, &door) {
            Ok(request) => {
                self.dispatch.waiting.insert(request, Waiting::Enter { build, sink, answer });
            }
            Err(error) => drop(answer.send(Err(error.into()))),
        }
    }

    /// Carries out the command, and those queued behind it.
    fn carry_out_all(&mut self, first: Command) {
        self.carry_out(first);
        for _ in 1..COMMANDS_MAX {
            if self.farewell_ends.is_some() || self.client.output_bytes() >= OUTPUT_BYTES_MAX {
                break;
            }
            match self.commands.try_recv() {
                Ok(command) => self.carry_out(command),
                Err(_) => break,
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        let (client, dispatch) = (&mut self.client, &mut self.dispatch);
        // Whoever asked may have stopped waiting for the answer.
        match command {
            Command::Enter(wish) => self.enter(wish),
            Command::Leave { room, answer } => match client.leave(room) {
                Ok(request) => drop(dispatch.waiting.insert(request, Waiting::Leave(answer))),
                Err(error) => drop(answer.send(Err(error.into()))),
            },
            Command::Schema { room_type, answer } => match client.schema(&room_type) {
                Ok(request) => drop(dispatch.waiting.insert(request, Waiting::Told(answer))),
                Err(error) => drop(answer.send(Err(error.into()))),
            },
            Command::List { query, answer } => match list(client, &query) {
                Ok(request) => drop(dispatch.waiting.insert(request, Waiting::List(answer))),
                Err(error) => drop(answer.send(Err(error.into()))),
            },
            Command::Request { room, index, name, payload, answer } => {
                match client.request(room, index, &name, &payload) {
                    Ok(request) => drop(dispatch.waiting.insert(request, Waiting::Reply(answer))),
                    Err(error) => drop(answer.send(Err(error.into()))),
                }
            }
            Command::Send { room, index, name, payload } => {
                if let Err(error) = client.send(room, index, &name, &payload)
                    && let Some(inside) = dispatch.rooms.get(&room)
                {
                    inside.sink.refused(Error::from(error));
                }
            }
            Command::Ping { answer } => match client.ping() {
                Ok(nonce) => drop(dispatch.pings.insert(nonce, answer)),
                Err(error) => drop(answer.send(Err(error.into()))),
            },
            Command::Close => self.begin_farewell(),
        }
    }
}

/// Options that were given as JSON, in the node's form.
fn packed_options(schema: &RoomSchema, options: &[u8]) -> Result<Vec<u8>, Error> {
    let exchange = JsonExchange::new(schema).map_err(Error::shape)?;
    let value = serde_json::from_slice(options).map_err(|error| {
        Error::payload("the options", DecodeError::new(error.column(), error.to_string()))
    })?;
    exchange.options(&value).map_err(|error| Error::payload("the options", error))
}

fn enter_by(client: &mut Client, door: &Door) -> Result<u32, CommandError> {
    match door {
        Door::Join { id } => client.join(id),
        Door::Create { room_type, private, options } => client.create(room_type, *private, options),
        Door::JoinOrCreate { room_type, options } => client.join_or_create(room_type, options),
    }
}

fn list(client: &mut Client, query: &Query) -> Result<u32, CommandError> {
    let filter: Vec<_> = query.filter.iter().map(|(name, value)| (&**name, &**value)).collect();
    client.list(query.room_type.as_deref(), &filter, query.limit)
}
