//! A client that is back in time for its session, but too late for a room.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_client::{Connection, ConnectionEvent, Dynamic, ErrorCode, Room as Entered};
use playfield_room::{
    Context, Handle, LeaveReason, Message, Player, PlayerId, Result, Room, RoomType, room,
};
use playfield_server::{Config, Server};
use playfield_state::{Map, State};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(State, Default)]
struct Pier {
    crew: Map<PlayerId, bool>,
    total: u32,
}

#[derive(Message)]
#[reply(u32)]
struct Load {
    tons: u32,
}

#[room(messages(Load), sync_hz = 100)]
impl Room for Pier {
    type Options = ();

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.crew.insert(player.id(), true);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.crew.remove(&player.id());
    }
}

impl Handle<Load> for Pier {
    fn handle(&mut self, load: Load, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.total += load.tons;
        Ok(self.total)
    }
}

/// What a proxy passes on.
#[derive(Clone, Copy, PartialEq)]
enum Passes {
    All,
    /// Nothing to the client.
    ToNode,
    /// Connections are closed.
    Nothing,
}

/// Starts a proxy before a node.
async fn proxy(node: SocketAddr) -> (SocketAddr, watch::Sender<Passes>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (control, passes) = watch::channel(Passes::All);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            if *passes.borrow() != Passes::Nothing {
                tokio::spawn(pass(client, node, passes.clone()));
            }
        }
    });
    (address, control)
}

async fn pass(mut client: TcpStream, node: SocketAddr, passes: watch::Receiver<Passes>) {
    let Ok(mut node) = TcpStream::connect(node).await else { return };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_node, mut to_node) = node.split();
    let (mut all, mut nothing) = (passes.clone(), passes);
    let down = async {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = from_node.read(&mut bytes).await {
            all.wait_for(|passes| *passes == Passes::All).await.unwrap();
            to_client.write_all(&bytes[..read]).await.unwrap();
        }
    };
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_node) => {}
        () = down => {}
        _ = nothing.wait_for(|passes| *passes == Passes::Nothing) => {}
    }
}

async fn enter(connection: &Connection, room_type: &str, key: &str) -> Entered<Dynamic> {
    connection.join_or_create_by_key_dynamic(room_type, key, None).await.unwrap()
}

async fn connect(scheme: &str, address: SocketAddr, name: &str) -> Connection {
    playfield_client::connect(&format!("{scheme}://{address}"))
        .name(name)
        .backoff(Duration::from_millis(1), Duration::from_millis(20))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_room_that_kept_no_seat_ends_and_the_session_goes_on() {
    let mut brief = RoomType::of::<Pier>("brief");
    brief.settings.grace_ms = 20;
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    let server = Server::new(config).room_type(brief).room_type(RoomType::of::<Pier>("patient"));
    let node = server.start().unwrap();
    for scheme in ["tcp", "ws"] {
        let (address, control) = proxy(node.local_addr()).await;
        let ann = connect(scheme, address, "Ann").await;
        let mut events = ann.events();
        let (gone, kept) =
            (Arc::new(enter(&ann, "brief", scheme).await), enter(&ann, "patient", scheme).await);
        let bob = connect(scheme, node.local_addr(), "Bob").await;
        let sees = enter(&bob, "brief", scheme).await;
        assert_eq!(sees.id(), gone.id());

        // The room handles this, and the reply is lost.
        control.send_replace(Passes::ToNode);
        let handled = tokio::spawn({
            let gone = Arc::clone(&gone);
            async move { gone.request("Load", &json!({ "tons": 2 })).await }
        });
        while sees.state()["total"] != json!(2) {
            sees.changed().await.unwrap();
        }
        control.send_replace(Passes::Nothing);
        while sees.state()["crew"].as_object().unwrap().len() == 2 {
            sees.changed().await.unwrap();
        }
        // This comes too late: it waits until the client is back.
        let late = tokio::spawn({
            let gone = Arc::clone(&gone);
            async move { gone.request("Load", &json!({ "tons": 3 })).await }
        });
        control.send_replace(Passes::All);
        let loaded = kept.request("Load", &json!({ "tons": 4 })).await;
        assert_eq!(loaded.unwrap(), 4, "another room goes on");

        loop {
            match events.next().await {
                Some(ConnectionEvent::Lost { .. } | ConnectionEvent::AttemptFailed { .. }) => {}
                Some(ConnectionEvent::Resumed { lost, .. }) if lost.is_empty() => break,
                event => panic!("{event:?}"),
            }
        }
        assert_eq!(handled.await.unwrap().unwrap(), 2, "what was handled is answered");
        let error = late.await.unwrap().unwrap_err();
        assert!(error.is_left() || error.code() == Some(ErrorCode::NotJoined), "{error}");
        let error = loop {
            if let Err(error) = gone.changed().await {
                break error;
            }
        };
        assert!(error.is_left(), "{error}");
        assert_eq!(error.code(), Some(ErrorCode::ConnectionLost));
        assert_eq!(sees.state()["total"], json!(2), "what came too late was not carried out");
        ann.close().await;
        bob.close().await;
    }
    node.shutdown();
}
