//! One client's way to a node, which can be cut, and can lose a message.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use playfield::Running;
use tokio::sync::watch;

/// A port of 127.0.0.1 whose connections lead to a node.
pub(crate) struct Link {
    port: u16,
    inner: Mutex<Inner>,
    /// How many patches were lost.
    lost: watch::Sender<u32>,
}

struct Inner {
    node: SocketAddr,
    /// A node that only this link leads to.
    own: Option<Running>,
    is_cut: bool,
    /// Whether the next patch to the client is to be lost.
    loses_patch: bool,
    sockets: Vec<TcpStream>,
}

impl Link {
    pub(crate) fn open(node: SocketAddr) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let inner =
            Inner { node, own: None, is_cut: false, loses_patch: false, sockets: Vec::new() };
        let link = Arc::new(Self { port, inner: Mutex::new(inner), lost: watch::Sender::new(0) });
        let accepting = Arc::clone(&link);
        thread::spawn(move || {
            for client in listener.incoming() {
                // An error is the client's: it has gone.
                let _ = client.and_then(|client| accepting.pass(client));
            }
        });
        Ok(link)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connections. Others are closed at once until it is [mended](Self::mend).
    pub(crate) fn cut(&self) {
        let mut inner = self.inner();
        inner.is_cut = true;
        for socket in inner.sockets.drain(..) {
            // An error means that it has ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.inner().is_cut = false;
    }

    /// Leads later connections to another node.
    pub(crate) fn lead_to(&self, node: SocketAddr) {
        self.inner().node = node;
    }

    /// Leads later connections to a node that only this link leads to.
    pub(crate) fn lead_to_own(&self, node: Running) {
        let mut inner = self.inner();
        inner.node = node.local_addr();
        inner.own = Some(node);
    }

    /// The node of its own, and leads later connections to another.
    pub(crate) fn take_own(&self, node: SocketAddr) -> Option<Running> {
        let mut inner = self.inner();
        inner.node = node;
        inner.own.take()
    }

    /// Loses the next patch to the client.
    pub(crate) fn lose_patch(&self) {
        self.inner().loses_patch = true;
    }

    /// Waits until so many patches were lost.
    pub(crate) async fn has_lost(&self, patches: u32) {
        // This link has the sender, so there is no error.
        let _ = self.lost.subscribe().wait_for(|lost| *lost >= patches).await;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        // With the lock, so that a cut misses no connection.
        let mut inner = self.inner();
        if inner.is_cut {
            return Ok(());
        }
        let node = TcpStream::connect(inner.node)?;
        client.set_nodelay(true)?;
        node.set_nodelay(true)?;
        let (mut from_client, mut to_node) = (client.try_clone()?, node.try_clone()?);
        let (from_node, to_client) = (node.try_clone()?, client.try_clone()?);
        inner.sockets.extend([client, node]);
        drop(inner);
        thread::spawn(move || {
            // An error ends it, as the end does.
            let _ = io::copy(&mut from_client, &mut to_node);
            let _ = to_node.shutdown(Shutdown::Write);
        });
        let link = Arc::clone(self);
        thread::spawn(move || {
            let _ = link.forward(from_node, &to_client);
            let _ = to_client.shutdown(Shutdown::Write);
        });
        Ok(())
    }

    /// Forwards what the node sends, message by message.
    fn forward(&self, mut node: TcpStream, mut client: &TcpStream) -> io::Result<()> {
        let (mut framing, mut bytes, mut chunk) = (None, Vec::new(), vec![0; 16 << 10]);
        loop {
            let read = node.read(&mut chunk)?;
            if read == 0 {
                return client.write_all(&bytes);
            }
            bytes.extend_from_slice(&chunk[..read]);
            let mut done = 0;
            while let Some(message) = next_message(&mut framing, &bytes[done..]) {
                if !self.loses(&bytes[done + message.header..done + message.length]) {
                    client.write_all(&bytes[done..done + message.length])?;
                }
                done += message.length;
            }
            bytes.drain(..done);
        }
    }

    fn loses(&self, message: &[u8]) -> bool {
        let mut inner = self.inner();
        let is_lost = inner.loses_patch && is_patch(message);
        if is_lost {
            inner.loses_patch = false;
            self.lost.send_modify(|lost| *lost += 1);
        }
        is_lost
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Native,
    WebSocket,
}

/// A message's place at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    header: usize,
    length: usize,
}

/// The first message in what a node sends, if all of it is there. The answer to a WebSocket's
/// handshake counts as one.
fn next_message(framing: &mut Option<Framing>, bytes: &[u8]) -> Option<Place> {
    match framing {
        None if bytes.starts_with(b"HTTP") => {
            let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            *framing = Some(Framing::WebSocket);
            Some(Place { header: end, length: end })
        }
        None if bytes.len() < 4 => None,
        None => {
            *framing = Some(Framing::Native);
            next_message(framing, bytes)
        }
        Some(Framing::Native) => {
            let size = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
            (bytes.len() >= 4 + size).then_some(Place { header: 4, length: 4 + size })
        }
        Some(Framing::WebSocket) => {
            // Nodes don't mask (RFC 6455, 5.2).
            let (header, size) = match bytes.get(1)? & 0x7f {
                126 => (4, u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?).into()),
                127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
                size => (2, size.into()),
            };
            let length = header + usize::try_from(size).ok()?;
            (bytes.len() >= length).then_some(Place { header, length })
        }
    }
}

/// Whether a node's message is a patch, in any format.
fn is_patch(message: &[u8]) -> bool {
    let has = |text: &[u8]| message.windows(text.len()).any(|window| window == text);
    match message.first() {
        Some(0x48) => true,
        Some(b'{') => has(br#""type":"patch""#),
        Some(0x80..=0x8f | 0xde | 0xdf) => has(b"\xa4type\xa5patch"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_the_bytes_come() {
        let native = [&[5, 0, 0, 0][..], &[0x48, 1, 2, 3, 4], &[1, 0, 0, 0, 0x46]].concat();
        let web =
            [b"HTTP/1.1 101 x\r\n\r\n".as_slice(), &[0x82, 2, 0x48, 1], &[0x81, 126, 0, 1, 7]]
                .concat();
        for (bytes, lengths) in [(native, vec![9, 5]), (web, vec![18, 4, 5])] {
            for step in 1..bytes.len() {
                let (mut framing, mut held, mut found) = (None, Vec::new(), Vec::new());
                for part in bytes.chunks(step) {
                    held.extend_from_slice(part);
                    while let Some(place) = next_message(&mut framing, &held) {
                        held.drain(..place.length);
                        found.push(place.length);
                    }
                }
                assert_eq!(found, lengths, "{step} bytes at a time");
            }
        }
    }

    #[test]
    fn a_patch_is_known_in_each_format() {
        assert!(is_patch(&[0x48, 1]) && is_patch(br#"{"type":"patch","room":1}"#));
        assert!(is_patch(b"\x85\xa4type\xa5patch\xa4room\x01"));
        assert!(!is_patch(&[0x46]) && !is_patch(br#"{"type":"event"}"#) && !is_patch(&[]));
    }
}
