//! Words for systemd about a service of the type `notify`.

use std::io;
use std::os::unix::net::UnixDatagram;

/// The node serves.
pub(crate) fn is_ready() {
    tell("READY=1");
}

/// Another process is the main one from here on.
pub(crate) fn is_replaced_by(pid: u32) {
    tell(&format!("MAINPID={pid}"));
}

fn tell(what: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let told = UnixDatagram::unbound().and_then(|socket| send(&socket, &path, what));
    if let Err(error) = told {
        log::warn!("systemd was not told {what}: {error}");
    }
}

#[cfg(target_os = "linux")]
fn send(socket: &UnixDatagram, path: &std::ffi::OsStr, what: &str) -> io::Result<usize> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::SocketAddr;

    match path.as_bytes().strip_prefix(b"@") {
        None => socket.send_to(what.as_bytes(), path),
        Some(name) => {
            let address = SocketAddr::from_abstract_name(name)?;
            socket.send_to_addr(what.as_bytes(), &address)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn send(socket: &UnixDatagram, path: &std::ffi::OsStr, what: &str) -> io::Result<usize> {
    socket.send_to(what.as_bytes(), path)
}
