//! Addresses, and the URLs at which browsers reach what listens there.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;

use crate::{sys, upgrade};

/// Listens at an address beside those of the node, such as that of a console. While this process
/// [takes over](crate::NodeHandle::upgrade) from another, that one may listen there as well.
///
/// # Errors
/// If the address is in use, or can't be listened at.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    sys::listen_alone(address, upgrade::is_taking_over())
}

/// The URL at which a browser on this machine reaches what listens on an address. In a container,
/// so does one outside, once the port is published under the same number.
#[must_use]
pub fn url(address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    let port = address.port();
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("{scheme}://127.0.0.1:{port}/"),
        // It has both families on most systems.
        IpAddr::V6(ip) if ip.is_unspecified() => format!("{scheme}://localhost:{port}/"),
        _ => format!("{scheme}://{address}/"),
    }
}

/// An addition to a log line that names an address, where a browser opens something else.
#[must_use]
pub fn hint(address: SocketAddr, has_tls: bool) -> String {
    hint_where(address, has_tls, is_container())
}

fn hint_where(address: SocketAddr, has_tls: bool, is_container: bool) -> String {
    let (url, port) = (url(address, has_tls), address.port());
    if is_container && address.ip().is_loopback() {
        format!("; only this container reaches it: listen on 0.0.0.0:{port} for others")
    } else if is_container {
        format!("; browsers open {url} where the container's port {port} is published")
    } else if address.ip().is_unspecified() {
        format!("; browsers on this machine open {url}")
    } else {
        String::new()
    }
}

/// Returns whether this process runs in a container, as far as Docker, Podman and Kubernetes say
/// so.
fn is_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists())
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

#[cfg(test)]
mod tests {
    use super::{hint_where, url};

    #[test]
    fn a_url_is_one_that_a_browser_opens() {
        for (address, has_tls, expected) in [
            ("127.0.0.1:7350", false, "http://127.0.0.1:7350/"),
            ("0.0.0.0:7350", false, "http://127.0.0.1:7350/"),
            ("[::]:80", true, "https://localhost:80/"),
            ("[::1]:80", false, "http://[::1]:80/"),
            ("192.0.2.7:7350", true, "https://192.0.2.7:7350/"),
        ] {
            assert_eq!(url(address.parse().unwrap(), has_tls), expected);
        }
    }

    #[test]
    fn a_log_says_what_a_browser_outside_opens() {
        for (address, is_container, expected) in [
            ("127.0.0.1:1", false, ""),
            ("192.0.2.7:1", false, ""),
            ("0.0.0.0:1", false, "; browsers on this machine open http://127.0.0.1:1/"),
            (
                "0.0.0.0:1",
                true,
                "; browsers open http://127.0.0.1:1/ where the container's port 1 is published",
            ),
            (
                "127.0.0.1:1",
                true,
                "; only this container reaches it: listen on 0.0.0.0:1 for others",
            ),
        ] {
            assert_eq!(hint_where(address.parse().unwrap(), false, is_container), expected);
        }
    }
}
