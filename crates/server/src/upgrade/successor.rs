//! The new process: it takes over before it serves.

use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt};
use playfield_state::Bytes;
use rustix::stdio::dup2_stdin;

use super::channel::Channel;
use super::message::{Message, Part, Piece, VERSION};
use super::{Accepted, Inherited, InheritedListener, VARIABLE};
use crate::shard::frozen::Frozen;
use crate::sys;

/// The time that the old process has for each step, beyond what it waits for its rooms.
const STEP_MAX: Duration = Duration::from_secs(60);

/// Set while this process is about to take over.
static IS_TAKING_OVER: AtomicBool = AtomicBool::new(false);

/// Returns whether this process is about to take over from another.
pub(crate) fn is_taking_over() -> bool {
    IS_TAKING_OVER.load(Ordering::Relaxed)
}

/// This process is to take over from the one that started it.
pub(crate) struct Successor(Channel);

impl Successor {
    /// Returns this process's task to take over, if it has it. The first node that starts in the
    /// process has it.
    ///
    /// # Errors
    /// Fails if the old process is gone: its rooms are lost, and this process has none to continue.
    pub(crate) fn of_this_process() -> io::Result<Option<Self>> {
        static IS_TAKEN: AtomicBool = AtomicBool::new(false);
        let old = std::env::var(VARIABLE).ok().and_then(|pid| pid.parse::<u32>().ok());
        let Some(old) = old.filter(|pid| has_socket_of(*pid)) else { return Ok(None) };
        if IS_TAKEN.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        // Processes that this one starts have the variable, too, but not the socket.
        dup2_stdin(File::open("/dev/null")?)?;
        if parent_id() != old {
            let text = format!(
                "process {old}, which this one was to replace, has ended or has not started this \
                 one itself: this one does not start"
            );
            return Err(io::Error::other(text));
        }
        IS_TAKING_OVER.store(true, Ordering::Relaxed);
        Ok(Some(Self(Channel::new(UnixStream::from(socket)))))
    }

    /// Asks whether a program with these room types may take over.
    ///
    /// # Errors
    /// If it may not, or the old process is gone.
    pub(crate) fn greet(&mut self, room_types: Vec<String>) -> io::Result<Accepted> {
        let pid = std::process::id();
        self.send(&Message::Hello { version: VERSION, pid, room_types })?;
        match self.receive()? {
            Message::Accept { now, secret, connections } => {
                let (now, received) = (Duration::from_nanos(now), Instant::now());
                sys::make_space_for(connections as usize);
                Ok(Accepted { secret, now, received })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Says that this process is ready, and waits for all that is to go on here. The old process
    /// has given up what only one can have then.
    ///
    /// # Errors
    /// If the old process goes on, or is gone.
    pub(crate) fn inherit(&mut self) -> io::Result<Inherited> {
        self.send(&Message::Ready)?;
        let (mut frozen, mut node, mut begun) = (Frozen::default(), Vec::new(), Vec::new());
        loop {
            match self.receive()? {
                Message::Parts { parts } => {
                    for Part { of, is_last, bytes: Bytes(bytes) } in parts {
                        begun.extend(bytes);
                        if !is_last {
                            continue;
                        }
                        let whole = std::mem::take(&mut begun);
                        match of {
                            Piece::Node => node = whole,
                            Piece::Room => frozen.rooms.push(whole),
                            Piece::Session => frozen.sessions.push(whole),
                            Piece::Channel => frozen.channels.push(whole),
                            Piece::Schema => frozen.schemas.push(whole),
                        }
                    }
                }
                Message::All { listeners, connections } => {
                    let count = listeners.len() + connections as usize;
                    let mut sockets = self.0.receive_sockets(count, STEP_MAX)?.into_iter();
                    // In this order: a socket without a listener is not taken.
                    let of = listeners.iter().zip(sockets.by_ref());
                    let listeners = of.map(|(of, socket)| listener(socket, of.service));
                    let listeners = listeners.collect::<io::Result<_>>()?;
                    let connections = sockets.map(TcpStream::from).collect();
                    return Ok(Inherited { listeners, node, frozen, connections });
                }
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// Says that all is here, and waits until it may begin.
    ///
    /// # Errors
    /// If the old process goes on, or is gone.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        self.send(&Message::Holds)?;
        match self.receive()? {
            Message::Commit => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Says that this process serves, and waits until the old one leaves the open connections to
    /// it.
    ///
    /// # Errors
    /// If the old process goes on.
    pub(crate) fn serves(&mut self) -> io::Result<()> {
        IS_TAKING_OVER.store(false, Ordering::Relaxed);
        let sent = self.0.send(&Message::Serves);
        match sent.and_then(|()| self.0.receive(STEP_MAX)) {
            Ok(Message::Over) => Ok(()),
            Ok(other) => Err(unexpected(&other)),
            // This process may serve: the old one has let go of the rooms, and can't continue.
            Err(error) if is_end(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Says why this process can't take over.
    pub(crate) fn refuse(&mut self, why: &str) {
        if let Err(error) = self.0.send(&Message::Refuse { why: why.to_owned() }) {
            log::debug!("the old process did not hear of it: {error}");
        }
    }

    fn send(&mut self, message: &Message) -> io::Result<()> {
        self.0.send(message).map_err(|error| unheard(&error))
    }

    fn receive(&mut self) -> io::Result<Message> {
        match self.0.receive(STEP_MAX).map_err(|error| unheard(&error))? {
            Message::Refuse { why } => Err(io::Error::other(format!("there is no upgrade: {why}"))),
            message => Ok(message),
        }
    }
}

/// Returns whether the standard input is a socket that the process of this id has made.
fn has_socket_of(pid: u32) -> bool {
    let maker = getsockopt(&io::stdin(), sockopt::PeerCredentials);
    maker.is_ok_and(|maker| u32::try_from(maker.pid()) == Ok(pid))
}

/// Returns whether the other process has ended.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};

    matches!(error.kind(), UnexpectedEof | BrokenPipe | ConnectionReset)
}

fn unheard(error: &io::Error) -> io::Error {
    let text = match is_end(error) {
        true => "the process that this one was to replace has ended before this one took over: \
                 this one ends, too"
            .to_owned(),
        false => format!("the process that this one was to replace is not heard: {error}"),
    };
    io::Error::new(error.kind(), text)
}

fn listener(socket: OwnedFd, service: Option<u32>) -> io::Result<InheritedListener> {
    let socket = TcpListener::from(socket);
    let address = socket.local_addr()?;
    let service = service.map(|number| number as u16);
    Ok(InheritedListener { socket, address, service })
}

fn unexpected(message: &Message) -> io::Error {
    io::Error::other(format!("the process that this one was to replace said {message:?}"))
}
