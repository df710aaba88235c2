//! The console of a node: its rooms, as operators and as players see them, in a browser.
//!
//! ```text
//!  browser ──▶ listener ──▶ gate ──▶ pages, built in
//!                            │
//!                            └─────▶ api ──▶ the node's operator ──▶ shards
//! ```
//!
//! The console has a port of its own, and is served on the node's control thread, so it answers
//! while shards are busy, and costs nothing while nobody looks.

mod api;
mod attempts;
mod gate;
mod listener;
mod messages;
mod pages;
mod places;
mod query;
mod recordings;
mod request;
mod shown;

use std::io;
use std::net::{SocketAddr, TcpListener};

use playfield_server::{NodeHandle, reach};

use gate::Gate;
use listener::Listener;

/// A console that listens, and serves once the node runs.
#[derive(Debug)]
pub struct Console {
    socket: TcpListener,
    address: SocketAddr,
    gate: Gate,
}

impl Console {
    /// Listens at an address; port 0 picks a free one. With a token, all but the page itself is for
    /// those who send it. Without one, it must be a loopback address.
    ///
    /// # Errors
    /// If it can't listen at the address, or the token is empty and the address is not a loopback
    /// address.
    pub fn listen(address: SocketAddr, token: &str) -> io::Result<Self> {
        if token.is_empty() && !address.ip().is_loopback() {
            let text = format!(
                "console = {address}: without a token, anyone who can reach this address can see and \
                 change every room; set console_token, or listen on 127.0.0.1"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("console = {address}: {error}"))
        };
        let socket = reach::listen(address).map_err(named)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, gate: Gate::new(token) })
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the console of this node, until the node ends.
    pub fn serve(self, node: NodeHandle) {
        let Self { socket, address, gate } = self;
        let hint = reach::hint(address, false);
        let token = token_hint(&hint, gate.has_token());
        node.clone().spawn(async move {
            match tokio::net::TcpListener::from_std(socket) {
                Ok(socket) => Listener::new(socket, gate, node).run().await,
                Err(error) => log::error!("the console can't be served: {error}"),
            }
        });
        log::info!("console at http://{address}{hint}{token}");
    }
}

/// Returns what must be set beside the address that a hint names, if it names one.
fn token_hint(hint: &str, has_token: bool) -> &'static str {
    if !has_token && hint.contains("listen on") { ", and set console_token" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::token_hint;

    #[test]
    fn a_console_for_others_needs_a_token_which_is_named_unless_it_is_set() {
        let hint = "; only this container reaches it: listen on 0.0.0.0:80 for others";
        assert_eq!(token_hint(hint, false), ", and set console_token");
        assert_eq!(token_hint(hint, true), "");
        assert_eq!(token_hint("", false), "");
    }
}
