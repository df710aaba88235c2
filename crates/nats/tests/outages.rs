//! Servers that stop, die and come back, and connections that are cut.

use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream as _;
use playfield_cluster::{Command, EngineError, EngineEvent, Incarnation, Record};
use playfield_nats::testing::Server;

use crate::host::{Host, key};
use crate::proxy::Proxy;

#[tokio::test]
async fn what_a_stopped_server_does_not_answer_is_unknown() {
    let Some(server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    let revision = host.write("n.1", b"one", 0).await.unwrap();

    server.stop();
    let tags: Vec<_> = (0..100).map(|_| host.begin_write("n.1", b"two", revision)).collect();
    let read = host.begin(|tag| Command::Read { key: key("n.1"), tag });
    for tag in tags {
        assert_eq!(host.written(tag).await, Err(EngineError::Unknown));
    }
    assert_eq!(host.answer(read).await, Err(EngineError::Unknown));
    server.go_on();

    // One of them takes effect after all. A read could overtake it, a write can't.
    host.write("n.2", b"x", 0).await.unwrap();
    let record = host.read("n.1").await.unwrap();
    assert_eq!(record, Record { revision: revision + 1, value: Some(b"two".to_vec()) });
    host.write("n.1", b"three", record.revision).await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_killed_and_restarted_goes_on() {
    let Some(mut server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    let mut other = Host::connect(server.url()).await;
    let incarnation = Incarnation(7);
    host.begin(|_| Command::Listen { slot: 1, incarnation });
    let revision = host.write("n.1", b"one", 0).await.unwrap();
    let secret = *host.engine.secret();

    server.kill();
    host.interrupted().await;
    assert_eq!(host.write("n.1", b"two", revision).await, Err(EngineError::Unknown));
    server.start_again();

    // Once more, when it is connected again: what was sent meanwhile is lost.
    host.interrupted().await;
    other.interrupted().await;
    other.answered().await;
    let expected = Record { revision, value: Some(b"one".to_vec()) };
    assert_eq!(host.read("n.1").await, Ok(expected), "nothing is lost, or written late");
    host.write("n.1", b"three", revision).await.unwrap();
    other.begin(|_| Command::Send { to: 1, incarnation, bytes: b"hello".to_vec() });
    let hello = host.event(|event| match event {
        EngineEvent::Delivered { bytes } => Some(bytes.clone()),
        _ => None,
    });
    assert_eq!(hello.await, b"hello", "it listens again");
    assert_eq!(Host::connect(server.url()).await.engine.secret(), &secret);
}

#[tokio::test]
async fn a_command_is_never_sent_on_another_connection() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::start(server.port()).await;
    let mut host = Host::connect(proxy.url()).await;

    // More than sockets hold, so that the write waits in this process.
    proxy.hold(true);
    let incarnation = Incarnation(1);
    for _ in 0..60 {
        host.begin(|_| Command::Send { to: 1, incarnation, bytes: vec![0; 512 << 10] });
    }
    let tag = host.begin_write("n.1", b"late", 0);
    tokio::task::yield_now().await;
    proxy.cut();
    assert_eq!(host.written(tag).await, Err(EngineError::Unknown));
    host.interrupted().await;
    proxy.hold(false);
    host.answered().await;

    // Whatever waited would come before this.
    let sequence = host.write("n.2", b"x", 0).await.unwrap();
    assert_eq!(host.read("n.1").await, Ok(Record::default()));
    assert_eq!(sequence, 3, "after the two records of the setup");
}

#[tokio::test]
async fn a_connection_that_hangs_is_given_up() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::start(server.port()).await;
    let mut host = Host::connect(proxy.url()).await;
    proxy.hold(true);
    // Nothing is asked: pings notice it.
    host.interrupted().await;
    proxy.hold(false);
    host.answered().await;
}

#[tokio::test]
async fn a_server_that_has_no_jetstream_any_more_is_left() {
    let (Some(mut server), Some(other)) = (Server::start(), Server::start_with(&[], "")) else {
        return;
    };
    let mut host = Host::connect(format!("{},{}", other.url(), server.url())).await;
    server.kill();
    host.interrupted().await;
    host.interrupted().await;
    // Nodes still reach each other, by the other server.
    let peer = async_nats::connect(other.url()).await.unwrap();
    let mut broadcasts = peer.subscribe("pf.test.all").await.unwrap();
    // The server listens when it has answered what was sent next.
    peer.request("nowhere", "".into()).await.unwrap_err();
    host.begin(|_| Command::Broadcast { bytes: b"hello".to_vec() });
    let next = poll_fn(|context| Pin::new(&mut broadcasts).poll_next(context));
    assert_eq!(next.await.unwrap().payload, "hello");

    server.start_again();
    host.answered().await;
}

#[tokio::test]
async fn a_cut_connection_is_made_again_each_time() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::start(server.port()).await;
    let mut host = Host::connect(proxy.url()).await;
    let mut revision = 0;
    for _ in 0..10 {
        proxy.cut();
        host.interrupted().await;
        host.answered().await;
        revision = host.write("n.1", b"x", revision).await.unwrap();
    }
}

#[tokio::test]
async fn an_engine_that_was_wiped_gets_the_same_secret() {
    let Some(mut server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    for number in 0..10 {
        host.write(&format!("n.{number}"), b"x", 0).await.unwrap();
    }
    server.kill();
    server.wipe();
    server.start_again();
    host.interrupted().await;
    host.answered().await;
    assert_eq!(host.read("n.1").await, Ok(Record::default()));
    let revision = host.write("n.1", b"x", 0).await.unwrap();
    assert!(revision < 10, "its sequence began anew");
    assert_eq!(Host::connect(server.url()).await.engine.secret(), host.engine.secret());
}

#[tokio::test]
async fn a_bucket_that_was_deleted_is_made_again() {
    let Some(server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    host.write("n.1", b"x", 0).await.unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    client.request("$JS.API.STREAM.DELETE.KV_pf_test", "".into()).await.unwrap();
    host.answered().await;
    host.write("n.2", b"x", 0).await.unwrap();
    assert_eq!(host.read("n.1").await, Ok(Record::default()));
    assert_eq!(Host::connect(server.url()).await.engine.secret(), host.engine.secret());
}
