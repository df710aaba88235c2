//! One socket that does not block, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;
use socket2::{Domain, Socket, Type};

use crate::dial::Dial;

/// A socket.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
}

impl Stream {
    /// Begins to connect. The socket becomes writable when it is connected, or has failed.
    pub(crate) fn open(dial: &Dial, source: Option<SocketAddr>) -> io::Result<Self> {
        let socket = match source {
            None => TcpStream::connect(dial.address)?,
            Some(source) => connect_from(dial.address, source)?,
        };
        let tls = dial
            .tls
            .as_ref()
            .map(|(config, name)| ClientConnection::new(Arc::clone(config), name.clone()));
        let tls = tls.transpose().map_err(io::Error::other)?.map(|mut tls| {
            // Everything that is handed in is sent, or the connection ends.
            tls.set_buffer_limit(None);
            Box::new(tls)
        });
        Ok(Self { socket, tls, unsent: Vec::new() })
    }

    pub(crate) fn register(&mut self, registry: &Registry, number: usize) -> io::Result<()> {
        registry.register(&mut self.socket, Token(number), Interest::READABLE | Interest::WRITABLE)
    }

    /// Whether the socket is connected.
    ///
    /// # Errors
    /// If it could not be.
    pub(crate) fn is_connected(&mut self) -> io::Result<bool> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        match self.socket.peer_addr() {
            Ok(_) => {
                // Messages are written in batches already: waiting for more only delays them.
                self.socket.set_nodelay(true)?;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads some bytes; none at the end.
    ///
    /// # Errors
    /// `WouldBlock` if there are none yet, or why the connection failed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Without an orderly end of TLS, too, the connection has ended.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(|error| {
                io::Error::new(ErrorKind::InvalidData, format!("TLS failed: {error}"))
            })?;
        }
    }

    /// Whether everything was read, if `read` filled this much of a buffer.
    pub(crate) fn is_drained(&self, read: usize, buffer: usize) -> bool {
        self.tls.is_none() && read < buffer
    }

    /// Sends bytes, and keeps those that the socket does not take yet. Call it without bytes when
    /// the socket is writable.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            while tls.wants_write() {
                match tls.write_tls(&mut self.socket) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            let mut unsent = std::mem::take(&mut self.unsent);
            let sent = write_some(&mut self.socket, &unsent)?;
            if sent < unsent.len() {
                unsent.drain(..sent);
                self.unsent = unsent;
            }
            return Ok(());
        }
        let sent = write_some(&mut self.socket, bytes)?;
        bytes = &bytes[sent..];
        self.unsent.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether bytes wait for the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
            || self.tls.as_ref().is_some_and(|tls| tls.wants_write() && !tls.is_handshaking())
    }
}

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

/// Connects from this address.
fn connect_from(address: SocketAddr, source: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&source.into())?;
    match socket.connect(&address.into()) {
        Err(error) if !is_in_progress(&error) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}
