//! A node's end of TLS, and the header of a proxy before it. Arbitrary bytes end the connection or
//! wait for more; a client's own bytes, however they are split, open it, and arrive as they were
//! sent; with one bit changed, nothing arrives that was not sent.
#![no_main]

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_server::testing::{Tls, TlsEnd, proxy_header};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

static TLS: LazyLock<Tls> = LazyLock::new(|| Tls::new().expect("a self-signed certificate"));
static CLIENTS: LazyLock<[Arc<ClientConfig>; 2]> =
    LazyLock::new(|| [&rustls::version::TLS12, &rustls::version::TLS13].map(config));

/// The most bytes that a node may hold for a client that is not done with its handshake, and some
/// more.
const UNSENT_BYTES_MAX: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    if let Some((bytes, _)) = proxy_header(data) {
        assert!((1..=data.len()).contains(&bytes));
    }
    let mut input = Input::new(data);
    let mode = input.byte();
    if mode & 1 == 0 { stranger(&mut input) } else { client(mode, &mut input) }
});

/// Arbitrary bytes, arbitrarily split.
fn stranger(input: &mut Input<'_>) {
    let mut end = TLS.connection().expect("a connection");
    let (mut plaintext, mut sent) = (Vec::new(), Vec::new());
    while let Some(piece) = input.piece() {
        let received = end.receive(&mut piece.to_vec(), &mut plaintext);
        end.take_unsent(&mut sent);
        assert!(sent.len() <= UNSENT_BYTES_MAX);
        if !matches!(received, Ok(true)) {
            break;
        }
        assert!(!end.is_open() && plaintext.is_empty());
        assert!(end.seal(b"secret", &mut sent).is_err(), "nothing is said without keys");
    }
    end.close();
}

/// A client's bytes. Each of both directions is split as the input says, and one bit may change.
fn client(mode: u8, input: &mut Input<'_>) {
    let config = Arc::clone(&CLIENTS[usize::from(mode >> 1 & 1)]);
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(config, name).expect("a client");
    let flips = (mode & 4 != 0).then(|| usize::from(input.byte()) << 4 | usize::from(input.byte()));
    let steps = [1 + usize::from(input.byte()) * 8, 1 + usize::from(input.byte())];
    let said = input.piece().unwrap_or_default();
    let mut end = TLS.connection().expect("a connection");
    let mut node = Node { end: &mut end, steps, turn: 0, flips, seen: 0, plaintext: Vec::new() };
    client.writer().write_all(said).expect("space");
    let (mut heard, mut answered) = (Vec::new(), 0);
    loop {
        let mut flight = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut flight).expect("a buffer");
        }
        if flight.is_empty() && answered == said.len() {
            break;
        }
        let is_idle = flight.is_empty();
        let mut sent = Vec::new();
        let is_alive = node.receive(&mut flight, &mut sent);
        assert!(said.starts_with(&node.plaintext), "only what was sent arrives");
        if !is_alive {
            assert!(flips.is_some(), "a connection with nothing wrong ends");
            return;
        }
        if node.end.is_open() && answered < node.plaintext.len() {
            let rest = node.plaintext[answered..].to_vec();
            answered += node.end.seal(&rest, &mut sent).expect("an open connection");
        } else if is_idle && sent.is_empty() {
            break;
        }
        let mut sent = &sent[..];
        while !sent.is_empty() {
            client.read_tls(&mut sent).expect("a buffer");
            if client.process_new_packets().is_err() {
                assert!(flips.is_some(), "the client refuses a connection with nothing wrong");
                return;
            }
            let _ = client.reader().read_to_end(&mut heard);
        }
    }
    assert!(said.starts_with(&heard));
    if flips.is_none() {
        assert!(node.end.is_open() && node.plaintext == said && heard == said);
    }
    node.end.close();
}

/// The node's end, which receives in pieces.
struct Node<'a> {
    end: &'a mut TlsEnd,
    steps: [usize; 2],
    turn: usize,
    /// The bit that changes, of all that is sent.
    flips: Option<usize>,
    seen: usize,
    plaintext: Vec<u8>,
}

impl Node<'_> {
    /// Whether the connection goes on.
    fn receive(&mut self, flight: &mut [u8], sent: &mut Vec<u8>) -> bool {
        if let Some(bit) = self.flips
            && let Some(byte) = (bit / 8).checked_sub(self.seen).and_then(|at| flight.get_mut(at))
        {
            *byte ^= 1 << (bit % 8);
        }
        self.seen += flight.len();
        let mut rest = flight;
        while !rest.is_empty() {
            self.turn += 1;
            let step = self.steps[self.turn % 2].min(rest.len());
            let (piece, more) = rest.split_at_mut(step);
            let received = self.end.receive(piece, &mut self.plaintext);
            self.end.take_unsent(sent);
            if !matches!(received, Ok(true)) {
                return false;
            }
            rest = more;
        }
        true
    }
}

fn config(version: &'static rustls::SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version of ring's")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyNode))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// Accepts any certificate.
#[derive(Debug)]
struct AnyNode;

impl ServerCertVerifier for AnyNode {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
