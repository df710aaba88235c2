//! A node over TLS.

use crate::common;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::tls::{client, connect, trusting, trusting_node, tunnel};
use common::{Client, Heard, config, room, start, until};
use playfield_server::{Running, SelfSigned, Server};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{Format, RequestNumber};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, Error, HandshakeKind};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn secure(settings: &[(&str, &str)]) -> Running {
    let settings = [&[("tls.self_signed", "true")], settings].concat();
    start(&settings)
}

/// The TLS error that a failed read or write has as its source.
fn tls_error(error: &std::io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// A folder that is deleted at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("playfield-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a certificate and its key, the key first.
    fn put(&self, signed: &SelfSigned) {
        replace(&self.0.join("key.pem"), &signed.key_pem());
        replace(&self.0.join("cert.pem"), &signed.certificate_pem());
    }

    fn start(&self, settings: &[(&str, &str)]) -> std::io::Result<Running> {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let files =
            [("tls.cert", cert.as_str()), ("tls.key", key.as_str()), ("tuning.tls_reload", "10ms")];
        Server::new(config(&[&files, settings].concat()))
            .room_type(room::room_type("test"))
            .page("/", "text/html", "<p>hello")
            .start()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Replaces a file at once, as tools that renew certificates do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

#[test]
fn every_transport_and_format_plays_over_tls_however_it_is_cut() {
    let running = secure(&[("shards", "2")]);
    let certificate = running.tls_certificate().unwrap();
    for version in [&TLS12, &TLS13] {
        let config = Arc::new(trusting(&certificate, &[version]));
        for piece in [1, 2, 3, 7, 64, 1000, usize::MAX] {
            let address = tunnel(running.local_addr(), Arc::clone(&config), piece);
            let clients = [
                Client::native(address),
                Client::websocket(address, Format::Packed),
                Client::websocket(address, Format::Msgpack),
                Client::deflating(address, Format::Json),
            ];
            for mut client in clients {
                client.join_or_create(RequestNumber(1), "");
                let (room, _) = client.until_joined(RequestNumber(1)).unwrap();
                assert!(matches!(client.next(), Heard::Snapshot { .. }));
                client.request(room, RequestNumber(2), "secret", "");
                assert_eq!(client.until_reply(RequestNumber(2)), "");
                client.until(|heard| matches!(heard, Heard::Patch { .. }).then_some(()));
            }
            let mut page = Client::connect(address);
            page.socket.write_all(GET).unwrap();
            let mut response = String::new();
            page.socket.read_to_string(&mut response).unwrap();
            assert!(response.ends_with("\r\n\r\n<p>hello"), "{response}");
        }
    }
    running.shutdown();
}

#[test]
fn both_ends_close_tls_before_the_transport() {
    let running = secure(&[]);
    let config = trusting_node(&running);
    let mut client = connect(running.local_addr(), &config);
    client.write_all(GET).unwrap();
    // The client's half ends first: the answer still comes.
    client.conn.send_close_notify();
    let mut response = String::new();
    // Without `close_notify` at the end, this would be an error.
    client.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("<p>hello"), "{response}");
    // A player who gets a goodbye gets the end of TLS too.
    let mut player = connect(running.local_addr(), &config);
    player.write_all(b"PF1\n").unwrap();
    player.flush().unwrap();
    until(&running, |running| running.stats().total().tls_handshakes == 2);
    running.shutdown();
    let mut rest = Vec::new();
    player.read_to_end(&mut rest).unwrap();
}

#[test]
fn a_client_that_vanishes_without_close_notify_is_forgotten() {
    let running = secure(&[]);
    let config = trusting_node(&running);
    for sent in [0, 1, 5, 100] {
        let mut tls = client(&config);
        let mut hello = Vec::new();
        tls.write_tls(&mut hello).unwrap();
        let mut socket = TcpStream::connect(running.local_addr()).unwrap();
        socket.write_all(&hello[..sent]).unwrap();
        drop(socket);
    }
    let mut whole = connect(running.local_addr(), &config);
    whole.write_all(b"PF1\n").unwrap();
    until(&running, |running| running.stats().total().tls_handshakes == 1);
    drop(whole);
    until(&running, |running| running.stats().total().connections == 0);
    let failed = running.stats().total().tls_failed;
    assert_eq!(failed, 3, "the one that sent nothing does not count as TLS");
}

#[test]
fn a_slow_handshake_ends_at_hello_timeout_ms() {
    let running = secure(&[("timeouts.hello", "50ms")]);
    let mut tls = client(&trusting_node(&running));
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    let mut socket = TcpStream::connect(running.local_addr()).unwrap();
    // All but the last byte, one at a time.
    for byte in &hello[..hello.len() - 1] {
        let _ = socket.write_all(&[*byte]);
    }
    let mut rest = Vec::new();
    match socket.read_to_end(&mut rest) {
        Ok(_) => assert!(rest.is_empty(), "nothing can be said before there are keys"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    until(&running, |running| running.stats().total().tls_failed == 1);
}

#[test]
fn a_handshake_that_only_promises_does_not_pile_up() {
    let running = secure(&[]);
    let mut socket = TcpStream::connect(running.local_addr()).unwrap();
    // Records of a handshake message that never becomes whole.
    let mut record = vec![22, 3, 1, 0x40, 0, 1, 0, 0xFF, 0xFF];
    record.resize(5 + 0x4000, 0);
    let mut again = vec![22, 3, 1, 0x40, 0];
    again.resize(5 + 0x4000, 0);
    let _ = socket.write_all(&record);
    let _ = socket.write_all(&again);
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    until(&running, |running| running.stats().total().tls_failed == 1);
}

#[test]
fn garbage_and_oversized_records_are_answered_with_an_alert() {
    let running = secure(&[]);
    let config = trusting_node(&running);
    let oversized = [&[23, 3, 3, 0xFF, 0xFF][..], &[0; 100]].concat();
    let forged = [&[23, 3, 3, 0, 40][..], &[0; 40]].concat();
    for (garbage, expected) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], AlertDescription::DecodeError),
        (&oversized, AlertDescription::DecodeError),
        (&forged, AlertDescription::BadRecordMac),
    ] {
        let mut client = connect(running.local_addr(), &config);
        client.write_all(b"PF1\n").unwrap();
        client.sock.write_all(garbage).unwrap();
        let error = client.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(tls_error(&error), Some(&Error::AlertReceived(expected)), "{garbage:?}");
    }
    // Before the handshake too.
    let mut socket = TcpStream::connect(running.local_addr()).unwrap();
    socket.write_all(&[22, 9, 9, 0, 4, 1, 2, 3, 4]).unwrap();
    let mut alert = Vec::new();
    socket.read_to_end(&mut alert).unwrap();
    assert_eq!(alert.first(), Some(&21), "{alert:?}");
    until(&running, |running| running.stats().total().tls_failed == 4);
}

#[test]
fn many_handshakes_at_once_are_spread_over_turns_and_all_complete() {
    let running = secure(&[("shards", "1")]);
    let config = trusting_node(&running);
    let mut clients: Vec<_> = (0..200).map(|_| connect(running.local_addr(), &config)).collect();
    for client in &mut clients {
        let mut hello = Vec::new();
        client.conn.write_tls(&mut hello).unwrap();
        client.sock.write_all(&hello).unwrap();
    }
    for client in &mut clients {
        client.write_all(GET).unwrap();
    }
    for client in &mut clients {
        let mut response = String::new();
        client.read_to_string(&mut response).unwrap();
        assert!(response.ends_with("<p>hello"), "{response}");
    }
    assert_eq!(running.stats().total().tls_failed, 0);
}

#[test]
fn without_a_certificate_a_tls_client_gets_an_alert() {
    let running = start(&[]);
    let signed = SelfSigned::new(&["localhost"]).unwrap();
    let config = Arc::new(trusting(signed.certificate(), rustls::ALL_VERSIONS));
    let mut client = connect(running.local_addr(), &config);
    let error = client.write_all(GET).unwrap_err();
    let expected = Error::AlertReceived(AlertDescription::HandshakeFailure);
    assert_eq!(tls_error(&error), Some(&expected));
    until(&running, |running| running.stats().total().tls_refused == 1);
}

#[test]
fn without_tls_the_same_port_still_serves() {
    let running = secure(&[("tls.only", "true")]);
    // Even with tls_only, from this machine.
    let mut client = Client::native(running.local_addr());
    client.join_or_create(RequestNumber(1), "");
    client.until_joined(RequestNumber(1)).unwrap();
    let mut page = TcpStream::connect(running.local_addr()).unwrap();
    page.write_all(GET).unwrap();
    page.shutdown(Shutdown::Write).unwrap();
    let mut response = String::new();
    page.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
}

#[test]
fn a_client_that_offers_only_other_protocols_is_refused() {
    let running = secure(&[]);
    for (offered, agreed) in [
        (&[][..], None),
        (&[&b"http/1.1"[..]][..], Some(&b"http/1.1"[..])),
        (&[b"h2", b"http/1.1"], Some(b"http/1.1")),
    ] {
        let mut config = trusting(&running.tls_certificate().unwrap(), rustls::ALL_VERSIONS);
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let mut client = connect(running.local_addr(), &Arc::new(config));
        client.write_all(GET).unwrap();
        assert_eq!(client.conn.alpn_protocol(), agreed);
    }
    let mut config = trusting(&running.tls_certificate().unwrap(), rustls::ALL_VERSIONS);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut client = connect(running.local_addr(), &Arc::new(config));
    let error = client.write_all(GET).unwrap_err();
    let expected = Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    assert_eq!(tls_error(&error), Some(&expected));
}

#[test]
fn a_client_that_returns_resumes_its_tls_session_on_any_shard() {
    for version in [&TLS12, &TLS13] {
        let running = secure(&[("shards", "2")]);
        let config = Arc::new(trusting(&running.tls_certificate().unwrap(), &[version]));
        for number in 0..10 {
            let mut client = connect(running.local_addr(), &config);
            client.write_all(GET).unwrap();
            client.read_to_end(&mut Vec::new()).unwrap();
            let expected = if number == 0 { HandshakeKind::Full } else { HandshakeKind::Resumed };
            assert_eq!(client.conn.handshake_kind(), Some(expected));
        }
        until(&running, |running| running.stats().total().tls_resumed == 9);
        assert_eq!(running.stats().total().tls_handshakes, 10);
    }
}

#[test]
fn a_new_certificate_is_used_for_new_connections_and_a_broken_one_is_not() {
    let folder = Folder::new("reload");
    let [first, second] =
        ["a.example", "b.example"].map(|other| SelfSigned::new(&["localhost", other]).unwrap());
    folder.put(&first);
    let running = folder.start(&[]).unwrap();
    let mut old = Client::native(tunnel(
        running.local_addr(),
        Arc::new(trusting(first.certificate(), rustls::ALL_VERSIONS)),
        usize::MAX,
    ));
    old.join_or_create(RequestNumber(1), "");
    let (room, _) = old.until_joined(RequestNumber(1)).unwrap();

    folder.put(&second);
    let wait_for = |signed: &SelfSigned| {
        until(&running, |running| {
            running.tls_certificate().as_deref() == Some(signed.certificate())
        });
    };
    wait_for(&second);
    let config = trusting_node(&running);
    connect(running.local_addr(), &config).write_all(GET).unwrap();

    // Each of these stays without effect: the certificate of the next good one comes after them.
    let none = SelfSigned::new(&["localhost"]).unwrap();
    for broken in ["", "nonsense", &none.certificate_pem()[..200], &none.certificate_pem()] {
        replace(&folder.0.join("cert.pem"), broken);
        connect(running.local_addr(), &config).write_all(GET).unwrap();
    }
    std::fs::remove_file(folder.0.join("cert.pem")).unwrap();
    connect(running.local_addr(), &config).write_all(GET).unwrap();
    assert_eq!(running.tls_certificate().as_deref(), Some(second.certificate()));
    folder.put(&first);
    wait_for(&first);
    // The client that was there from the beginning still is.
    old.request(room, RequestNumber(2), "add", "");
    assert_eq!(old.until_reply(RequestNumber(2)), "1");
}

#[test]
fn a_node_does_not_start_with_files_that_it_cannot_use() {
    let folder = Folder::new("start");
    let signed = SelfSigned::new(&["localhost"]).unwrap();
    let other = SelfSigned::new(&["localhost"]).unwrap();
    let (certificate, key) = (signed.certificate_pem(), signed.key_pem());
    let fails = |certificate: Option<&str>, key: Option<&str>| {
        for (name, text) in [("cert.pem", certificate), ("key.pem", key)] {
            let _ = std::fs::remove_file(folder.0.join(name));
            if let Some(text) = text {
                replace(&folder.0.join(name), text);
            }
        }
        folder.start(&[]).err().expect("the node does not start").to_string()
    };
    for (text, parts) in [
        (fails(None, Some(&key)), ["tls.cert = ", "cert.pem", "No such file"]),
        (fails(Some(&certificate), None), ["tls.key = ", "key.pem", "No such file"]),
        (fails(Some(""), Some(&key)), ["tls.cert = ", "cert.pem", "there is no certificate"]),
        (fails(Some(&certificate), Some("")), ["tls.key = ", "key.pem", "no private key"]),
        (fails(Some(&key), Some(&key)), ["tls.cert = ", "cert.pem", "there is no certificate"]),
        (
            fails(Some(&certificate), Some(&other.key_pem())),
            ["tls.key = ", "key.pem", "not the key of the first certificate"],
        ),
        (
            fails(
                Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
                Some(&key),
            ),
            ["tls.cert = ", "cert.pem", "invalid"],
        ),
    ] {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}: {parts:?}");
    }
    for (settings, part) in [
        (&[("tls.cert", "x")][..], "tls.key"),
        (&[("tls.key", "x")], "tls.cert"),
        (&[("tls.only", "true")], "tls.only"),
        (&[("tls.self_signed", "true"), ("tls.cert", "x"), ("tls.key", "y")], "choose one"),
    ] {
        let error = Server::new(config(settings)).start().err().unwrap().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_slow_reader_over_tls_gets_one_patch_not_a_backlog() {
    let running = secure(&[("shards", "1")]);
    let config = trusting_node(&running);
    let address = tunnel(running.local_addr(), Arc::clone(&config), usize::MAX);
    let mut slow = Client::native(address);
    slow.join_or_create(RequestNumber(1), "ballast=200000");
    let (room, id) = slow.until_joined(RequestNumber(1)).unwrap();
    let mut quick = Client::native(running.local_addr());
    quick.join(RequestNumber(1), &id);
    let (seat, _) = quick.until_joined(RequestNumber(1)).unwrap();
    // The slow one asks for a lot, and reads none of it.
    let mut number = 1;
    while running.stats().total().conflated == 0 {
        number += 1;
        assert!(number < 100_000, "{:?}", running.stats());
        if number < 1000 {
            slow.request(room, RequestNumber(number), "big", "20000");
        }
        quick.request(seat, RequestNumber(number), "add", "");
        quick.until_reply(RequestNumber(number));
    }
    let counter = quick.until(|heard| match heard {
        Heard::Patch { body, .. } => Some(body.clone()),
        _ => None,
    });
    assert!(!counter.is_empty());
    // All that waited arrives, and in the end its copy is up to date.
    let last = number + 1;
    slow.request(room, RequestNumber(last), "add", "");
    assert_eq!(slow.until_reply(RequestNumber(last)), number.to_string());
}

/// Parts of handshake messages, to which the library refers when it is asked for the alert.
#[test]
fn broken_handshake_messages_end_their_connection_and_nothing_else() {
    let running = secure(&[("shards", "1")]);
    let full_record = [&[0x16, 3, 1, 0x40, 0][..], &[0x61; 16384]].concat();
    for bytes in [
        &[0x16, 3, 1, 0, 4, 1, 0xFF, 0xFF, 0xFF][..],
        &[0x16, 3, 1, 0, 4, 1, 1, 0, 0],
        &[0x16, 3, 1, 0, 4, 1, 0, 0, 8, 0x16, 3, 0, 0, 0],
        &full_record,
    ] {
        for piece in [bytes.len(), 1] {
            let mut stream = TcpStream::connect(running.local_addr()).unwrap();
            for piece in bytes.chunks(piece.max(bytes.len() / 50)) {
                // The node may have closed it by now.
                let _ = stream.write_all(piece);
            }
            let _ = stream.shutdown(Shutdown::Write);
            // An alert, or nothing, and then the end.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    let mut client = Client::native(running.local_addr());
    client.say(&common::encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 9 })));
    assert_eq!(client.next(), Heard::Pong { nonce: 9 });
    running.stopper().stop();
    running.wait().unwrap();
}

#[test]
fn no_handshake_fails_while_the_certificate_is_replaced() {
    const HANDSHAKES: usize = 50;
    let folder = Folder::new("reload-under-load");
    let signed: Vec<_> = (0..4).map(|_| SelfSigned::new(&["localhost"]).unwrap()).collect();
    folder.put(&signed[0]);
    let running = folder.start(&[("shards", "2")]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    for signed in &signed {
        roots.add(signed.certificate().to_vec().into()).unwrap();
    }
    let mut config = trusting(signed[0].certificate(), rustls::ALL_VERSIONS);
    let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::clone(config.crypto_provider()),
    );
    config.dangerous().set_certificate_verifier(verifier.build().unwrap());
    // Each handshake is a full one, with the certificate of the moment.
    config.resumption = rustls::client::Resumption::disabled();
    let (config, address) = (Arc::new(config), running.local_addr());
    std::thread::scope(|scope| {
        let visitors: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..HANDSHAKES {
                        let mut client = connect(address, &config);
                        client.write_all(GET).unwrap();
                        let mut response = String::new();
                        client.read_to_string(&mut response).unwrap();
                        assert!(response.ends_with("<p>hello"), "{response}");
                    }
                })
            })
            .collect();
        for signed in signed[1..].iter().chain(&signed) {
            folder.put(signed);
            until(&running, |running| {
                running.tls_certificate().as_deref() == Some(signed.certificate())
            });
        }
        visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
    });
    // Shards publish their counters at the end of a turn, which is after the last response.
    until(&running, |running| running.stats().total().tls_handshakes == 4 * HANDSHAKES as u64);
    assert_eq!(running.stats().total().tls_failed, 0);
}

/// A client that asks for a new handshake within TLS 1.2.
struct Renegotiator {
    socket: TcpStream,
    sends: (u64, Box<dyn rustls::crypto::cipher::MessageEncrypter>),
    receives: (u64, Box<dyn rustls::crypto::cipher::MessageDecrypter>),
}

impl Renegotiator {
    fn new(running: &Running) -> Self {
        use rustls::crypto::ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
        let suite = TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites = vec![suite];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(running.tls_certificate().unwrap().into()).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS12])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.enable_secret_extraction = true;
        let mut client = connect(running.local_addr(), &Arc::new(config));
        client.conn.complete_io(&mut client.sock).unwrap();
        let rustls::SupportedCipherSuite::Tls12(suite) = suite else { unreachable!() };
        let (conn, socket) = client.into_parts();
        let secrets = conn.dangerous_extract_secrets().unwrap();
        let keys = |secrets| match secrets {
            rustls::ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
            _ => unreachable!("the only suite that was offered"),
        };
        let (key, iv) = keys(secrets.tx.1);
        let encrypter = suite.aead_alg.encrypter(key, iv.as_ref(), &[]);
        let (key, iv) = keys(secrets.rx.1);
        let decrypter = suite.aead_alg.decrypter(key, iv.as_ref());
        let (sends, receives) = ((secrets.tx.0, encrypter), (secrets.rx.0, decrypter));
        Self { socket, sends, receives }
    }

    fn say(&mut self, typ: rustls::ContentType, payload: &[u8]) {
        use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
        let version = rustls::ProtocolVersion::TLSv1_2;
        let payload = OutboundChunks::Single(payload);
        let message = OutboundPlainMessage { typ, version, payload };
        let sealed = self.sends.1.encrypt(message, self.sends.0).unwrap();
        self.sends.0 += 1;
        // The node may have closed the connection.
        let _ = self.socket.write_all(&sealed.encode());
    }

    /// The type of the next record, and what is in it; `None` at the end.
    fn hear(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.socket.read_exact(&mut header).ok()?;
        let mut sealed = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        self.socket.read_exact(&mut sealed).ok()?;
        let message = rustls::crypto::cipher::InboundOpaqueMessage::new(
            header[0].into(),
            rustls::ProtocolVersion::TLSv1_2,
            &mut sealed,
        );
        let plain = self.receives.1.decrypt(message, self.receives.0).unwrap();
        self.receives.0 += 1;
        Some((header[0], plain.payload.to_vec()))
    }
}

#[test]
fn renegotiation_is_refused_with_an_alert_and_asking_again_ends_the_connection() {
    const ALERT: u8 = 21;
    const NO_RENEGOTIATION: [u8; 2] = [1, 100];
    let running = secure(&[("shards", "1")]);
    let mut client = Renegotiator::new(&running);
    let mut hello = Vec::new();
    common::tls::client(&trusting_node(&running)).write_tls(&mut hello).unwrap();
    // Without the header of its record.
    let hello = &hello[5..];
    client.say(rustls::ContentType::Handshake, hello);
    assert_eq!(client.hear(), Some((ALERT, NO_RENEGOTIATION.to_vec())));
    // The connection is as good as before.
    client.say(rustls::ContentType::ApplicationData, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let (_, answer) = client.hear().unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{answer:?}");
    client.say(rustls::ContentType::Handshake, hello);
    assert_eq!(client.hear(), None, "it was told already");
    until(&running, |running| running.stats().total().connections == 0);
}

#[test]
fn the_state_of_tls_counts_as_memory_of_its_address() {
    let running = secure(&[
        ("limits.address.trusted", ""),
        ("shards", "1"),
        // For 16 connections, of 4 KiB each.
        ("limits.memory.per_address", "65536"),
    ]);
    let config = trusting_node(&running);
    let mut held = Vec::new();
    for count in 1..=17 {
        let mut client = connect(running.local_addr(), &config);
        let handshake = client.conn.complete_io(&mut client.sock);
        held.push(client);
        if count <= 16 {
            handshake.unwrap();
            until(&running, |running| running.stats().total().tls_handshakes == count);
            assert_eq!(running.stats().total().closed_over_budget, 0);
        }
    }
    until(&running, |running| running.stats().total().closed_over_budget == 1);
}
