//! Connections that never live long: what is sent at once takes many of them, and all of it arrives.

use std::time::Duration;

use playfield_client::ConnectionEvent;
use serde_json::json;
use tokio::task::JoinSet;

use super::proxy::{self, Cuts};
use super::{Heard, connected, start};

/// When so many bytes have passed in a direction, handshake included, a connection is cut.
const BYTES_MAX: usize = 3_000;

/// How many messages wait to be sent at once: more than one connection can carry.
const MESSAGES: usize = 1_000;

#[tokio::test]
async fn connections_that_carry_little_make_progress_in_both_directions() {
    let (node, root) = start();
    let mut players = JoinSet::new();
    for scheme in ["tls", "wss"] {
        let cuts = Cuts::new(usize::MAX);
        let address = node.local_addr();
        let proxy = proxy::start_with(address, 1, cuts, |_| BYTES_MAX).await;
        let url = format!("{scheme}://localhost:{}", proxy.port());
        let root = root.clone();
        players.spawn(async move { play(&url, scheme, &root).await });
    }
    let players = tokio::time::timeout(Duration::from_secs(60), players.join_all());
    players.await.expect("there is progress");
    node.shutdown();
}

async fn play(url: &str, name: &str, root: &[u8]) {
    let connection = connected(url, name, root).await;
    let mut events = connection.events();
    let room = connection.join_or_create_by_key_dynamic("ledger", name, None).await.unwrap();
    let sends = (1..=MESSAGES).map(|number| {
        let room = &room;
        async move { room.send("Tell", &json!({ "number": number })).await.unwrap() }
    });
    for send in sends {
        send.await;
    }
    Heard::default().until(&room, MESSAGES).await;
    while room.state()["total"] != json!(MESSAGES) {
        room.changed().await.unwrap();
    }
    assert_eq!(room.state()["faults"], json!(0), "{name}");
    connection.close().await;
    let mut resumed = 0;
    while let Some(event) = events.next().await {
        if let ConnectionEvent::Resumed { lost, .. } = event {
            assert!(lost.is_empty(), "{name}: {lost:?}");
            resumed += 1;
        }
    }
    println!("{name}: {resumed} connections");
    assert!(resumed > 3, "{name}: {resumed}");
}
