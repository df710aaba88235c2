//! TLS for clients: their settings, and a tunnel for those without TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use playfield_server::Running;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use super::PATIENCE;

/// Settings of a client that trusts this certificate alone.
pub(crate) fn trusting(
    certificate: &[u8],
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.to_vec())).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Like [`trusting`] a node's certificate, with all versions of TLS.
pub(crate) fn trusting_node(running: &Running) -> Arc<ClientConfig> {
    Arc::new(trusting(&running.tls_certificate().unwrap(), rustls::ALL_VERSIONS))
}

pub(crate) fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

pub(crate) fn client(config: &Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(Arc::clone(config), localhost()).unwrap()
}

/// A blocking TLS client.
pub(crate) type TlsClient = rustls::StreamOwned<ClientConnection, TcpStream>;

pub(crate) fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> TlsClient {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    TlsClient::new(client(config), socket)
}

/// Opens an address where clients without TLS connect to reach a node over TLS. Bytes to the node
/// are written in pieces of `piece` bytes at most.
pub(crate) fn tunnel(node: SocketAddr, config: Arc<ClientConfig>, piece: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((inner, _)) = listener.accept() {
            let outer = TcpStream::connect(node).unwrap();
            for socket in [&inner, &outer] {
                socket.set_nodelay(true).unwrap();
            }
            relay(inner, outer, client(&config), piece);
        }
    });
    address
}

fn relay(inner: TcpStream, outer: TcpStream, tls: ClientConnection, piece: usize) {
    let tls = Arc::new(Mutex::new(tls));
    let other = (inner.try_clone().unwrap(), outer.try_clone().unwrap(), Arc::clone(&tls));
    thread::spawn(move || {
        let (mut inner, mut outer, tls) = other;
        let mut buffer = vec![0; 16 << 10];
        send(&mut tls.lock().unwrap(), &mut outer, piece);
        loop {
            let count = inner.read(&mut buffer).unwrap_or(0);
            let mut tls = tls.lock().unwrap();
            if count == 0 {
                tls.send_close_notify();
            }
            tls.writer().write_all(&buffer[..count]).unwrap();
            if !send(&mut tls, &mut outer, piece) || count == 0 {
                return;
            }
        }
    });
    thread::spawn(move || {
        let (mut inner, mut outer) = (inner, outer);
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = outer.read(&mut buffer).unwrap_or(0);
            let mut input = &buffer[..count];
            let mut plaintext = Vec::new();
            while !input.is_empty() {
                let mut tls = tls.lock().unwrap();
                tls.read_tls(&mut input).unwrap();
                let processed = tls.process_new_packets();
                match tls.reader().read_to_end(&mut plaintext) {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
                    _ => {}
                }
                // What comes before the end of the handshake waits in `tls`.
                send(&mut tls, &mut outer, piece);
                if processed.is_err() {
                    break;
                }
            }
            if count == 0 || inner.write_all(&plaintext).is_err() {
                let _ = inner.shutdown(Shutdown::Write);
                return;
            }
        }
    });
}

/// Writes what TLS has to send. `false` if the connection has ended.
fn send(tls: &mut ClientConnection, outer: &mut TcpStream, piece: usize) -> bool {
    let mut out = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut out).unwrap();
    }
    out.chunks(piece).all(|piece| outer.write_all(piece).is_ok())
}
