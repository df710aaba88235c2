//! Compression between the client and a real node, measured by a proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use playfield_client::{Connection, Dynamic, Room as Entered, connect};
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Running, Server};
use playfield_state::{List, State};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(State, Default)]
struct Log {
    lines: List<String>,
}

#[derive(Message)]
#[reply(u64)]
struct Write {
    line: String,
}

#[room(messages(Write), sync_hz = 100)]
impl Room for Log {
    fn create(_: (), _: &mut Context<Self>) -> Result<Self> {
        let lines = (0..500).map(|number| format!("nothing happened in minute {number}")).collect();
        Ok(Self { lines })
    }
}

impl Handle<Write> for Log {
    fn handle(&mut self, Write { line }: Write, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.lines.push(line);
        Ok(self.lines.len() as u64)
    }
}

fn server(deflate: bool) -> Running {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config { listen, shards: 1, ..Config::default() };
    config.websocket.deflate = deflate;
    Server::new(config).room_type(RoomType::of::<Log>("log")).start().unwrap()
}

/// A proxy that counts bytes.
struct Way {
    address: SocketAddr,
    up: Arc<AtomicUsize>,
    down: Arc<AtomicUsize>,
    carried: JoinHandle<()>,
}

impl Way {
    /// For one connection.
    async fn to(server: &Running) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let node = server.local_addr();
        let (up, down) = (Arc::default(), Arc::default());
        let counts = (Arc::clone(&up), Arc::clone(&down));
        let carried = tokio::spawn(async move {
            let (up, down) = counts;
            let (client, _) = listener.accept().await.unwrap();
            let (from_client, to_client) = client.into_split();
            let (from_node, to_node) = TcpStream::connect(node).await.unwrap().into_split();
            tokio::join!(carry(from_client, to_node, up), carry(from_node, to_client, down));
        });
        Self { address, up, down, carried }
    }

    /// Waits until both ends have closed the connection.
    async fn closed(self) {
        self.carried.await.unwrap();
    }

    fn bytes(&self) -> (usize, usize) {
        (self.up.load(Ordering::SeqCst), self.down.load(Ordering::SeqCst))
    }
}

async fn carry(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    count: Arc<AtomicUsize>,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        count.fetch_add(length, Ordering::SeqCst);
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

async fn entered(way: &Way, scheme: &str, deflate: bool) -> (Connection, Entered<Dynamic>) {
    let url = format!("{scheme}://{}", way.address);
    let connection = connect(&url).deflate(deflate).await.unwrap();
    let room = connection.create_dynamic("log", true, None).await.unwrap();
    (connection, room)
}

#[tokio::test]
async fn long_messages_are_compressed_if_both_ends_agree() {
    let (on, off) = (server(true), server(false));
    for (server, scheme, deflate, is_compressed) in [
        (&on, "ws", true, true),
        (&on, "ws", false, false),
        (&off, "ws", true, false),
        (&off, "ws", false, false),
        (&on, "tcp", true, false),
    ] {
        let what = format!("{scheme}, offered: {deflate}");
        let way = Way::to(server).await;
        let (connection, room) = entered(&way, scheme, deflate).await;
        let lines: Vec<_> =
            (0..500).map(|number| format!("nothing happened in minute {number}")).collect();
        assert_eq!(*room.state(), json!({ "lines": lines }), "{what}");
        let (up, down) = way.bytes();
        assert_eq!(down < 8_000, is_compressed, "{what}: {down} bytes came");
        assert!(up < 1_000, "{what}: {up} bytes went");

        let line = "again and ".repeat(1_000);
        assert_eq!(room.request("Write", &json!({ "line": line })).await.unwrap(), 501, "{what}");
        while room.state().pointer("/lines/500") != Some(&json!(line)) {
            room.changed().await.unwrap();
        }
        let (up_after, down_after) = way.bytes();
        for (bytes, direction) in [(up_after - up, "went"), (down_after - down, "came")] {
            assert_eq!(bytes < 1_000, is_compressed, "{what}: {bytes} bytes {direction}");
        }
        connection.close().await;
        way.closed().await;
    }
}

#[tokio::test]
async fn typed_rooms_work_compressed() {
    let server = server(true);
    let way = Way::to(&server).await;
    let connection = connect(&format!("ws://{}", way.address)).deflate(true).await.unwrap();
    let room = connection.join_or_create::<Log>("log", &()).await.unwrap();
    assert_eq!(room.state().lines.len(), 500);
    assert!(way.bytes().1 < 8_000);
    assert_eq!(room.request(Write { line: "x".repeat(5_000) }).await.unwrap(), 501);
    while room.state().lines.len() < 501 {
        room.changed().await.unwrap();
    }
    connection.close().await;
    way.closed().await;
}
