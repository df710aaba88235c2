//! Messages of the wrong type, to a real node.

use playfield_client::{ErrorCode, connect};
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::channel::{Access, ChannelRule};
use playfield_server::device::Device;
use playfield_server::{Config, Fleet, FleetSettings, Running, Server};
use playfield_state::State;
use serde_json::{Value, json};

#[derive(State, Default)]
struct Harbour {
    total: u64,
}

#[derive(Message)]
#[reply(u64)]
struct Load {
    tons: u64,
}

#[room(messages(Load))]
impl Room for Harbour {}

impl Handle<Load> for Harbour {
    fn handle(&mut self, load: Load, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.total += load.tons;
        Ok(self.total)
    }
}

/// Answers reports with themselves.
struct Echoes;

impl Fleet for Echoes {
    fn report(&self, _: &Device, report: &[u8]) -> Result<Vec<u8>> {
        Ok(report.to_vec())
    }
}

fn node() -> Running {
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 1, ..Config::default() };
    Server::new(config)
        .room_type(RoomType::of::<Harbour>("harbour"))
        .channel(ChannelRule::new("talk").publish(Access::Anyone))
        .fleet(Echoes, FleetSettings::new())
        .start()
        .unwrap()
}

/// A value that no parser of the node accepts.
fn deep() -> Value {
    (0..200).fold(Value::Null, |value, _| json!([value]))
}

#[tokio::test]
async fn a_wrong_message_to_a_dynamic_room_is_refused_alone() {
    let node = node();
    for scheme in ["tcp", "ws"] {
        let connection = connect(&format!("{scheme}://{}", node.local_addr())).await.unwrap();
        let room = connection.create_dynamic("harbour", true, None).await.unwrap();
        for (name, message) in [
            ("Load", json!({ "tons": -1 })),
            ("Load", json!({ "tons": deep() })),
            ("Load", deep()),
            ("Sink", Value::Null),
        ] {
            for error in [
                room.request(name, &message).await.unwrap_err(),
                room.send(name, &message).await.unwrap_err(),
            ] {
                assert!(error.to_string().starts_with("the message can't be read"), "{error}");
            }
        }
        assert_eq!(room.request("Load", &json!({ "tons": 1 })).await.unwrap(), 1);
        connection.close().await;
    }
    node.shutdown();
}

#[tokio::test]
async fn a_payload_nested_too_deep_is_refused_alone() {
    let node = node();
    let connection = connect(&format!("tcp://{}", node.local_addr())).await.unwrap();
    let device = connection.register("d1", &[], &[]).await.unwrap();
    for error in [
        connection.publish("talk", &deep()).await.unwrap_err(),
        device.report(&deep()).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), Some(ErrorCode::BadPayload), "{error}");
    }
    connection.publish("talk", json!("shallow")).await.unwrap();
    assert_eq!(device.report(json!(1)).await.unwrap().value().unwrap(), 1);
    connection.close().await;
    node.shutdown();
}
