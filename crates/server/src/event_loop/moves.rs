//! Connections that move to the shards where their rooms are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;

use super::{EventLoop, Layer, Socket};
use crate::mailbox::Parcel;
use crate::shard::session::moving::Moving;

impl EventLoop {
    /// Sends connections to the shards where their rooms are.
    pub(super) fn hand_over(&mut self) {
        while let Some((key, target, moving)) = self.shard.by_outlet(|out| out.next_departure()) {
            let place = self.sockets.get_mut(key.index());
            let Some(mut socket) = place.and_then(Option::take) else { continue };
            if let Err(error) = self.poll.registry().deregister(&mut socket.stream) {
                log::warn!("a connection can't be deregistered: {error}");
            }
            let Socket { stream, layer, .. } = socket;
            if self.shared.tables.is_some() {
                self.send_over(usize::from(target), stream, layer, moving);
                continue;
            }
            let parcel = Parcel::Moved { socket: Some(stream), layer, moving };
            if let Err(Parcel::Moved { socket: Some(stream), layer, moving }) =
                self.shared.mailboxes[usize::from(target)].push(parcel)
            {
                let key = self.shard.by_outlet(|out| out.bounced(moving));
                self.place(key, stream, layer);
            }
        }
    }

    /// Moves a connection to a shard that has a descriptor table of its own.
    fn send_over(&mut self, target: usize, stream: TcpStream, layer: Layer, moving: Moving) {
        let shared = Arc::clone(&self.shared);
        let Some(tables) = &shared.tables else { return };
        let has_space = tables.takes(target);
        let mut is_sent = false;
        let parcel = Parcel::Moved { socket: None, layer, moving };
        let pushed = shared.mailboxes[target].push_with(parcel, || {
            is_sent = has_space && tables.send(target, &stream).is_ok();
            is_sent
        });
        let Err(parcel) = pushed else { return tables.gives_back(self.index) };
        let Parcel::Moved { layer, moving, .. } = parcel else { return };
        if has_space {
            tables.gives_back(target);
        }
        let key = self.shard.by_outlet(|out| out.stay(moving, target as u16));
        self.place(key, stream, layer);
    }

    /// Takes in a connection from another shard.
    pub(super) fn take_over(&mut self, socket: Option<TcpStream>, layer: Layer, moving: Moving) {
        let received = match (socket, &self.shared.tables) {
            (Some(socket), _) => Some(socket),
            (None, Some(tables)) => match tables.receive(self.index) {
                Ok(socket) => Some(TcpStream::from_std(socket)),
                Err(error) => {
                    log::warn!("a connection was lost on the way to shard {}: {error}", self.index);
                    None
                }
            },
            (None, None) => None,
        };
        let key = self.shard.by_outlet(|out| out.arrive(moving));
        if let Some(socket) = received {
            return self.place(key, socket, layer);
        }
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        self.shared.gives_back(self.index);
        self.shard.by_outlet(|out| out.drop_connection(key));
    }
}
