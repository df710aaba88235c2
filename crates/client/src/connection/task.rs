//! The task that owns a connection's socket.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::command::{Command, Signal, Signals};
use super::reconnect::Reconnect;
use super::registry::Registry;
use super::status::Status;
use super::stream::Stream;
use crate::asleep::Asleep;
use crate::limits::{FAREWELL, INPUT_BYTES};
use crate::session::{Clock, Session, Url};

pub(crate) struct Task {
    pub(super) client: Session,
    pub(super) registry: Registry,
    pub(super) signals: Arc<Signals>,
    pub(super) status: Arc<Status>,
    pub(super) started: Instant,
    pub(super) reconnect: Reconnect,
    /// This client ends the connection.
    pub(super) is_leaving: bool,
    /// This client will, once the commands that wait are carried out, or if the connection is lost.
    pub(super) is_closing: bool,
    /// The deadline of the farewell, once it has begun.
    pub(super) farewell_ends: Option<Instant>,
    /// The last measurement.
    pub(super) clock: Option<Clock>,
    /// The addresses of the node, as the handles know them.
    pub(super) addresses: Arc<[Url]>,
}

/// The next thing to do.
enum Next {
    Read(std::io::Result<usize>),
    Written(std::io::Result<usize>),
    Command(Option<Command>),
    Signals(BTreeSet<Signal>),
    Time,
}

impl Task {
    /// Runs until the session is over, or no handle is left.
    pub(super) async fn run(mut self, stream: Stream) {
        let mut stream = stream;
        loop {
            self.talk(&mut stream).await;
            if !self.client.is_away() {
                break;
            }
            drop(stream);
            match self.reconnect().await {
                Some(another) => stream = another,
                None => return,
            }
        }
        self.client.ended();
        self.hear();
        let ends = self.farewell_ends.filter(|_| self.reconnect.dialer.is_web_socket());
        // A caller of `close` waits for the end of the transport too. All others fail now.
        let _asked = self.is_leaving.then_some(self);
        if let Some(ends) = ends {
            let mut input = [0; 1024];
            let (mut reader, _) = stream.split();
            let end = async { while let Ok(1..) = reader.read(&mut input).await {} };
            let _ = timeout_at(ends, end).await;
        }
    }

    /// Uses one connection, until the session is over or the connection is lost.
    async fn talk(&mut self, stream: &mut Stream) {
        let (mut reader, mut writer) = stream.split();
        let mut input = vec![0; INPUT_BYTES];
        let mut output = Vec::new();
        let mut written = 0;
        let mut hung_up = false;
        let is_web_socket = self.reconnect.dialer.is_web_socket();
        let mut asleep = Asleep::new();
        loop {
            if written == output.len() {
                output.clear();
                written = 0;
                self.client.take_output(&mut output);
            }
            let to_write = output.len() - written;
            // On WebSocket the node closes the transport, after both close frames (RFC 6455,
            // 7.1.1).
            if to_write == 0 && self.farewell_ends.is_some() && !hung_up && !is_web_socket {
                // The node then closes its half, with or without a goodbye.
                hung_up = true;
                let _ = writer.shutdown().await;
            }
            if self.client.is_away() {
                // The end of a WebSocket, if it can be written without waiting.
                writer.try_write(&output[written..]);
                return;
            }
            let finished = self.client.is_finished();
            if finished && to_write == 0 || self.is_farewell_over() {
                return;
            }
            let reads = !finished && self.client.reads(to_write);
            // Commands wait on a lost connection, and while too much is unsent or unconfirmed.
            let takes_commands =
                self.farewell_ends.is_none() && self.client.takes_commands(to_write);
            let due_at = self.due_at();
            let next = tokio::select! {
                read = reader.read(&mut input), if reads => Next::Read(read),
                written = writer.write(&output[written..]), if to_write > 0 => {
                    Next::Written(written)
                }
                command = self.registry.commands.recv(), if takes_commands => Next::Command(command),
                signals = self.signals.take() => Next::Signals(signals),
                () = sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() => {
                    Next::Time
                }
            };
            self.tell_time();
            self.hear();
            if asleep.has_been() {
                self.client.suspect();
            }
            match next {
                Next::Read(Ok(0)) => self.client.ended(),
                Next::Read(Ok(bytes)) => {
                    self.client.received(&input[..bytes]);
                    self.hear();
                    self.note_progress();
                    if bytes == INPUT_BYTES {
                        // More is there. The program may take out first what has come.
                        yield_now().await;
                    }
                }
                Next::Read(Err(error)) => self.socket_failed(error),
                Next::Written(Ok(bytes)) => written += bytes,
                Next::Written(Err(error)) => {
                    self.socket_failed(error);
                    // Nothing more can be written.
                    (written, hung_up) = (output.len(), true);
                    self.client.take_output(&mut Vec::new());
                }
                Next::Command(Some(command)) => self.carry_out_all(command),
                Next::Command(None) => self.begin_farewell(),
                Next::Signals(signals) => signals.into_iter().for_each(|signal| self.heed(signal)),
                Next::Time => {}
            }
            self.hear();
            self.leave_forsaken();
            if self.client.is_finished() {
                self.begin_farewell();
            }
        }
    }

    /// Delivers what has happened.
    pub(super) fn hear(&mut self) {
        self.registry.fate.tried = self.client.tried();
        while let Some(event) = self.client.poll_event() {
            self.registry.handle(event);
        }
    }

    /// Passes on what was measured, and notes that the connection is there.
    fn note_progress(&mut self) {
        let clock = self.client.clock();
        if clock != self.clock {
            self.clock = clock;
            self.status.set_clock(clock);
        }
        let addresses = self.client.addresses();
        if !Arc::ptr_eq(addresses, &self.addresses) {
            self.addresses = Arc::clone(addresses);
            self.status.set_addresses(Arc::clone(addresses));
        }
    }

    fn is_farewell_over(&self) -> bool {
        self.farewell_ends.is_some_and(|ends| ends <= Instant::now())
    }

    /// Sets the present time.
    pub(super) fn tell_time(&mut self) {
        self.registry.now = self.started.elapsed();
        self.client.advance(self.registry.now);
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        // A time that overflows is never due.
        let due_at = self.client.due_at().and_then(|due_at| self.started.checked_add(due_at));
        due_at.into_iter().chain(self.farewell_ends).min()
    }

    fn socket_failed(&mut self, error: std::io::Error) {
        self.registry.fate.socket_error = Some(error);
        self.client.ended();
        self.hear();
    }

    /// Says goodbye, unless that was done, and sets the deadline for the end.
    pub(crate) fn begin_farewell(&mut self) {
        self.is_leaving |= !self.client.is_finished();
        self.client.goodbye();
        self.farewell_ends.get_or_insert_with(|| Instant::now() + FAREWELL);
    }

    pub(super) fn heed(&mut self, signal: Signal) {
        match signal {
            Signal::Dropped { place } if self.registry.is_now(place) => {
                let after = self.registry.commands.end_of_queue();
                self.registry.forsaken.push((place.room, after));
            }
            Signal::Repair { place, repair } if self.registry.is_now(place) => {
                self.client.repair(place.room, repair);
            }
            Signal::Unsubscribe { subscription } => {
                self.client.unsubscribe(subscription);
                self.registry.subscriptions.remove(&subscription);
            }
            // If it can't be sent, the node notices that nobody answers.
            Signal::Unanswered { session, command } if self.registry.is_session(session) => {
                let _ = self.client.answer(command, Err("the device has not answered"));
            }
            Signal::Dropped { .. } | Signal::Repair { .. } | Signal::Unanswered { .. } => {}
            Signal::Suspect => self.client.suspect(),
            Signal::Close => {
                self.is_closing = true;
                if !self.client.is_welcomed() && !self.client.is_away() {
                    self.begin_farewell();
                }
            }
        }
    }

    /// Leaves the rooms without a handle, after the commands that were queued when it was dropped.
    pub(super) fn leave_forsaken(&mut self) {
        let (client, taken) = (&mut self.client, self.registry.commands.taken());
        self.registry.forsaken.retain(|&(room, after)| {
            if after <= taken {
                client.forsake(room);
            }
            after > taken
        });
    }
}
