//! Connections that move to the shards where their rooms are, or to the control thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;

use super::{EventLoop, Layer, Socket};
use crate::http::{Handed, OpenConnection};
use crate::mailbox::Parcel;
use crate::shard::connection::http::HandedOver;
use crate::shard::keys::ConnectionKey;
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
        let received = self.received(socket);
        let key = self.shard.by_outlet(|out| out.arrive(moving));
        match received {
            Some(socket) => self.place(key, socket, layer),
            None => self.lose(key),
        }
    }

    /// Takes back a connection from the control thread.
    pub(super) fn take_back(&mut self, socket: Option<TcpStream>, layer: Layer, http: HandedOver) {
        let received = self.received(socket);
        let key = self.shard.by_outlet(|out| out.handed_back(http));
        match received {
            Some(socket) => {
                self.place(key, socket, layer);
                self.queue(key);
            }
            None => self.lose(key),
        }
    }

    /// The socket of a connection that comes here.
    fn received(&self, socket: Option<TcpStream>) -> Option<TcpStream> {
        match (socket, &self.shared.tables) {
            (Some(socket), _) => Some(socket),
            (None, Some(tables)) => match tables.receive(self.index) {
                Ok(socket) => Some(TcpStream::from_std(socket)),
                Err(error) => {
                    log::warn!("a connection was lost on the way to shard {}: {error}", self.index);
                    None
                }
            },
            (None, None) => None,
        }
    }

    /// Drops a connection whose socket was lost on the way.
    fn lose(&mut self, key: ConnectionKey) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        self.shared.gives_back(self.index);
        self.shard.by_outlet(|out| out.drop_connection(key));
    }

    /// Hands a connection that speaks HTTP to the control thread.
    pub(super) fn hand_to_control(&mut self, key: ConnectionKey, http: HandedOver) {
        let place = self.sockets.get_mut(key.index());
        let Some(mut socket) = place.and_then(|place| place.take_if(|socket| socket.key == key))
        else {
            return;
        };
        if let Err(error) = self.poll.registry().deregister(&mut socket.stream) {
            log::warn!("a connection can't be deregistered: {error}");
        }
        let HandedOver { peer, tally, input } = http;
        let Socket { stream, layer, .. } = socket;
        let tls = match layer {
            Layer::Tls(tls) => Some(tls),
            Layer::Unknown | Layer::TlsExpected | Layer::Plain | Layer::BehindProxy(_) => None,
        };
        let shared = Arc::clone(&self.shared);
        let control = shared.mailboxes.len();
        if !shared.takes(control) {
            self.refused += 1;
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            return shared.gives_back(self.index);
        }
        let open =
            OpenConnection::new(Arc::clone(&shared), self.index, Arc::clone(&self.published));
        let mut handed = Handed { socket: None, tls, input, peer, tally, open };
        match &shared.tables {
            None => {
                handed.socket = Some(stream.into());
                shared.handover.push_with(handed, || true);
            }
            Some(tables) => {
                shared.handover.push_with(handed, || tables.send(control, &stream).is_ok());
                tables.gives_back(self.index);
            }
        }
    }
}
