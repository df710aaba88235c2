//! Engines and settings that can't be used are refused by a sentence that says what to do.

use playfield_nats::testing::Server;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use crate::host::{Host, refusal, settings};

/// A server that says what it is, and answers pings.
async fn fake(info: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let _ = stream.write_all(format!("INFO {info}\r\n").as_bytes()).await;
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                if line.starts_with("PING") {
                    let _ = stream.write_all(b"PONG\r\n").await;
                }
                line.clear();
            }
        }
    });
    format!("nats://127.0.0.1:{port}")
}

#[tokio::test]
async fn a_server_that_is_too_old() {
    let debian = r#"{"server_id":"A","version":"2.9.10","headers":true,"max_payload":1048576}"#;
    let text = refusal(settings(fake(debian).await)).await;
    assert!(
        text.starts_with("this is nats-server 2.9.10, and Playfield needs 2.11 or later, because "),
        "{text}"
    );
    let small = r#"{"server_id":"A","version":"2.15.2","headers":true,"max_payload":65536}"#;
    let text = refusal(settings(fake(small).await)).await;
    assert!(text.contains("65536 bytes at most") && text.contains("max_payload"), "{text}");
}

#[tokio::test]
async fn a_place_without_a_server() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let text = refusal(settings(format!("nats://me:secret@{closed}"))).await;
    assert!(text.contains(&format!("nats://…@{closed}")), "{text}");
    assert!(text.contains("refused") && text.contains("check that nats-server runs"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_certificate_that_nothing_vouches_for() {
    // For `localhost`; it signs itself.
    const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificate.pem");
    const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/key.pem");
    let tls = ["--jetstream", "--tls", "--tlscert", CERTIFICATE, "--tlskey", KEY];
    let Some(server) = Server::start_with(&tls, "") else { return };
    // The server asks for TLS, whatever the URL says.
    for scheme in ["tls", "nats"] {
        let text = refusal(settings(format!("{scheme}://localhost:{}", server.port()))).await;
        assert!(text.contains("localhost") && text.contains("can't be trusted ("), "{text}");
        assert!(text.contains("SSL_CERT_FILE"), "{text}");
    }
}

#[tokio::test]
async fn one_of_several_servers_is_enough() {
    let Some(server) = Server::start() else { return };
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let old = fake(r#"{"server_id":"A","version":"2.9.10","max_payload":1048576}"#).await;
    for _ in 0..3 {
        let url = format!("nats://{closed},{old},{}", server.url());
        Host::connect(url).await.write("n.1", b"x", 7).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_server_without_jetstream() {
    let Some(server) = Server::start_with(&[], "") else { return };
    let text = refusal(settings(server.url())).await;
    assert!(text.contains("has no JetStream") && text.contains("--jetstream"), "{text}");
}

#[tokio::test]
async fn wrong_credentials_and_missing_permissions() {
    let config = r#"
        authorization { users: [
            { user: node, password: "p@ss" }
            { user: reader, password: r, permissions: { publish: ["$JS.API.>"] } }
        ] }"#;
    let Some(server) = Server::start_with(&["--jetstream"], config) else { return };
    let at = format!("127.0.0.1:{}", server.port());
    for user in ["", "node:wrong@", "token@"] {
        let text = refusal(settings(format!("nats://{user}{at}"))).await;
        assert!(text.contains("refused the credentials: check the user and password"), "{text}");
        assert!(!text.contains("wrong"), "{text}");
    }
    // An account that may only read can't make these records, but uses them if they are there.
    let text = refusal(settings(format!("nats://reader:r@{at}"))).await;
    assert!(text.contains("the engine refuses the record meta.format"), "{text}");
    assert!(text.contains("Permissions Violation for Publish to \"$KV.pf_test.meta"), "{text}");
    Host::connect(format!("nats://node:p%40ss@{at}")).await;
    Host::connect(format!("nats://reader:r@{at}")).await;
}

#[tokio::test]
async fn files_of_credentials_that_cannot_be_used() {
    let mut settings = settings("nats://127.0.0.1:1");
    settings.credentials = Some("/nowhere/playfield.creds".into());
    let text = refusal(settings.clone()).await;
    assert!(text.contains("/nowhere/playfield.creds can't be used: No such file"), "{text}");
    settings.credentials = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into());
    let text = refusal(settings).await;
    assert!(text.contains("Cargo.toml can't be used") && text.contains("nsc"), "{text}");
}

#[tokio::test]
async fn records_of_another_layout() {
    let Some(server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    let format = host.read("meta.format").await.unwrap();
    assert_eq!(format.value.as_deref(), Some(b"1".as_slice()));
    host.write("meta.format", b"2", format.revision).await.unwrap();
    let text = refusal(settings(server.url())).await;
    assert!(text.contains("bucket pf_test are of layout 2, and this build has layout 1"), "{text}");
}

#[tokio::test]
async fn a_bucket_that_others_made() {
    let Some(server) = Server::start() else { return };
    let client = async_nats::connect(server.url()).await.unwrap();
    let config = r#"{"name":"KV_pf_test","subjects":["$KV.pf_test.>"],"retention":"limits",
        "storage":"file","discard":"new","num_replicas":1,"max_msgs_per_subject":1,"max_bytes":-1,
        "max_msgs":-1,"max_consumers":-1,"max_age":0,"allow_direct":true,"allow_rollup_hdrs":true,
        "allow_msg_ttl":true}"#;
    let answer = client.request("$JS.API.STREAM.CREATE.KV_pf_test", config.into()).await.unwrap();
    assert!(!String::from_utf8_lossy(&answer.payload).contains("error"), "{:?}", answer.payload);
    let text = refusal(settings(server.url())).await;
    assert!(text.contains("the bucket pf_test"), "{text}");
    assert!(text.contains("allow_direct is true and must be false; change that by"), "{text}");
}

#[tokio::test]
async fn more_replicas_than_servers() {
    let Some(server) = Server::start() else { return };
    let mut settings = settings(server.url());
    settings.replicas = 3;
    let text = refusal(settings.clone()).await;
    assert!(text.contains("can't be kept by 3 servers (replicas > 1 not supported"), "{text}");
    settings.replicas = 6;
    let text = refusal(settings).await;
    assert!(text.contains("can't be kept by 6 servers: "), "{text}");
}
