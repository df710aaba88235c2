//! Channels and devices of a real node.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use playfield_channel::{Access, ChannelRule};
use playfield_client::{Channel, ChannelEvent, Connection, connect};
use playfield_device::Device;
use playfield_room::Target;
use playfield_server::{Config, Fleet, FleetSettings, NodeHandle, Running, Server};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(30);

/// Answers reports with themselves.
#[derive(Clone, Default)]
struct Echoes(Arc<OnceLock<NodeHandle>>);

impl Fleet for Echoes {
    fn started(&self, node: &NodeHandle) {
        self.0.get_or_init(|| node.clone());
    }

    fn report(&self, _: &Device, report: &[u8]) -> playfield_room::Result<Vec<u8>> {
        Ok(report.to_vec())
    }
}

fn node(settings: FleetSettings) -> (Running, NodeHandle) {
    let echoes = Echoes::default();
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    let kept = |count| ChannelRule::new("talk:*").history(count, PATIENCE);
    let running = Server::new(config)
        .channel(ChannelRule::new("brief").publish(Access::Anyone).history(2, PATIENCE))
        .channel(kept(100).publish(Access::Anyone).presence(Access::Anyone))
        .fleet(echoes.clone(), settings)
        .start()
        .unwrap();
    let handle = echoes.0.get().unwrap().clone();
    (running, handle)
}

/// A proxy to a node. While it is cut, it accepts no connections.
struct Line {
    address: SocketAddr,
    open: Arc<Mutex<(bool, Vec<TcpStream>)>>,
}

impl Line {
    fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(Mutex::new((true, Vec::new())));
        let line = Self { address, open: Arc::clone(&open) };
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let mut open = open.lock().unwrap();
                if !open.0 {
                    continue;
                }
                let node = TcpStream::connect(node).unwrap();
                for (from, to) in [(&client, &node), (&node, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || io::copy(&mut from, &mut to));
                }
                open.1.extend([client, node]);
            }
        });
        line
    }

    fn cut(&self) {
        let mut open = self.open.lock().unwrap();
        open.0 = false;
        for socket in open.1.drain(..) {
            // An error means that it has ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        self.open.lock().unwrap().0 = true;
    }
}

async fn connected(address: SocketAddr, name: &str) -> Connection {
    connect(&format!("ws://{address}")).name(name).await.unwrap()
}

/// The next publication, as text.
async fn said(channel: &Channel) -> String {
    loop {
        if let ChannelEvent::Publication(said) = channel.next().await.unwrap() {
            return said.payload.value().unwrap().as_str().unwrap().to_owned();
        }
    }
}

/// What the node says of the next subscription that is not the first.
async fn resubscribed(channel: &Channel) -> (bool, u64) {
    loop {
        if let ChannelEvent::Subscribed { recovered, missed, .. } = channel.next().await.unwrap() {
            return (recovered, missed);
        }
    }
}

#[tokio::test]
async fn a_subscriber_sees_members_and_history_and_recovers_after_a_cut() {
    let (running, _) = node(FleetSettings::new());
    let address = running.local_addr();
    let line = Line::to(address);
    let (ann, bob) = (connected(line.address, "ann").await, connected(address, "bob").await);
    let name = "talk:lobby";
    let talk = ann.subscribe(name).presence().await.unwrap();
    let brief = ann.subscribe("brief").await.unwrap();
    resubscribed(&talk).await;
    resubscribed(&brief).await;
    let bobs = bob.subscribe(name).await.unwrap();
    let joined = loop {
        if let ChannelEvent::Joined { member, .. } = talk.next().await.unwrap() {
            break member;
        }
    };
    assert_eq!((joined.name, talk.members().await.unwrap().count), ("bob".into(), 2));
    bob.publish(name, json!("one")).await.unwrap();
    assert_eq!(said(&talk).await, "one");

    line.cut();
    for text in ["two", "three", "four"] {
        bob.publish(name, json!(text)).await.unwrap();
        bob.publish("brief", json!(text)).await.unwrap();
    }
    line.mend();
    assert_eq!(resubscribed(&talk).await, (true, 0));
    for text in ["two", "three", "four"] {
        assert_eq!(said(&talk).await, text);
    }
    // This history keeps two.
    assert_eq!(resubscribed(&brief).await, (false, 1));
    assert_eq!((said(&brief).await, said(&brief).await), ("three".into(), "four".into()));

    let history = bob.history(name, None, 2).await.unwrap();
    assert_eq!(history.publications.len(), 2);
    assert_eq!(history.publications[0].payload.value().unwrap(), "one");
    bobs.unsubscribe();
    loop {
        if let ChannelEvent::Left { member, .. } = talk.next().await.unwrap() {
            assert_eq!(member.name, "bob");
            break;
        }
    }
    running.shutdown();
}

#[tokio::test]
async fn devices_are_commanded_one_and_by_tag_also_after_a_cut() {
    let (running, handle) = node(FleetSettings::new());
    let line = Line::to(running.local_addr());
    let (one, two) = (connected(line.address, "").await, connected(running.local_addr(), "").await);
    let first = one.register("d1", &[("model", "x2")], &["east"]).await.unwrap();
    let second = two.register("d2", &[], &["east"]).await.unwrap();
    assert!(!first.bytes() && !second.bytes());
    assert_eq!(first.report(json!({ "c": 1 })).await.unwrap().value().unwrap()["c"], 1);

    line.cut();
    assert_eq!(handle.devices().push(Target::tag("east"), &7_u32), Ok(2));
    line.mend();
    for device in [&first, &second] {
        let command = device.next_command().await.unwrap();
        assert_eq!((command.payload().value().unwrap(), command.wants_answer()), (json!(7), false));
    }
    let asked = handle.devices().request::<u32>("d1", &8_u32, PATIENCE);
    let command = first.next_command().await.unwrap();
    assert!(command.wants_answer());
    command.answer(json!(9)).await.unwrap();
    assert_eq!(asked.await, Ok(9));
    running.shutdown();
}

#[tokio::test]
async fn the_payloads_of_a_fleet_of_bytes_are_bytes() {
    let (running, handle) = node(FleetSettings::new().bytes());
    let raw = vec![0, 255, b'"', 7];
    let connection = connected(running.local_addr(), "").await;
    let device = connection.register("d1", &[], &[]).await.unwrap();
    assert!(device.bytes());
    let reply = device.report(raw.clone()).await.unwrap();
    assert_eq!((reply.bytes(), reply == raw.clone().into()), (&raw[..], true));
    let asked = handle.devices().request_bytes("d1", &raw, PATIENCE);
    let command = device.next_command().await.unwrap();
    assert_eq!(command.payload().bytes(), raw);
    command.answer(vec![1, 2]).await.unwrap();
    assert_eq!(asked.await, Ok(vec![1, 2]));
    running.shutdown();
}
