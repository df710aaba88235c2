//! The baseline of handshakes: `rustls` and nothing else, on one thread.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use playfield_server::SelfSigned;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::{REQUEST_END, RESPONSE};

/// Starts the thread. It ends with the process.
pub(super) fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let config = Arc::new(config()?);
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // One that fails is missed by its client.
            let _ = serve(stream, &config);
        }
    });
    Ok(address)
}

/// Returns the setup that a node has: the same kind of key, and tickets.
fn config() -> io::Result<ServerConfig> {
    let signed = SelfSigned::new(&["localhost"]).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(signed.key_pem().as_bytes());
    let chain = vec![CertificateDer::from(signed.certificate().to_vec())];
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key.map_err(io::Error::other)?)
        .map_err(io::Error::other)?;
    config.ticketer = ring::Ticketer::new().map_err(io::Error::other)?;
    Ok(config)
}

fn serve(mut stream: TcpStream, config: &Arc<ServerConfig>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(REQUEST_END) {
        tls.complete_io(&mut stream)?;
        while let Ok(count @ 1..) = tls.reader().read(&mut buffer) {
            request.extend_from_slice(&buffer[..count]);
        }
    }
    tls.writer().write_all(RESPONSE)?;
    tls.send_close_notify();
    while tls.wants_write() {
        tls.write_tls(&mut stream)?;
    }
    Ok(())
}
