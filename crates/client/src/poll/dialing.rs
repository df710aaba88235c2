//! An attempt to connect, that does not block.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use super::stream::Stream;
use super::waiter::Registration;
use crate::Error;
use crate::dial::Dialer;
use crate::ending::Ending;
use crate::session::ClientError;
#[cfg(feature = "tls")]
use crate::tls::explain;

type Found = io::Result<Vec<SocketAddr>>;

/// One attempt: the name is looked up, then its addresses are tried in order.
#[derive(Debug)]
pub(super) struct Dialing {
    /// The answer to the name's look-up, while it is awaited.
    lookup: Option<Receiver<Found>>,
    addresses: std::vec::IntoIter<SocketAddr>,
    stream: Option<Stream>,
    source: Option<IpAddr>,
    limit: Duration,
    until: Instant,
    failed: Option<io::Error>,
}

impl Dialing {
    /// Begins an attempt, which fails after `limit`.
    pub(super) fn begin(
        dialer: &Dialer,
        source: Option<IpAddr>,
        limit: Duration,
        now: Instant,
        registration: &Registration,
    ) -> Self {
        let until = now.checked_add(limit).unwrap_or(now + Duration::from_secs(u32::MAX.into()));
        let mut dialing = Self {
            lookup: None,
            addresses: Vec::new().into_iter(),
            stream: None,
            source,
            limit,
            until,
            failed: None,
        };
        match dialer.address {
            Some(address) => dialing.addresses = vec![address].into_iter(),
            None => dialing.look_up(Arc::clone(&dialer.authority), registration.clone()),
        }
        dialing
    }

    /// Looks a name up on a thread: the system's function blocks.
    fn look_up(&mut self, authority: Arc<str>, registration: Registration) {
        let (send, found) = sync_channel(1);
        let thread = std::thread::Builder::new().name("playfield-lookup".into());
        let begun = thread.spawn(move || {
            let _ = send.send(authority.to_socket_addrs().map(Iterator::collect));
            registration.wake();
        });
        match begun {
            Ok(_) => self.lookup = Some(found),
            Err(error) => self.failed = Some(error),
        }
    }

    /// When the attempt has failed.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Goes on as far as it can without waiting; the node `has_ended` its half of the socket, or has
    /// not. `Some` at the end of the attempt.
    pub(super) fn go_on(
        &mut self,
        dialer: &Dialer,
        registration: &Registration,
        now: Instant,
        mut has_ended: bool,
    ) -> Option<Result<Stream, Error>> {
        if let Some(lookup) = &self.lookup {
            match lookup.try_recv() {
                Ok(Ok(addresses)) => self.addresses = addresses.into_iter(),
                Ok(Err(error)) => self.failed = Some(error),
                Err(TryRecvError::Disconnected) => {
                    self.failed = Some(io::Error::other("the name could not be looked up"));
                }
                Err(TryRecvError::Empty) => {
                    return self.is_late(now).then(|| Err(self.late(dialer)));
                }
            }
            self.lookup = None;
        }
        let is_late = self.is_late(now);
        loop {
            let Some(stream) = &mut self.stream else {
                let Some(address) = self.addresses.next() else {
                    let none = || io::Error::other("the name has no address");
                    let error = self.failed.take().unwrap_or_else(none);
                    return Some(Err(Error::unreachable(&dialer.authority, error)));
                };
                match connect(address, self.source, dialer, registration) {
                    Ok(stream) => self.stream = Some(stream),
                    Err(error) => self.failed = Some(error),
                }
                has_ended = false;
                continue;
            };
            match stream.is_ready() {
                Ok(true) => return self.stream.take().map(Ok),
                // The socket was connected, and has ended already.
                Ok(false) if has_ended && stream.is_connected().is_ok_and(|is| !is) => {
                    let ended = Ending::Broken(ClientError::Ended { close_code: None });
                    return Some(Err(ended.unwelcome()));
                }
                Ok(false) if is_late => return Some(Err(self.late(dialer))),
                Ok(false) => return None,
                #[cfg(feature = "tls")]
                Err(error) if dialer.tls.is_some() && stream.is_connected().is_ok_and(|is| is) => {
                    let (why, is_untrusted) = explain(&error);
                    return Some(Err(Error::insecure(&dialer.authority, why, is_untrusted)));
                }
                Err(error) => (self.stream, self.failed) = (None, Some(error)),
            }
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        now >= self.until
    }

    fn late(&self, dialer: &Dialer) -> Error {
        Error::no_answer(&dialer.authority, self.limit)
    }
}

fn connect(
    address: SocketAddr,
    source: Option<IpAddr>,
    dialer: &Dialer,
    registration: &Registration,
) -> io::Result<Stream> {
    let mut stream = Stream::connect(address, source)?;
    #[cfg(feature = "tls")]
    if let Some(tls) = &dialer.tls {
        stream.secure(tls)?;
    }
    #[cfg(not(feature = "tls"))]
    let _ = dialer;
    stream.register(registration.registry(), registration.token)?;
    Ok(stream)
}
