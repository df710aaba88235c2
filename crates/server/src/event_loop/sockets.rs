//! The sockets of connections: in their places, and when they leave them.

use std::sync::atomic::Ordering;

use mio::net::TcpStream;
use mio::{Interest, Token};
use socket2::SockRef;

use super::{EventLoop, Layer};
use crate::memory::release;
use crate::shard::keys::ConnectionKey;
use crate::shard::{Part, SocketChange};

/// The bytes that the system keeps of what a client with a session has not acknowledged, before
/// bytes wait in the connection's outbox. Linux takes twice as much, for its own data.
const SEND_BUFFER_BYTES: usize = 128 << 10;

pub(super) struct Socket {
    pub(super) stream: TcpStream,
    pub(super) layer: Layer,
    pub(super) key: ConnectionKey,
    /// There may be something to read.
    pub(super) readable: bool,
    /// Its connection waits to be served.
    pub(super) queued: bool,
    /// The client has closed its half.
    pub(super) ends: bool,
    /// The connection was reset, or both ends have closed their halves.
    pub(super) is_gone: bool,
}

impl EventLoop {
    /// Puts a socket in the place of its connection, and registers it.
    pub(super) fn place(&mut self, key: ConnectionKey, mut stream: TcpStream, layer: Layer) {
        let place = key.index();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(
            &mut stream,
            Token(place + self.first_connection),
            interest,
        );
        let [readable, queued, ends, is_gone] = [false; 4];
        self.put(key, Socket { stream, layer, key, readable, queued, ends, is_gone });
        if let Err(error) = registered {
            log::warn!("a connection can't be watched: {error}");
            self.shard.by_outlet(|out| out.drop_connection(key));
        }
    }

    pub(super) fn socket(&mut self, key: ConnectionKey) -> Option<&mut Socket> {
        self.sockets.get_mut(key.index())?.as_mut().filter(|socket| socket.key == key)
    }

    /// Puts a socket in the place of its connection.
    pub(super) fn put(&mut self, key: ConnectionKey, socket: Socket) {
        self.shard.links.layer_holds(key, socket.layer.bytes());
        let place = key.index();
        if place >= self.sockets.len() {
            self.sockets.resize_with(place + 1, || None);
        }
        // The connection of the socket in this place was dropped in this very turn.
        let before = self.sockets[place].replace(socket);
        self.retire(before);
    }

    /// Drops sockets, and moves them to other places, in the order in which the shard decided so.
    pub(super) fn change_sockets(&mut self) {
        while let Some(change) = self.shard.links.next_socket_change() {
            match change {
                SocketChange::Greeted(key) => self.limit_send_buffer(key),
                SocketChange::Moved { from, to } => self.move_socket(from, to),
                SocketChange::HandedOver(key, http) => self.hand_to_control(key, *http),
                SocketChange::Dropped(key) => {
                    let place = self.sockets.get_mut(key.index());
                    let socket = place.and_then(|place| place.take_if(|socket| socket.key == key));
                    self.retire(socket);
                }
            }
        }
    }

    /// Limits what the system keeps for a client that reads slowly. Its own limit is megabytes, and
    /// a thousand such clients would take so much of the memory for sockets that all others are
    /// served late.
    fn limit_send_buffer(&mut self, key: ConnectionKey) {
        if let Some(socket) = self.socket(key)
            && let Err(error) =
                SockRef::from(&socket.stream).set_send_buffer_size(SEND_BUFFER_BYTES)
        {
            log::debug!("a connection keeps the system's send buffer: {error}");
        }
    }

    fn move_socket(&mut self, from: ConnectionKey, to: ConnectionKey) {
        if self.socket(from).is_none() {
            return;
        }
        let Some(mut socket) = self.sockets[from.index()].take() else { return };
        (socket.key, socket.queued) = (to, false);
        let token = Token(to.index() + self.first_connection);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().reregister(&mut socket.stream, token, interest);
        let is_readable = socket.readable;
        self.put(to, socket);
        if let Err(error) = registered {
            log::warn!("a connection can't be watched: {error}");
            self.shard.by_outlet(|out| out.drop_connection(to));
        } else if is_readable {
            self.queue(to);
        }
    }

    /// Lets a socket wait to be closed. Its token may be another's from now on.
    pub(super) fn retire(&mut self, socket: Option<Socket>) {
        if let Some(mut socket) = socket {
            // Fails if the socket was never watched.
            let _ = self.poll.registry().deregister(&mut socket.stream);
            self.closing.push_back(socket);
        }
    }

    /// Closes sockets that have no connection any more, as long as there is time.
    pub(super) fn close_sockets(&mut self) {
        self.shard.pacing.begin_part(&self.shard.env, Part::Closes);
        while !self.closing.is_empty() && !self.shard.is_part_over() {
            if let Some(mut socket) = self.closing.pop_front() {
                self.tls.drops(&mut socket);
                drop(socket);
                self.shared.connections.fetch_sub(1, Ordering::Relaxed);
                self.shared.gives_back(self.index);
            }
        }
        self.shard.pacing.end_part(&self.shard.env);
        release(&mut self.closing);
    }
}
