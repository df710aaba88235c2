//! A client's and a server's end, driven against each other.

use std::sync::Arc;

use playfield_server::SelfSigned;
use playfield_tls::{Endpoint, Role};
use proptest::prelude::*;
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};

const PARTIAL_BYTES_MAX: usize = 24 << 10;

type Client = Endpoint<UnbufferedClientConnection>;
type Server = Endpoint<UnbufferedServerConnection>;

fn pair(is_tls13: bool) -> (Client, Server) {
    let versions = if is_tls13 { [&TLS13] } else { [&TLS12] };
    let signed = SelfSigned::new(&["localhost"]).unwrap();
    let certificate = CertificateDer::from_pem_slice(signed.certificate_pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signed.key_pem().as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = UnbufferedClientConnection::new(Arc::new(config), name).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let server = UnbufferedServerConnection::new(Arc::new(config)).unwrap();
    let bytes_max = PARTIAL_BYTES_MAX;
    (Endpoint::new(client, bytes_max).unwrap(), Endpoint::new(server, bytes_max).unwrap())
}

/// One direction: what is on its way, and what has arrived.
#[derive(Default)]
struct Way {
    wire: Vec<u8>,
    arrived: Vec<u8>,
}

impl Way {
    fn sent<R: Role>(&mut self, from: &mut Endpoint<R>, plain: &[u8]) {
        self.wire.append(&mut from.take_unsent());
        if !plain.is_empty() {
            let mut records = vec![7; 3];
            let end = from.encrypt(plain, &mut records, 2).unwrap();
            self.wire.append(&mut from.take_unsent());
            self.wire.extend_from_slice(&records[2..end]);
        }
    }

    /// Delivers at most so many bytes. Returns whether the stream has ended.
    fn deliver<R: Role>(&mut self, to: &mut Endpoint<R>, bytes: usize) -> Result<bool, Error> {
        let bytes = bytes.min(self.wire.len());
        let mut input: Vec<u8> = self.wire.drain(..bytes).collect();
        to.receive(&mut input, &mut self.arrived)
    }
}

/// Completes the handshake, in pieces of so many bytes.
fn shake_hands(client: &mut Client, server: &mut Server, up: &mut Way, down: &mut Way, cut: usize) {
    for _ in 0..100_000 {
        up.sent(client, &[]);
        down.sent(server, &[]);
        if !client.role().is_handshaking() && !server.role().is_handshaking() {
            return;
        }
        up.deliver(server, cut).unwrap();
        down.deliver(client, cut).unwrap();
    }
    panic!("the handshake does not end");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    /// However the streams are cut, each end receives just what the other has sent, and its end.
    #[test]
    fn all_arrives_however_it_is_cut(
        is_tls13: bool,
        first in 1_usize..3000,
        sends in prop::collection::vec((any::<bool>(), 0_usize..60_000), 0..8),
        cuts in prop::collection::vec(1_usize..40_000, 1..20),
    ) {
        let (mut client, mut server) = pair(is_tls13);
        let (mut up, mut down) = (Way::default(), Way::default());
        shake_hands(&mut client, &mut server, &mut up, &mut down, first);
        let (mut sent_up, mut sent_down) = (Vec::new(), Vec::new());
        let mut cuts = cuts.iter().cycle();
        for (number, (is_up, bytes)) in sends.into_iter().enumerate() {
            let plain: Vec<u8> = (0..bytes).map(|at| (at * 7 + number) as u8).collect();
            if is_up {
                up.sent(&mut client, &plain);
                sent_up.extend_from_slice(&plain);
            } else {
                down.sent(&mut server, &plain);
                sent_down.extend_from_slice(&plain);
            }
            prop_assert!(!up.deliver(&mut server, *cuts.next().unwrap()).unwrap());
            prop_assert!(!down.deliver(&mut client, *cuts.next().unwrap()).unwrap());
        }
        client.close();
        client.close();
        up.sent(&mut client, &[]);
        let mut has_ended = false;
        while !up.wire.is_empty() || !down.wire.is_empty() {
            has_ended |= up.deliver(&mut server, *cuts.next().unwrap()).unwrap();
            down.deliver(&mut client, *cuts.next().unwrap()).unwrap();
        }
        prop_assert!(has_ended && server.has_ended().unwrap() && !client.has_ended().unwrap());
        prop_assert!(up.arrived == sent_up && down.arrived == sent_down);
        // An idle connection owns no buffer, and reads nothing behind the end.
        prop_assert_eq!((client.buffer_bytes(), server.buffer_bytes()), (0, 0));
        prop_assert!(server.receive(&mut [1, 2, 3], &mut up.arrived).unwrap());
    }

    /// A byte that was changed on its way ends the connection with an error that stays, and with an
    /// alert.
    #[test]
    fn damage_is_found(is_tls13: bool, at in 5_usize..200, cut in 1_usize..300) {
        let (mut client, mut server) = pair(is_tls13);
        let (mut up, mut down) = (Way::default(), Way::default());
        shake_hands(&mut client, &mut server, &mut up, &mut down, 500);
        up.sent(&mut client, &[1; 200]);
        up.wire[at] ^= 1;
        let mut result = Ok(false);
        while result.is_ok() && !up.wire.is_empty() {
            result = up.deliver(&mut server, cut);
        }
        prop_assert!(result.is_err() && server.has_ended().is_err() && up.arrived.is_empty());
        prop_assert!(server.receive(&mut [0], &mut up.arrived).is_err());
        down.sent(&mut server, &[]);
        let told = down.deliver(&mut client, usize::MAX);
        prop_assert!(matches!(told, Err(Error::AlertReceived(_))), "{:?}", told);
    }
}

/// A stranger can't fill the memory by a handshake message that never ends.
#[test]
fn a_handshake_message_is_limited() {
    let (_, mut server) = pair(true);
    let mut result = Ok(false);
    let mut sent = 0;
    // Client hellos of 60,000 bytes, in records of 1,000 bytes (RFC 8446, 4).
    let mut body = vec![1, 0, 0xea, 0x60];
    while result.is_ok() && sent < 10 * PARTIAL_BYTES_MAX {
        body.resize(1000, 0);
        let mut record = vec![22, 3, 1, 3, 0xe8];
        record.append(&mut body);
        sent += record.len();
        result = server.receive(&mut record, &mut Vec::new());
    }
    assert!(result.is_err() && sent <= PARTIAL_BYTES_MAX + 2000, "{result:?} after {sent}");
    assert_eq!(server.buffer_bytes() - server.unsent().len(), 0);
}
