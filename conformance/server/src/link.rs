//! One client's way to a node, which can be cut, at any byte too, and can lose a message.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::{io, thread};

use playfield::Running;
use socket2::SockRef;
use tokio::sync::watch;

/// A port of 127.0.0.1 whose connections lead to a node.
pub(crate) struct Link {
    port: u16,
    inner: Mutex<Inner>,
    /// Messages to the client are no longer held.
    released: Condvar,
    done: watch::Sender<Done>,
}

/// Counts of what was done to messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// A patch was lost.
    pub(crate) lost_patch: bool,
    /// The digest of a check was changed.
    pub(crate) spoiled_check: bool,
    /// A snapshot has passed since then.
    pub(crate) snapshot: bool,
    /// All cuts that were set have happened.
    pub(crate) all_cut: bool,
}

struct Inner {
    node: SocketAddr,
    /// A node that only this link leads to.
    own: Option<Running>,
    is_cut: bool,
    /// Says whether messages to the client wait here.
    is_held: bool,
    /// Says whether the next patch to the client is to be lost.
    loses_patch: bool,
    /// Says whether the digests of checks are to be changed, until a snapshot passes.
    spoils_check: bool,
    /// After how many bytes the next connections are cut, one each.
    cuts: VecDeque<usize>,
    /// The connections that are open.
    sockets: Vec<Weak<TcpStream>>,
}

impl Inner {
    fn end_all(&mut self) {
        for socket in self.sockets.drain(..).filter_map(|socket| socket.upgrade()) {
            // An error means that it has ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Link {
    pub(crate) fn open(node: SocketAddr) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let inner = Inner {
            node,
            own: None,
            is_cut: false,
            is_held: false,
            loses_patch: false,
            spoils_check: false,
            cuts: VecDeque::new(),
            sockets: Vec::new(),
        };
        let done = watch::Sender::new(Done::default());
        let link =
            Arc::new(Self { port, inner: Mutex::new(inner), released: Condvar::new(), done });
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

    /// Cuts the connections. Others are closed at once until it is [restored](Self::restore).
    pub(crate) fn cut(&self) {
        let mut inner = self.inner();
        inner.is_cut = true;
        inner.end_all();
    }

    pub(crate) fn restore(&self) {
        let mut inner = self.inner();
        (inner.is_cut, inner.is_held) = (false, false);
        self.released.notify_all();
    }

    /// Cuts the connection, and lets each of the next ones pass so many bytes, both directions taken
    /// together, before it is cut.
    pub(crate) fn cut_after(&self, bytes: Vec<usize>) {
        let mut inner = self.inner();
        inner.end_all();
        self.done.send_modify(|done| done.all_cut = bytes.is_empty());
        inner.cuts = bytes.into();
    }

    /// Holds what the node sends, while connections stay, until it is [restored](Self::restore).
    pub(crate) fn hold(&self) {
        self.inner().is_held = true;
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

    /// Changes the digests of checks until a snapshot passes: a client may ignore some.
    pub(crate) fn spoil_check(&self) {
        self.inner().spoils_check = true;
    }

    /// Waits until this was done.
    pub(crate) async fn until(&self, is_done: impl Fn(&Done) -> bool) {
        // This link has the sender, so there is no error.
        let _ = self.done.subscribe().wait_for(is_done).await;
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
        let (client, node) = (Arc::new(client), Arc::new(TcpStream::connect(inner.node)?));
        client.set_nodelay(true)?;
        node.set_nodelay(true)?;
        inner.sockets.retain(|socket| socket.strong_count() > 0);
        inner.sockets.extend([Arc::downgrade(&client), Arc::downgrade(&node)]);
        let limit = inner.cuts.pop_front().map(|bytes| Arc::new(Limit::new(bytes)));
        drop(inner);
        let (from_client, to_node) = (Arc::clone(&client), Arc::clone(&node));
        let (link, upward) = (Arc::clone(self), limit.clone());
        thread::spawn(move || {
            // An error ends it, as the end does.
            if let Some(limit) = upward {
                let _ = limit.pass(&from_client, &to_node);
                link.cut_has_happened();
            } else {
                let _ = io::copy(&mut &*from_client, &mut &*to_node);
                let _ = to_node.shutdown(Shutdown::Write);
            }
        });
        let link = Arc::clone(self);
        thread::spawn(move || {
            if let Some(limit) = limit {
                let _ = limit.pass(&node, &client);
                link.cut_has_happened();
            } else {
                let _ = link.forward(&node, &client);
                let _ = client.shutdown(Shutdown::Write);
            }
        });
        Ok(())
    }

    fn cut_has_happened(&self) {
        let is_last = self.inner().cuts.is_empty();
        self.done.send_modify(|done| done.all_cut = is_last);
    }

    /// Forwards what the node sends, message by message.
    fn forward(&self, mut node: &TcpStream, mut client: &TcpStream) -> io::Result<()> {
        let (mut framing, mut bytes, mut chunk) = (None, Vec::new(), vec![0; 16 << 10]);
        loop {
            let read = node.read(&mut chunk)?;
            if read == 0 {
                return client.write_all(&bytes);
            }
            bytes.extend_from_slice(&chunk[..read]);
            let mut done = 0;
            while let Some(message) = next_message(&mut framing, &bytes[done..]) {
                if self.passes(&mut bytes[done + message.header..done + message.length]) {
                    client.write_all(&bytes[done..done + message.length])?;
                }
                done += message.length;
            }
            bytes.drain(..done);
        }
    }

    /// Returns whether a message reaches the client. It may be changed.
    fn passes(&self, message: &mut [u8]) -> bool {
        let inner = self.released.wait_while(self.inner(), |inner| inner.is_held);
        let mut inner = inner.unwrap_or_else(PoisonError::into_inner);
        if is_kind(message, 0x47, "snapshot") {
            self.done.send_modify(|done| done.snapshot = done.lost_patch || done.spoiled_check);
            inner.spoils_check &= !self.done.borrow().snapshot;
        }
        if inner.spoils_check && is_kind(message, 0x4d, "check") {
            spoil(message);
            self.done.send_modify(|done| done.spoiled_check = true);
        }
        let is_lost = inner.loses_patch && is_kind(message, 0x48, "patch");
        if is_lost {
            inner.loses_patch = false;
            self.done.send_modify(|done| done.lost_patch = true);
        }
        !is_lost
    }
}

/// The bytes that a connection passes, in both directions together.
struct Limit {
    left: AtomicUsize,
    /// Says whether the ends get an error in place of an end.
    resets: bool,
}

impl Limit {
    fn new(bytes: usize) -> Self {
        Self { left: bytes.into(), resets: bytes.is_multiple_of(2) }
    }

    /// Passes bytes in one direction, until the limit is reached or an end has gone: then both go.
    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        let mut chunk = vec![0; 16 << 10];
        loop {
            // An error is an end.
            let read = from.read(&mut chunk).unwrap_or_default();
            let take = |left: usize| Some(left.saturating_sub(read));
            let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
            let passes = left.unwrap_or_default().min(read);
            if read == 0 || to.write_all(&chunk[..passes]).is_err() || passes < read {
                break;
            }
        }
        for end in [from, to] {
            if self.resets {
                // This takes effect when both directions have ended.
                SockRef::from(end).set_linger(Some(Duration::ZERO))?;
                end.shutdown(Shutdown::Read)?;
            } else {
                end.shutdown(Shutdown::Both)?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Native,
    WebSocket,
    /// Nothing can be read of what passes, so everything is passed on at once.
    Tls,
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
        // A record of a handshake (RFC 8446, 5.1). No first message is as long as this would be.
        None if bytes.starts_with(&[0x16, 3]) && bytes[2] != 0 => {
            *framing = Some(Framing::Tls);
            next_message(framing, bytes)
        }
        None => {
            *framing = Some(Framing::Native);
            next_message(framing, bytes)
        }
        Some(Framing::Tls) => {
            (!bytes.is_empty()).then_some(Place { header: bytes.len(), length: bytes.len() })
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

/// Returns whether a node's message is of a kind, in any format.
fn is_kind(message: &[u8], packed: u8, name: &str) -> bool {
    let has = |text: &[u8]| find(message, text).is_some();
    match message.first() {
        Some(b'{') => has(format!(r#""type":"{name}""#).as_bytes()),
        Some(0x80..=0x8f | 0xde | 0xdf) => {
            let length = 0xa0 | name.len() as u8;
            has(&[b"\xa4type", &[length][..], name.as_bytes()].concat())
        }
        first => first == Some(&packed),
    }
}

/// The end of a text in a message.
fn find(message: &[u8], text: &[u8]) -> Option<usize> {
    let begin = message.windows(text.len()).position(|window| window == text)?;
    Some(begin + text.len())
}

/// Changes the digest of a check, and not its length.
fn spoil(message: &mut [u8]) {
    if let Some(begin) = find(message, br#""digest":"#) {
        let digits = &mut message[begin..];
        if let Some(digit) = digits.iter_mut().find(|byte| byte.is_ascii_digit()) {
            *digit = if *digit == b'1' { b'2' } else { b'1' };
        }
    } else if let Some(begin) = find(message, b"\xa6digest") {
        let last = match message.get(begin) {
            Some(0xcc) => begin + 1,
            Some(0xcd) => begin + 2,
            Some(0xce) => begin + 4,
            Some(0xcf) => begin + 8,
            _ => begin,
        };
        message[last] ^= 1;
    } else if let Some(last) = message.last_mut() {
        *last ^= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_the_bytes_come() {
        let native = [&[5, 0, 0, 0][..], &[0x48, 1, 2, 3, 4], &[1, 0, 0, 0, 0x46]].concat();
        let tls = [&[0x16, 3, 3, 0, 2, 1, 1][..], &[0x17, 3, 3]].concat();
        let (mut framing, mut held) = (None, tls.clone());
        assert_eq!(
            next_message(&mut framing, &held),
            Some(Place { header: tls.len(), length: tls.len() })
        );
        held.clear();
        assert_eq!(next_message(&mut framing, &held), None);
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
    fn a_kind_is_known_in_each_format() {
        let is_patch = |message: &[u8]| is_kind(message, 0x48, "patch");
        assert!(is_patch(&[0x48, 1]) && is_patch(br#"{"type":"patch","room":1}"#));
        assert!(is_patch(b"\x85\xa4type\xa5patch\xa4room\x01"));
        assert!(!is_patch(&[0x46]) && !is_patch(br#"{"type":"event"}"#) && !is_patch(&[]));
    }

    #[test]
    fn a_digest_is_changed_in_each_format() {
        for (before, after) in [
            (
                &b"\x4d\x01\x02\x08\x07\x06\x05\x04\x03\x02\x01"[..],
                &b"\x4d\x01\x02\x08\x07\x06\x05\x04\x03\x02\x00"[..],
            ),
            (br#"{"digest":4294967295}"#, br#"{"digest":1294967295}"#),
            (b"\x81\xa6digest\xcd\x01\x02", b"\x81\xa6digest\xcd\x01\x03"),
            (b"\x81\xa6digest\x07", b"\x81\xa6digest\x06"),
        ] {
            let mut message = before.to_vec();
            spoil(&mut message);
            assert_eq!(message, after);
        }
    }
}
