//! The services of a node: custom protocols, at addresses and paths of their own.

use std::net::SocketAddr;

use playfield_wire::excerpt;

use super::Server;
use crate::service::{AnyService, Hosted, Service};

/// A service that is to be reached somewhere.
pub(super) struct ServiceAt {
    /// The address that it listens at, if it does.
    pub(super) address: Option<SocketAddr>,
    /// The path at which it is reached by WebSocket, if it is.
    pub(super) path: Option<String>,
    /// Makes the value for a shard.
    pub(super) make: Box<dyn FnMut(usize) -> Box<dyn AnyService> + Send>,
}

impl Server {
    /// Serves a custom protocol at an address of its own; port 0 picks a free one, which
    /// [`Running::service_addrs`](crate::Running::service_addrs) returns. `make` is called once for
    /// each shard, with the shard's number.
    ///
    /// A node that has services, but no room types and nothing to serve over HTTP, does not listen
    /// at `listen`.
    #[must_use]
    pub fn service<S: Service>(
        mut self,
        address: SocketAddr,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        self.add_service(Some(address), None, make);
        self
    }

    /// Serves a custom protocol to WebSocket clients that connect to `listen` with this path, such
    /// as `/chat`; sessions connect with any other. [`start`](Self::start) fails if the path does not
    /// begin with a slash, has characters that URLs encode, or is another service's.
    ///
    /// The payloads of binary messages are the stream that the service's codec cuts into frames:
    /// where messages end means nothing. Each frame that the service writes is one message. TLS,
    /// the header of a proxy and `websocket.allowed_origins` apply as they do to sessions.
    #[must_use]
    pub fn service_at_path<S: Service>(
        mut self,
        path: impl Into<String>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        self.add_service(None, Some(path.into()), make);
        self
    }

    /// Combines [`service`](Self::service) and [`service_at_path`](Self::service_at_path): clients
    /// of both are connections of the same service.
    #[must_use]
    pub fn service_and_path<S: Service>(
        mut self,
        address: SocketAddr,
        path: impl Into<String>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        self.add_service(Some(address), Some(path.into()), make);
        self
    }

    fn add_service<S: Service>(
        &mut self,
        address: Option<SocketAddr>,
        path: Option<String>,
        mut make: impl FnMut(usize) -> S + Send + 'static,
    ) {
        if let Some(path) = &path {
            let is_known = self.services.iter().any(|known| known.path.as_ref() == Some(path));
            self.note(check_path(path, is_known));
        }
        let make = Box::new(move |shard| Box::new(Hosted::new(make(shard))) as Box<dyn AnyService>);
        self.services.push(ServiceAt { address, path, make });
    }
}

/// The longest path of a service.
const PATH_BYTES_MAX: usize = 1_024;

/// Checks that a service may be reached at this path.
fn check_path(path: &str, is_known: bool) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#%\"<>\\^`{|}".contains(&byte);
    if !path.starts_with('/') || !path.bytes().all(is_plain) {
        return Err(format!(
            "the path {:?} of a service must begin with a slash and have no characters that URLs \
             encode",
            excerpt(path, 128)
        ));
    }
    if path.len() > PATH_BYTES_MAX {
        let bytes = path.len();
        return Err(format!("a service's path has {bytes} bytes; {PATH_BYTES_MAX} are the most"));
    }
    if is_known {
        return Err(format!("two services have the path {path:?}"));
    }
    Ok(())
}
