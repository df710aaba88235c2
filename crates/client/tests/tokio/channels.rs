//! Channels and a fleet of a real node, and devices of a scripted one.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_client::{
    Channel, ChannelEvent, Connect, Connection, ConnectionEvent, Device, DeviceEvent, ErrorCode,
    Payload, Publication, QueueLimits, connect,
};
use playfield_server::channel::{Access, ChannelRule};
use playfield_server::{Config, Fleet, FleetSettings, NodeHandle, Running, Server};
use playfield_wire::RequestNumber;
use playfield_wire::server::{self, ServerMessage};
use serde_json::json;

use crate::server::Server as Script;
use crate::support::Said;

fn node() -> Running {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let hour = Duration::from_secs(3600);
    Server::new(Config { listen, shards: 2, ..Config::default() })
        .channel(
            ChannelRule::new("chat:*")
                .publish(Access::Anyone)
                .presence(Access::Anyone)
                .history(3, hour),
        )
        .channel(ChannelRule::new("raw").publish(Access::Anyone).bytes().history(3, hour))
        .channel(ChannelRule::new("staff").subscribe(Access::Nobody))
        .start()
        .unwrap()
}

async fn enter(node: &Running, scheme: &str, name: &str) -> Connection {
    let url = format!("{scheme}://{}", node.local_addr());
    connect(&url).name(name).await.unwrap()
}

async fn published(channel: &Channel) -> Publication {
    loop {
        match channel.next().await {
            Some(ChannelEvent::Publication(publication)) => return publication,
            Some(_) => {}
            None => panic!("{} has ended", channel.name()),
        }
    }
}

#[tokio::test]
async fn a_publication_reaches_all_subscribers() {
    let node = node();
    let mut connections = Vec::new();
    let mut channels = Vec::new();
    for scheme in ["tcp", "ws", "tcp", "ws"] {
        let connection = enter(&node, scheme, "Ann").await;
        channels.push((
            connection.subscribe("chat:lobby").await.unwrap(),
            connection.subscribe("raw").await.unwrap(),
        ));
        connections.push(connection);
    }
    for (number, connection) in (1..).zip(&connections) {
        let said = json!({ "text": "hi", "number": number });
        assert_eq!(connection.publish("chat:lobby", &said).await.unwrap(), number);
        assert_eq!(connection.publish("raw", vec![0xff, 0]).await.unwrap(), number);
        for (chat, raw) in &channels {
            let publication = published(chat).await;
            assert_eq!((publication.offset, &publication.user), (number, &None));
            assert_eq!(publication.payload.value().unwrap(), said);
            assert_eq!(published(raw).await.payload, Payload::from(vec![0xff, 0]));
            assert_eq!(chat.position().unwrap().offset, number);
        }
        let history = connection.history("chat:lobby", None, 1).await.unwrap();
        assert_eq!((history.last.offset, history.publications.len()), (number, 1));
        assert!(!history.bytes);
        let history = connection.history("raw", None, 0).await.unwrap();
        assert!(history.bytes);
        assert_eq!(history.publications.last().unwrap().payload.bytes(), [0xff, 0]);
    }
    connections[0].publish_unconfirmed("chat:lobby", Payload::of(&7_u32)).await.unwrap();
    assert_eq!(published(&channels[1].0).await.payload.decode::<u32>().unwrap(), 7);
    node.shutdown();
}

#[tokio::test]
async fn members_come_and_go_and_a_dropped_handle_unsubscribes() {
    let node = node();
    let ann = enter(&node, "tcp", "Ann").await;
    let bob = enter(&node, "ws", "Bob").await;
    let chat = ann.subscribe("chat:lobby").presence().await.unwrap();
    assert!(matches!(chat.next().await, Some(ChannelEvent::Subscribed { members: 1, .. })));
    let other = bob.subscribe("chat:lobby").await.unwrap();
    let Some(ChannelEvent::Joined { sequence, member }) = chat.next().await else { panic!() };
    assert_eq!(member.name, "Bob");
    let members = chat.members().await.unwrap();
    assert_eq!((members.count, members.sequence, members.members.len()), (2, sequence, 2));
    assert!(bob.subscribe("chat:lobby").await.is_err(), "one subscription at a time");
    drop(other);
    let Some(ChannelEvent::Left { member, .. }) = chat.next().await else { panic!() };
    assert_eq!(member.name, "Bob");
    // The end of the handle comes before what follows it.
    let again = bob.subscribe("chat:lobby").await.unwrap();
    drop(again);
    bob.subscribe("chat:lobby").await.unwrap().unsubscribe();
    node.shutdown();
}

#[tokio::test]
async fn a_subscription_since_a_position_has_what_followed_and_says_what_it_has_not() {
    let node = node();
    let ann = enter(&node, "tcp", "Ann").await;
    let chat = ann.subscribe("chat:lobby").await.unwrap();
    chat.publish(json!(1)).await.unwrap();
    published(&chat).await;
    let position = chat.position().unwrap();
    drop(chat);
    for number in 2..=4 {
        ann.publish("chat:lobby", json!(number)).await.unwrap();
    }
    let chat = ann.subscribe("chat:lobby").since(position).await.unwrap();
    let event = chat.next().await;
    assert!(
        matches!(event, Some(ChannelEvent::Subscribed { recovered: true, missed: 0, .. })),
        "{event:?}"
    );
    for number in 2..=4 {
        assert_eq!(published(&chat).await.payload.value().unwrap(), number);
    }
    drop(chat);
    ann.publish("chat:lobby", json!(5)).await.unwrap();
    let chat = ann.subscribe("chat:lobby").since(position).await.unwrap();
    let event = chat.next().await;
    assert!(
        matches!(event, Some(ChannelEvent::Subscribed { recovered: false, missed: 1, .. })),
        "{event:?}"
    );
    assert_eq!(published(&chat).await.offset, 3);
    node.shutdown();
}

#[tokio::test]
async fn refusals_are_errors() {
    let node = node();
    let ann = enter(&node, "tcp", "Ann").await;
    let code = |error: playfield_client::Error| error.code();
    assert_eq!(code(ann.subscribe("staff").await.unwrap_err()), Some(ErrorCode::Forbidden));
    let unknown = Some(ErrorCode::UnknownChannel);
    assert_eq!(code(ann.subscribe("nowhere").await.unwrap_err()), unknown);
    assert_eq!(code(ann.publish("nowhere", json!(1)).await.unwrap_err()), unknown);
    let chat = ann.subscribe("chat:lobby").await.unwrap();
    ann.close().await;
    assert!(matches!(chat.next().await, Some(ChannelEvent::Subscribed { .. })));
    assert!(chat.next().await.is_none());
    assert!(chat.publish(json!(1)).await.unwrap_err().is_closed());
    node.shutdown();
}

/// Answers reports with themselves.
#[derive(Clone, Default)]
struct Echoes(Arc<OnceLock<NodeHandle>>);

impl Fleet for Echoes {
    fn started(&self, node: &NodeHandle) {
        self.0.get_or_init(|| node.clone());
    }

    fn report(
        &self,
        _: &playfield_server::device::Device,
        report: &[u8],
    ) -> playfield_room::Result<Vec<u8>> {
        Ok(report.to_vec())
    }
}

#[tokio::test]
async fn the_payloads_of_a_fleet_of_bytes_are_bytes() {
    let echoes = Echoes::default();
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    let settings = FleetSettings::new().bytes();
    let running = Server::new(config).fleet(echoes.clone(), settings).start().unwrap();
    let handle = echoes.0.get().unwrap().clone();
    let raw = vec![0, 255, b'"', 7];
    let connection = enter(&running, "ws", "").await;
    let device = connection.register("d1", &[], &[]).await.unwrap();
    assert!(device.bytes());
    let reply = device.report(raw.clone()).await.unwrap();
    assert_eq!((reply.bytes(), reply == raw.clone().into()), (&raw[..], true));
    let asked = handle.devices().request_bytes("d1", &raw, Duration::from_secs(30));
    let command = device.next_command().await.unwrap();
    assert_eq!(command.payload().bytes(), raw);
    command.answer(vec![1, 2]).await.unwrap();
    assert_eq!(asked.await, Ok(vec![1, 2]));
    running.shutdown();
}

/// The messages of a client, but for pings.
async fn hear(script: &mut Script) -> String {
    loop {
        if let Said::Other(said) = script.hear().await
            && !said.starts_with("Ping")
            && !said.starts_with("Ack")
        {
            return said;
        }
    }
}

/// The scripted node registers this connection as a device.
async fn registered(connection: &Connection, mut script: Script) -> (Device, Script) {
    let node = async {
        let said = hear(&mut script).await;
        assert!(said.starts_with("Register { request: 1, device: \"d1\""), "{said}");
        script
            .say(&ServerMessage::Registered(server::Registered {
                request: RequestNumber(1),
                is_new: true,
                bytes: false,
            }))
            .await;
        script
    };
    let (device, script) = tokio::join!(connection.register("d1", &[], &["north"]), node);
    (device.unwrap(), script)
}

#[tokio::test]
async fn commands_that_nobody_takes_out_are_dropped_and_counted() {
    let set = |connect: Connect| {
        connect.queue_limits(QueueLimits { events_max: 2, ..Default::default() })
    };
    let (connection, script) = Script::welcomed_as(false, set).await;
    let (device, mut script) = registered(&connection, script).await;
    for command in [None, Some(5), None, None] {
        script
            .say(&ServerMessage::Command(server::Command { command, payload: b"[1]".into() }))
            .await;
    }
    let said = hear(&mut script).await;
    assert!(said.starts_with("Answer { command: 5, error: Some(\"the device has not"), "{said}");
    let event = device.next().await.unwrap();
    assert!(matches!(event, DeviceEvent::Missed { commands: 2 }), "{event:?}");
    for _ in 0..2 {
        let event = device.next().await.unwrap();
        assert!(matches!(event, DeviceEvent::Command(_)), "{event:?}");
    }
}

#[tokio::test]
async fn few_publications_and_commands_are_dropped_if_they_are_long() {
    let text = format!("\"{}\"", "x".repeat(98));
    // Each counts for its payload of 100 bytes, and for 24.
    for (bytes_max, missed) in [(3 * 124, 0), (3 * 124 - 1, 1), (0, 2)] {
        let set = |connect: Connect| {
            connect.queue_limits(QueueLimits {
                event_bytes_max: 0,
                queue_bytes_max: bytes_max,
                ..Default::default()
            })
        };
        let (connection, script) = Script::welcomed_as(false, set).await;
        let (device, mut script) = registered(&connection, script).await;
        let node = async {
            let said = hear(&mut script).await;
            assert!(said.starts_with("Subscribe { request: 2"), "{said}");
            script
                .say(&ServerMessage::Subscribed(server::Subscribed {
                    request: RequestNumber(2),
                    channel: 1,
                    epoch: 7,
                    offset: 0,
                    recovered: true,
                    members: 1,
                    ..server::Subscribed::default()
                }))
                .await;
        };
        let (channel, ()) = tokio::join!(connection.subscribe("chat"), node);
        let channel = channel.unwrap();
        assert!(matches!(channel.next().await, Some(ChannelEvent::Subscribed { .. })));
        for offset in 1..=3 {
            let payload = text.as_bytes();
            script
                .say(&ServerMessage::Publication(server::Publication {
                    channel: 1,
                    offset,
                    user: None,
                    payload: payload.into(),
                }))
                .await;
            script
                .say(&ServerMessage::Command(server::Command {
                    command: None,
                    payload: payload.into(),
                }))
                .await;
        }
        tokio::join!(connection.ping(), script.pong()).0.unwrap();
        if missed > 0 {
            let event = channel.next().await.unwrap();
            assert!(
                matches!(event, ChannelEvent::Missed { publications } if publications == missed),
                "{event:?}"
            );
            let event = device.next().await.unwrap();
            assert!(
                matches!(event, DeviceEvent::Missed { commands } if commands == missed),
                "{event:?}"
            );
        }
        for offset in missed + 1..=3 {
            assert_eq!(published(&channel).await.offset, offset);
            let event = device.next().await.unwrap();
            assert!(matches!(event, DeviceEvent::Command(_)), "{event:?}");
        }
    }
}

#[tokio::test]
async fn a_device_is_registered_commanded_and_heard() {
    let (connection, script) = Script::welcomed().await;
    let (device, mut script) = registered(&connection, script).await;
    assert!(device.is_new());
    for command in [None, Some(5), Some(6), Some(7)] {
        script
            .say(&ServerMessage::Command(server::Command { command, payload: b"[1]".into() }))
            .await;
    }
    let push = device.next_command().await.unwrap();
    assert_eq!((push.wants_answer(), push.payload().value().unwrap()), (false, json!([1])));
    push.answer(json!(0)).await.unwrap();
    device.next_command().await.unwrap().answer(json!("done")).await.unwrap();
    let said = hear(&mut script).await;
    assert!(said.starts_with("Answer { command: 5, error: None, payload: [34"), "{said}");
    device.next_command().await.unwrap().refuse("it is stuck").await.unwrap();
    assert!(
        hear(&mut script).await.starts_with("Answer { command: 6, error: Some(\"it is stuck\")")
    );
    drop(device.next_command().await);
    let said = hear(&mut script).await;
    assert!(said.starts_with("Answer { command: 7, error: Some(\"the device has not"), "{said}");

    let node = async {
        assert!(hear(&mut script).await.starts_with("Report { request: Some("));
        script
            .say(&ServerMessage::Reply(server::Reply {
                request: RequestNumber(2),
                payload: b"3".into(),
            }))
            .await;
        script
    };
    let (reply, mut script) = tokio::join!(device.report(json!(2)), node);
    assert_eq!(reply.unwrap().value().unwrap(), 3);
    device.report_unconfirmed(json!(4)).await.unwrap();
    assert!(hear(&mut script).await.starts_with("Report { request: None"));
    // The node refuses it, and says so.
    let mut events = connection.events();
    let (code, text) = (ErrorCode::TooFast, "limits.session.messages: 3 messages".into());
    let error = ServerMessage::Error(server::Error {
        request: None,
        room: None,
        code,
        text,
        retry_after_ms: None,
    });
    script.say(&error).await;
    let event = events.next().await.unwrap();
    let ConnectionEvent::Refused { code, text } = &event else { panic!("{event:?}") };
    assert_eq!((*code, &**text), (ErrorCode::TooFast, "limits.session.messages: 3 messages"));
    assert!(connection.is_connected(), "a refusal does not end it");
    // 64 of them may wait, so a long text is cut: here within the last letter.
    let (code, text) = (ErrorCode::TooFast, format!("{}é", "x".repeat(4095)).into());
    let error = ServerMessage::Error(server::Error {
        request: None,
        room: None,
        code,
        text,
        retry_after_ms: None,
    });
    script.say(&error).await;
    let event = events.next().await.unwrap();
    let ConnectionEvent::Refused { text, .. } = &event else { panic!("{event:?}") };
    assert_eq!(*text, "x".repeat(4095));
    drop(device);
    script
        .say(&ServerMessage::Command(server::Command { command: Some(8), payload: b"1".into() }))
        .await;
    assert!(hear(&mut script).await.starts_with("Answer { command: 8, error: Some("));
}
