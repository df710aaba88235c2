//! TLS between the client and a real node, and why it may fail.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use playfield_client::{Connect, Error, connect};
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Running, SelfSigned, Server};
use playfield_state::State;
use serde_json::json;

#[derive(State, Default)]
struct Counter {
    value: u32,
    /// Longer than a TLS record, and than what a socket takes at once.
    ballast: String,
}

#[derive(Message)]
#[reply(u32)]
struct Add {
    by: u32,
}

#[room(messages(Add), sync_hz = 100)]
impl Room for Counter {
    type Options = u32;

    fn create(ballast: u32, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { value: 0, ballast: "x".repeat(ballast as usize) })
    }
}

impl Handle<Add> for Counter {
    fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.value += add.by;
        Ok(self.value)
    }
}

fn config() -> Config {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config { listen, shards: 2, ..Config::default() };
    config.limits.session.outbox_bytes.max = 16 << 20;
    config
}

fn self_signed() -> Config {
    let mut config = config();
    config.tls.self_signed = true;
    config
}

fn start(config: Config) -> Running {
    Server::new(config).room_type(RoomType::of::<Counter>("counter")).start().unwrap()
}

/// A node with this certificate. Its files are read at the start, and gone afterwards.
fn start_with(signed: &SelfSigned, name: &str) -> Running {
    let path = |end: &str| -> PathBuf {
        std::env::temp_dir().join(format!("playfield-{}-{name}.{end}", std::process::id()))
    };
    let (cert, key) = (path("cert"), path("key"));
    std::fs::write(&cert, signed.certificate_pem()).unwrap();
    std::fs::write(&key, signed.key_pem()).unwrap();
    let files = [cert.clone(), key.clone()];
    let mut config = config();
    (config.tls.cert, config.tls.key) = (cert, key);
    let running = start(config);
    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    running
}

fn dial(running: &Running, scheme: &str) -> Connect {
    connect(&format!("{scheme}://localhost:{}", running.local_addr().port()))
}

async fn fails(connect: Connect) -> Error {
    connect.await.expect_err("the connection fails")
}

#[tokio::test]
async fn every_transport_plays_over_tls() {
    let running = start(self_signed());
    let certificate = running.tls_certificate().unwrap();
    // The last two are on the same port, without TLS.
    for scheme in ["tls", "wss", "tcp", "ws"] {
        let connection = dial(&running, scheme).root_certificate(&certificate).await.unwrap();
        let mut rooms = Vec::new();
        for ballast in [0, 3_000_000_u32] {
            let counter =
                connection.create_dynamic("counter", false, Some(&json!(ballast))).await.unwrap();
            assert_eq!(counter.state()["ballast"].as_str().map(str::len), Some(ballast as usize));
            rooms.push(counter);
        }
        for counter in &rooms {
            let reply = counter.request("Add", &json!({ "by": 2 })).await.unwrap();
            assert_eq!(reply, json!(2), "{scheme}");
        }
        connection.close().await;
    }
    assert_eq!(running.stats().total().tls_failed, 0);
}

#[tokio::test]
async fn a_certificate_that_is_not_accepted_says_why() {
    let (hour, now) = (Duration::from_secs(3600), SystemTime::now());
    let [good, stranger] = [(); 2].map(|()| SelfSigned::new(&["localhost"]).unwrap());
    let other = SelfSigned::new(&["elsewhere.example"]).unwrap();
    let expired = SelfSigned::valid(&["localhost"], now - 2 * hour, now - hour).unwrap();
    let early = SelfSigned::valid(&["localhost"], now + hour, now + 2 * hour).unwrap();
    for (name, signed, root, part, advice) in [
        ("unknown", &good, &stranger, "unknown issuer", "root_certificate"),
        ("other", &other, &other, "for another name", "connect by a name that it states"),
        ("expired", &expired, &expired, "has expired", "renew the certificate"),
        ("early", &early, &early, "is not valid yet", "set the clock"),
    ] {
        let running = start_with(signed, name);
        for scheme in ["tls", "wss"] {
            // In PEM here, and in DER above.
            let root = root.certificate_pem();
            let error = fails(dial(&running, scheme).root_certificate(root.as_bytes())).await;
            assert!(error.to_string().contains(part) && error.is_untrusted(), "{error}");
            assert!(error.to_string().starts_with("localhost:"), "{error}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}

#[tokio::test]
async fn ports_without_tls_say_so() {
    let running = start(config());
    let root = SelfSigned::new(&["localhost"]).unwrap();
    let root = root.certificate();
    let error = fails(dial(&running, "tls").root_certificate(root)).await;
    assert!(error.to_string().contains("refuses TLS") && !error.is_untrusted(), "{error}");

    // Something else answers there, or ends the connection.
    for (answer, part) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "does not answer in TLS"),
        (b"", "ended during"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let node = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut hello = [0; 5];
            socket.read_exact(&mut hello).unwrap();
            let mut rest = vec![0; usize::from(u16::from_be_bytes([hello[3], hello[4]]))];
            socket.read_exact(&mut rest).unwrap();
            socket.write_all(answer).unwrap();
        });
        let error = fails(connect(&format!("wss://127.0.0.1:{port}")).root_certificate(root)).await;
        assert!(error.to_string().contains(part), "{error}");
        node.join().unwrap();
    }
}

#[tokio::test]
async fn root_certificates_that_cannot_be_read_are_refused_before_connecting() {
    for wrong in [
        &b"nonsense"[..],
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        b"",
    ] {
        let error = fails(connect("tls://localhost:1").root_certificate(wrong)).await;
        assert!(error.to_string().contains("root_certificate"), "{error}");
    }
    // The system's certificates are not this node's.
    let running = start(self_signed());
    let error = fails(dial(&running, "tls")).await.to_string();
    assert!(error.contains("unknown issuer") || error.contains("root certificates"), "{error}");
}
