//! Messages to all nodes, and to one.

use playfield_cluster::{Command, EngineEvent, Incarnation};
use playfield_nats::testing::Server;

use crate::host::Host;

const SLOT: u16 = 1023;
const INCARNATION: Incarnation = Incarnation(0xfeed);

fn send(incarnation: Incarnation, bytes: Vec<u8>) -> Command {
    Command::Send { to: SLOT, incarnation, bytes }
}

async fn delivered(host: &mut Host) -> Vec<u8> {
    host.event(|event| match event {
        EngineEvent::Delivered { bytes } => Some(bytes.clone()),
        EngineEvent::Interrupted => panic!("nothing was dropped"),
        _ => None,
    })
    .await
}

async fn received(host: &mut Host) -> Vec<u8> {
    host.event(|event| match event {
        EngineEvent::Received { bytes } => Some(bytes.clone()),
        _ => None,
    })
    .await
}

/// Makes sure that the server knows what the host listens to.
async fn settle(host: &mut Host) {
    host.read("n.0").await.unwrap();
}

#[tokio::test]
async fn messages_to_a_node_keep_their_order() {
    let Some(server) = Server::start() else { return };
    let mut from = Host::connect(server.url()).await;
    let mut to = Host::connect(server.url()).await;
    to.begin(|_| Command::Listen { slot: SLOT, incarnation: INCARNATION });
    settle(&mut to).await;
    for turn in 0..10u32 {
        for number in 0..1000u32 {
            let bytes = (turn * 1000 + number).to_le_bytes().to_vec();
            from.begin(|_| send(INCARNATION, bytes));
        }
        for number in 0..1000u32 {
            let bytes = delivered(&mut to).await;
            assert_eq!(bytes, (turn * 1000 + number).to_le_bytes());
        }
    }
    // The largest that are allowed.
    let large = vec![9; playfield_nats::MESSAGE_MAX];
    for _ in 0..3 {
        from.begin(|_| send(INCARNATION, large.clone()));
        assert_eq!(delivered(&mut to).await, large);
    }
}

#[tokio::test]
async fn messages_reach_one_incarnation_only() {
    let Some(server) = Server::start() else { return };
    let mut from = Host::connect(server.url()).await;
    let mut to = Host::connect(server.url()).await;
    to.begin(|_| Command::Listen { slot: SLOT, incarnation: Incarnation(1) });
    settle(&mut to).await;
    from.begin(|_| send(Incarnation(2), b"to another".to_vec()));
    from.begin(|_| send(Incarnation(1), b"first".to_vec()));
    assert_eq!(delivered(&mut to).await, b"first");
    // What is on the way to the incarnation before is no more delivered, either.
    from.begin(|_| send(Incarnation(1), b"to the one before".to_vec()));
    settle(&mut from).await;
    to.begin(|_| Command::Listen { slot: SLOT, incarnation: Incarnation(2) });
    settle(&mut to).await;
    from.begin(|_| send(Incarnation(1), b"to the one before".to_vec()));
    from.begin(|_| send(Incarnation(2), b"second".to_vec()));
    assert_eq!(delivered(&mut to).await, b"second");
}

#[tokio::test]
async fn a_broadcast_reaches_all_others() {
    let Some(server) = Server::start() else { return };
    let mut hosts = Vec::new();
    for _ in 0..3 {
        hosts.push(Host::connect(server.url()).await);
    }
    hosts[0].begin(|_| Command::Broadcast { bytes: b"from 0".to_vec() });
    assert_eq!(received(&mut hosts[1]).await, b"from 0");
    assert_eq!(received(&mut hosts[2]).await, b"from 0");
    hosts[1].begin(|_| Command::Broadcast { bytes: b"from 1".to_vec() });
    assert_eq!(received(&mut hosts[0]).await, b"from 1", "and not its own");
    assert_eq!(received(&mut hosts[2]).await, b"from 1");
}

#[tokio::test]
async fn a_host_that_does_not_read_is_told_that_messages_were_dropped() {
    let Some(server) = Server::start() else { return };
    let mut from = Host::connect(server.url()).await;
    let mut to = Host::connect(server.url()).await;
    to.begin(|_| Command::Listen { slot: SLOT, incarnation: INCARNATION });
    settle(&mut to).await;
    // 40 MiB, while 32 MiB may wait.
    for _ in 0..80 {
        from.begin(|_| send(INCARNATION, vec![1; 512 << 10]));
        // Its own answer comes after the message has left.
        settle(&mut from).await;
    }
    to.interrupted().await;
    // Then it goes on.
    from.begin(|_| send(INCARNATION, b"after".to_vec()));
    let last = to.event(|event| match event {
        EngineEvent::Delivered { bytes } if bytes == b"after" => Some(()),
        _ => None,
    });
    last.await;
}

#[tokio::test]
async fn messages_that_cannot_be_handed_over_are_dropped_and_reported() {
    let Some(server) = Server::start() else { return };
    let mut from = Host::connect(server.url()).await;
    // All at once, before the client can write any of them.
    for _ in 0..80 {
        from.begin(|_| send(INCARNATION, vec![1; 512 << 10]));
    }
    from.interrupted().await;
    from.write("n.1", b"after", 0).await.unwrap();
}
