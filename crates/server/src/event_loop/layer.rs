//! Layers between a socket and its connection's bytes: none, or TLS.

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Shutdown};
use std::sync::Arc;

use mio::net::TcpStream;

use super::Socket;
use super::behind_proxy::BehindProxy;
use crate::shard::Shard;
use crate::stats::Counters;
use crate::tls::{Opened, TlsConnection, TlsContext};

/// The first byte of a TLS connection: the type of a record with a part of the handshake (RFC 8446,
/// 5.1). Nothing else that is spoken on this port begins with it.
const HANDSHAKE: u8 = 22;

/// A fatal alert, `handshake_failure`, as a record: sent to TLS clients of a node without TLS.
const NO_TLS: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// The most reads of handshakes that a turn handles. Each may take a fraction of a millisecond; the
/// rest waits for the next turn, so that rooms do not wait for it.
const HANDSHAKES: usize = 32;

/// The layer between a socket and its connection's bytes.
pub(crate) enum Layer {
    /// The first byte decides.
    Unknown,
    /// Like `Unknown`, but only TLS is accepted.
    TlsExpected,
    Plain,
    /// A trusted proxy may send a header first that names the client.
    BehindProxy(Box<BehindProxy>),
    Tls(Box<TlsConnection>),
}

impl Layer {
    /// Returns whether the client has said that it sends nothing more, though its socket is open.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.is_ended())
    }

    /// Returns the memory it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Unknown | Self::TlsExpected | Self::Plain => 0,
            Self::BehindProxy(behind) => behind.bytes(),
            Self::Tls(tls) => tls.bytes(),
        }
    }
}

/// The TLS state of a shard's event loop.
pub(super) struct Tls {
    context: Option<Arc<TlsContext>>,
    is_only: bool,
    /// The number of further reads of handshakes that this turn handles.
    handshakes: usize,
    /// The bytes that were decrypted just now.
    plaintext: Vec<u8>,
    /// Scratch for the record that is about to be written.
    record: Vec<u8>,
    completed: u64,
    resumed: u64,
    failed: u64,
    refused: u64,
}

impl Tls {
    pub(super) fn new(context: Option<Arc<TlsContext>>, is_only: bool) -> Self {
        let [completed, resumed, failed, refused] = [0; 4];
        let (plaintext, record) = (Vec::new(), Vec::new());
        let handshakes = HANDSHAKES;
        Self {
            context,
            is_only,
            handshakes,
            plaintext,
            record,
            completed,
            resumed,
            failed,
            refused,
        }
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.handshakes = HANDSHAKES;
    }

    pub(super) fn count(&self, counters: &mut Counters) {
        counters.tls_handshakes = self.completed;
        counters.tls_resumed = self.resumed;
        counters.tls_failed = self.failed;
        counters.tls_refused = self.refused;
    }

    /// The layer of a new connection from this address.
    pub(super) fn layer(&self, address: IpAddr) -> Layer {
        if self.is_only && !address.to_canonical().is_loopback() {
            Layer::TlsExpected
        } else {
            Layer::Unknown
        }
    }

    /// Returns whether a socket is read in this turn. If not, in the next.
    pub(super) fn reads(&self, socket: &Socket) -> bool {
        match &socket.layer {
            Layer::Plain => true,
            Layer::Tls(tls) => self.handshakes > 0 || tls.is_open(),
            Layer::Unknown | Layer::TlsExpected | Layer::BehindProxy(_) => self.handshakes > 0,
        }
    }

    /// Bytes came from a socket whose layer is not plain.
    pub(super) fn received(&mut self, socket: &mut Socket, shard: &mut Shard, input: &mut [u8]) {
        self.decode(socket, shard, input);
        shard.links.layer_holds(socket.key, socket.layer.bytes());
    }

    pub(super) fn decode(&mut self, socket: &mut Socket, shard: &mut Shard, input: &mut [u8]) {
        if let Layer::BehindProxy(_) = socket.layer {
            return self.received_from_proxy(socket, shard, input);
        }
        let is_unknown = matches!(socket.layer, Layer::Unknown | Layer::TlsExpected);
        if is_unknown && !self.detect(socket, shard, input) {
            return;
        }
        let key = socket.key;
        let Layer::Tls(tls) = &mut socket.layer else {
            return shard.received_behind(key, input, 0);
        };
        if !tls.is_open() {
            self.handshakes = self.handshakes.saturating_sub(1);
        }
        self.plaintext.clear();
        let received = tls.receive(input, &mut self.plaintext);
        let has_to_write = !tls.unsent().is_empty();
        match received {
            Ok(received) => {
                match received.opened {
                    None => {}
                    Some(Opened::Full) => self.completed += 1,
                    Some(Opened::Resumed) => {
                        self.completed += 1;
                        self.resumed += 1;
                    }
                }
                // The end of the input, once what came before is taken.
                socket.ends |= received.ended;
                if !self.plaintext.is_empty() {
                    shard.received_behind(key, &mut self.plaintext, 0);
                }
                if has_to_write {
                    self.flush(socket, shard);
                }
            }
            Err(error) => {
                log::debug!("a TLS connection ends: {error}");
                tls.fail();
                if !self.plaintext.is_empty() {
                    shard.received_behind(key, &mut self.plaintext, 0);
                }
                part(socket);
                shard.by_outlet(|out| out.drop_connection(key));
            }
        }
    }

    /// Sets the layer by the first byte. Whether the input is still to be handled.
    fn detect(&mut self, socket: &mut Socket, shard: &mut Shard, input: &[u8]) -> bool {
        let key = socket.key;
        if input.first() != Some(&HANDSHAKE) {
            if matches!(socket.layer, Layer::TlsExpected) {
                self.refused += 1;
                socket.layer = Layer::Plain;
                shard.by_outlet(|out| out.refuse_plain(key, input));
                return false;
            }
            socket.layer = Layer::Plain;
            return true;
        }
        let connection = self.context.as_deref().map(TlsConnection::new);
        match connection {
            Some(Ok(connection)) => {
                socket.layer = Layer::Tls(Box::new(connection));
                true
            }
            Some(Err(error)) => {
                log::warn!("a TLS connection can't start: {error}");
                self.failed += 1;
                shard.by_outlet(|out| out.drop_connection(key));
                false
            }
            None => {
                // One line is enough to find the reason; a stranger could cause many.
                let level = if self.refused == 0 { log::Level::Info } else { log::Level::Debug };
                log::log!(
                    level,
                    "a client wants TLS, but the node has no certificate: set tls.cert and tls.key"
                );
                self.refused += 1;
                socket.layer = Layer::Plain;
                // If it fails, the client is gone.
                let _ = socket.stream.write(&NO_TLS);
                let _ = socket.stream.shutdown(Shutdown::Write);
                shard.by_outlet(|out| out.drop_connection(key));
                false
            }
        }
    }

    /// Writes to a TLS connection as much as its socket takes. At most one record is encrypted
    /// beyond that.
    pub(super) fn flush(&mut self, socket: &mut Socket, shard: &mut Shard) {
        self.encode(socket, shard);
        shard.links.layer_holds(socket.key, socket.layer.bytes());
    }

    fn encode(&mut self, socket: &mut Socket, shard: &mut Shard) {
        let key = socket.key;
        let Layer::Tls(tls) = &mut socket.layer else { return };
        loop {
            while !tls.unsent().is_empty() {
                match socket.stream.write(tls.unsent()) {
                    Ok(bytes) => {
                        let written = tls.sent(bytes);
                        if written > 0 {
                            shard.wrote(key, written);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        if !shard.links.unsent(key).is_empty() {
                            shard.wrote(key, 0);
                        }
                        return;
                    }
                    Err(_) => return shard.by_outlet(|out| out.drop_connection(key)),
                }
            }
            let output = shard.links.unsent(key);
            if output.is_empty() {
                return;
            }
            if !tls.is_open() {
                // It is being closed, and nothing can be said without keys.
                return shard.by_outlet(|out| out.drop_connection(key));
            }
            let (sealed, bytes) = match tls.seal(output, &mut self.record) {
                Ok(sealed) => sealed,
                Err(error) => {
                    log::debug!("a TLS connection ends: {error}");
                    tls.fail();
                    return shard.by_outlet(|out| out.drop_connection(key));
                }
            };
            let record = &self.record[..bytes];
            let taken = if tls.unsent().is_empty() {
                match socket.stream.write(record) {
                    Ok(bytes) => bytes,
                    Err(error) if is_passing(&error) => 0,
                    Err(_) => return shard.by_outlet(|out| out.drop_connection(key)),
                }
            } else {
                // Answers to the client's TLS go first.
                0
            };
            if taken == record.len() {
                shard.wrote(key, sealed);
            } else {
                tls.hold(&record[taken..], sealed);
            }
        }
    }

    /// A socket is about to be dropped.
    pub(super) fn drops(&mut self, socket: &mut Socket) {
        if let Layer::Tls(tls) = &socket.layer
            && !tls.is_open()
        {
            self.failed += 1;
        }
        say_close(socket);
    }
}

/// Writes the end of the output, as far as the socket takes it, and closes that half.
pub(super) fn part(socket: &mut Socket) {
    say_close(socket);
    // If it fails the client is gone, and the next read will show it.
    let _ = socket.stream.shutdown(Shutdown::Write);
}

/// Says to a TLS client that nothing more comes: without it, an attacker could have cut the rest
/// off. Everything before is written already.
fn say_close(socket: &mut Socket) {
    let Layer::Tls(tls) = &mut socket.layer else { return };
    tls.close();
    if !tls.unsent().is_empty() {
        let Ok(bytes) = write_once(&mut socket.stream, tls.unsent()) else { return };
        tls.sent(bytes);
    }
}

fn write_once(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
