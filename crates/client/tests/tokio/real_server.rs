//! Dynamic rooms of a real server, over every transport.

use std::net::SocketAddr;

use playfield_client::{Connection, ConnectionEvent, Dynamic, ErrorCode, Room as Entered, connect};
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Running, Server};
use playfield_state::{Bytes, Data, Map, PlayerId, State};
use serde_json::{Value, json};

#[derive(State, Default)]
struct Harbour {
    name: String,
    flag: Bytes,
    depth: f32,
    total: u64,
    ships: Map<PlayerId, Ship>,
}

#[derive(State, Default)]
struct Ship {
    name: String,
    #[sync(owner)]
    cargo: u64,
}

#[derive(Data, Default)]
struct Setup {
    name: String,
    flag: Bytes,
}

#[derive(Message)]
#[reply(u64)]
struct Load {
    tons: u64,
}

#[derive(Message)]
struct Horn {
    by: PlayerId,
    pitch: f64,
    log: Bytes,
}

#[room(messages(Load), events(Horn), sync_hz = 100)]
impl Room for Harbour {
    type Options = Setup;

    fn create(options: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { name: options.name, flag: options.flag, depth: 0.5, ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.ships.insert(player.id(), Ship { name: player.name().to_owned(), cargo: 0 });
        Ok(())
    }
}

impl Handle<Load> for Harbour {
    fn handle(
        &mut self,
        Load { tons }: Load,
        player: &Player,
        cx: &mut Context<Self>,
    ) -> Result<u64> {
        let ship = self.ships.get_mut(&player.id()).ok_or("no ship")?;
        ship.cargo = ship.cargo.checked_add(tons).ok_or("too much")?;
        self.total = ship.cargo;
        cx.emit(&Horn { by: player.id(), pitch: f64::INFINITY, log: Bytes(vec![0xff]) });
        Ok(ship.cargo)
    }
}

fn server() -> Running {
    server_at(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn server_at(listen: SocketAddr) -> Running {
    let config = Config { listen, shards: 1, ..Config::default() };
    Server::new(config).room_type(RoomType::of::<Harbour>("harbour")).start().unwrap()
}

async fn connected(server: &Running, scheme: &str) -> Connection {
    connect(&format!("{scheme}://{}", server.local_addr())).name("Ann").await.unwrap()
}

/// Waits until the copy has this value at a place.
async fn until(room: &Entered<Dynamic>, pointer: &str, value: Value) {
    while room.state().pointer(pointer) != Some(&value) {
        room.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_room_is_entered_used_and_left() {
    let server = server();
    for scheme in ["tcp", "ws"] {
        let connection = connected(&server, scheme).await;
        let options = json!({ "name": "Éire", "flag": "/wA=" });
        let room = connection.create_dynamic("harbour", true, Some(&options)).await.unwrap();
        let me = room.player().to_string();
        let ship = json!({ "name": "Ann", "cargo": 0 });
        let ships = json!({ me.clone(): ship });
        let seen = json!({
            "name": "Éire", "flag": "/wA=", "depth": 0.5, "total": 0, "ships": ships,
        });
        assert_eq!(*room.state(), seen);

        let reply = room.request("Load", &json!({ "tons": 7 })).await.unwrap();
        assert_eq!(reply, 7);
        until(&room, &format!("/ships/{me}/cargo"), json!(7)).await;
        let horn = room.next_event().await.unwrap();
        assert_eq!(horn.name(), "Horn");
        let heard = json!({ "by": room.player().0, "pitch": "Infinity", "log": "/w==" });
        assert_eq!(horn.value().unwrap(), heard);

        room.send("Load", &json!({ "tons": (1_u64 << 63) - 7 })).await.unwrap();
        until(&room, "/total", json!("9223372036854775808")).await;
        room.leave().await.unwrap();
        connection.close().await;
    }
    server.shutdown();
}

#[tokio::test]
async fn the_node_confirms_what_came_before_a_goodbye() {
    let server = server();
    for scheme in ["tcp", "ws"] {
        let connection = connected(&server, scheme).await;
        let room = connection.join_or_create_dynamic("harbour", None).await.unwrap();
        let mut events = connection.events();
        for tons in 0..5 {
            room.send("Load", &json!({ "tons": tons })).await.unwrap();
        }
        connection.close().await;
        let event = events.next().await;
        let Some(ConnectionEvent::Ended { unconfirmed, .. }) = event else { panic!("{event:?}") };
        assert_eq!(unconfirmed, 0);
    }
    server.shutdown();
}

#[tokio::test]
async fn a_node_that_is_restarted_gives_its_clients_a_new_session() {
    for scheme in ["tcp", "ws"] {
        let server = server();
        let address = server.local_addr();
        let connection = connected(&server, scheme).await;
        let room = connection.join_or_create_dynamic("harbour", None).await.unwrap();
        let mut events = connection.events();
        server.shutdown();
        let event = events.next().await;
        let Some(ConnectionEvent::Lost { error }) = event else { panic!("{event:?}") };
        assert_eq!(error.code(), Some(ErrorCode::ShuttingDown));
        let server = server_at(address);
        loop {
            match events.next().await {
                Some(ConnectionEvent::AttemptFailed { .. }) => {}
                Some(ConnectionEvent::NewSession { .. }) => break,
                event => panic!("{event:?}"),
            }
        }
        assert!(room.changed().await.unwrap_err().is_left());
        let room = connection.join_or_create_dynamic("harbour", None).await.unwrap();
        assert_eq!(room.request("Load", &json!({ "tons": 1 })).await.unwrap(), 1);
        connection.close().await;
        server.shutdown();
    }
}
