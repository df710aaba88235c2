//! One socket that does not block, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
#[cfg(feature = "tls")]
use std::sync::Arc;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
#[cfg(feature = "tls")]
use rustls::ClientConnection;
use socket2::{Domain, Socket, Type};

#[cfg(feature = "tls")]
use crate::tls::{RecordSize, Tls};

/// A socket that does not block, with or without TLS.
#[derive(Debug)]
pub struct Stream {
    socket: TcpStream,
    #[cfg(feature = "tls")]
    tls: Option<Box<Secured>>,
    /// Bytes that the socket did not take yet, from `start` on.
    unsent: Vec<u8>,
    start: usize,
}

#[cfg(feature = "tls")]
#[derive(Debug)]
struct Secured {
    tls: ClientConnection,
    records: RecordSize,
}

impl Stream {
    /// Begins to connect, from this address if one is given.
    ///
    /// # Errors
    /// If the system can't.
    pub fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let Some(source) = source else {
            return Ok(Self::new(TcpStream::connect(address)?));
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((source, 0)).into())?;
        Self::connect_by(socket, address)
    }

    /// Begins to connect by a socket with settings of the program's own.
    ///
    /// # Errors
    /// If the system can't.
    pub fn connect_by(socket: Socket, address: SocketAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let in_progress = Some(rustix::io::Errno::INPROGRESS.raw_os_error());
        match socket.connect(&address.into()) {
            Err(error)
                if error.kind() != ErrorKind::WouldBlock && error.raw_os_error() != in_progress =>
            {
                return Err(error);
            }
            _ => {}
        }
        Ok(Self::new(TcpStream::from_std(socket.into())))
    }

    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            #[cfg(feature = "tls")]
            tls: None,
            unsent: Vec::new(),
            start: 0,
        }
    }

    /// Has the socket begin TLS once it is connected: [`is_ready`](Self::is_ready), or reading and
    /// writing, make the handshake.
    ///
    /// # Errors
    /// If the library can't begin the handshake.
    #[cfg(feature = "tls")]
    pub fn secure(&mut self, tls: &Tls) -> io::Result<()> {
        let mut tls = ClientConnection::new(Arc::clone(&tls.config), tls.host.clone())
            .map_err(io::Error::other)?;
        // Everything that is handed in is sent, or the connection ends.
        tls.set_buffer_limit(None);
        self.tls = Some(Box::new(Secured { tls, records: RecordSize::FIRST }));
        Ok(())
    }

    /// Registers the socket, for reading and writing, with edges as triggers.
    ///
    /// # Errors
    /// If the system can't.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE | Interest::WRITABLE)
    }

    pub(super) fn deregister(&mut self, registry: &Registry) {
        // The end of the socket does it, too.
        let _ = registry.deregister(&mut self.socket);
    }

    /// Returns whether the socket is connected.
    ///
    /// # Errors
    /// If it could not be.
    pub fn is_connected(&mut self) -> io::Result<bool> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        match self.socket.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
            Err(error) => return Err(error),
        }
        // Messages are written in batches already: waiting for more only delays them.
        self.socket.set_nodelay(true)?;
        Ok(true)
    }

    /// Returns whether the socket is connected, and TLS is ready.
    ///
    /// # Errors
    /// If it could not be.
    pub fn is_ready(&mut self) -> io::Result<bool> {
        if !self.is_connected()? {
            return Ok(false);
        }
        #[cfg(feature = "tls")]
        if let Some(secured) = &mut self.tls {
            return handshake(&mut secured.tls, &mut self.socket);
        }
        Ok(true)
    }

    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    /// `WouldBlock` if there are none yet, or why the connection failed.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(secured) = &mut self.tls {
            return read_secured(&mut secured.tls, &mut self.socket, buffer);
        }
        self.socket.read(buffer)
    }

    /// Returns whether input may wait that was announced before.
    pub(super) fn may_hold_input(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    /// Returns whether everything was read, if [`read`](Self::read) filled this much of a buffer.
    pub fn is_drained(&self, read: usize, buffer: usize) -> bool {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return false;
        }
        read < buffer
    }

    /// Returns the number of bytes that wait for the socket.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.len() - self.start
    }

    /// Returns whether something waits for the socket.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.tls.as_ref().is_some_and(|of| of.tls.wants_write() && !of.tls.is_handshaking()) {
            return true;
        }
        self.unsent_bytes() > 0
    }

    /// Sends bytes, and keeps those that the socket does not take yet: call it without any when the
    /// socket is writable. Returns whether all is sent.
    ///
    /// # Errors
    /// If the connection failed. Nothing more can be sent.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            self.unsent.extend_from_slice(bytes);
            return self.write_secured();
        }
        if self.unsent.is_empty() {
            let sent = write_some(&mut self.socket, bytes)?;
            self.unsent.extend_from_slice(&bytes[sent..]);
            return Ok(sent == bytes.len());
        }
        self.unsent.extend_from_slice(bytes);
        self.start += write_some(&mut self.socket, &self.unsent[self.start..])?;
        let is_all = self.unsent_bytes() == 0;
        if is_all {
            self.discard();
        }
        Ok(is_all)
    }

    /// Encrypts a record only when the socket has taken the one before: nothing of a record that is
    /// cut can be read.
    #[cfg(feature = "tls")]
    fn write_secured(&mut self) -> io::Result<bool> {
        let Some(secured) = &mut self.tls else { return Ok(true) };
        let Secured { tls, records } = &mut **secured;
        loop {
            while tls.wants_write() {
                match tls.write_tls(&mut Plain(&mut self.socket)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            let front = records.front(&self.unsent[self.start..]);
            if front.is_empty() {
                (self.start, self.unsent) = (0, Vec::new());
                return Ok(true);
            }
            let bytes = front.len();
            tls.writer().write_all(front)?;
            records.carried(bytes);
            self.start += bytes;
        }
    }

    /// Drops what waits.
    pub(super) fn discard(&mut self) {
        (self.start, self.unsent) = (0, Vec::new());
    }

    /// Tells the node that nothing more follows.
    pub(super) fn shut_down(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// Writes as much as the socket takes. Returns how much.
fn write_some(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match socket.write(&bytes[sent..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// Writes by `write` alone: `write_vectored` ends a process that is not in Rust by `SIGPIPE` when
/// the other end is gone.
#[cfg(feature = "tls")]
struct Plain<'a>(&'a mut TcpStream);

#[cfg(feature = "tls")]
impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "tls")]
fn handshake(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<bool> {
    while tls.is_handshaking() || tls.wants_write() {
        let done = if tls.wants_write() {
            tls.write_tls(&mut Plain(socket))
        } else {
            let read = tls.read_tls(socket);
            if let Ok(0) = read {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if let Err(error) = tls.process_new_packets() {
                // The node may be told why.
                let _ = tls.write_tls(&mut Plain(socket));
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            read
        };
        match done {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(feature = "tls")]
fn read_secured(
    tls: &mut ClientConnection,
    socket: &mut TcpStream,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The node sent no `close_notify`. The framing shows whether anything is missing.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            read => return read,
        }
        if tls.read_tls(socket)? == 0 {
            return Ok(0);
        }
        tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    }
}
