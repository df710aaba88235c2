//! HTTP at addresses of its own, beside the rooms: routes that only operators reach, for example.
//! They speak HTTP without TLS, never reach a room, and have the limits of all HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::handover::{Handed, OpenConnection};
use super::limits::Front;
use super::pages::Pages;
use super::serve::Shared;
use crate::proxy::Client;
use crate::reach;
use crate::server::named;

/// The time to wait after an accept that failed, as for lack of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A router that listens.
pub(crate) struct PrivateHttp {
    socket: std::net::TcpListener,
    address: SocketAddr,
    router: Router,
}

impl PrivateHttp {
    /// Listens at an address.
    pub(crate) fn listen(address: SocketAddr, router: Router) -> io::Result<Self> {
        let listen = || -> io::Result<_> {
            let socket = reach::listen(address)?;
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, socket))
        };
        let name = format!("Server::http_on({address})");
        let (address, socket) = listen().map_err(|error| named(&name, &error))?;
        // Bodies are limited already, by `http.body_bytes`.
        let router = router.layer(DefaultBodyLimit::disable());
        Ok(Self { socket, address, router })
    }

    /// The address, with the actual port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Shared {
    /// Serves a router at an address of its own, until the server ends.
    pub(super) async fn serve_private(mut self, private: PrivateHttp) {
        let PrivateHttp { socket, router, .. } = private;
        let (handle, pages, unnamed) =
            (self.front.handle.clone(), Pages::default(), Mutex::default());
        self.front = Arc::new(Front { handle, pages, router, unnamed, has_rooms: false });
        let listener = match TcpListener::from_std(socket) {
            Ok(listener) => listener,
            Err(error) => return log::error!("the private HTTP can't be served: {error}"),
        };
        loop {
            let accepted = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ends| *ends) => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                // Without a place it is closed at once.
                Ok((socket, address)) => drop(self.admit(socket, address)),
                Err(_) => sleep(ACCEPT_RETRY).await,
            }
        }
    }

    /// Serves a new connection, if there may be one more.
    fn admit(&self, socket: TcpStream, address: SocketAddr) -> Option<()> {
        let handle = &self.front.handle;
        let open = OpenConnection::accept(handle)?;
        let tally = handle.node().addresses.admit(address.ip(), handle.now()).ok()?;
        let _ = socket.set_nodelay(true);
        let (peer, input) = (Client::named(address), Vec::new());
        let handed = Handed { socket: None, tls: None, input, peer, tally, open };
        tokio::spawn(self.clone().serve(socket, handed));
        Some(())
    }
}
