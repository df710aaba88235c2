//! A scripted node of one connection, over a real socket.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::VecDeque;
use std::time::Duration;

use playfield_client::{Connect, Connection, Error, connect};
use playfield_room::{
    Context, Handle, Message, Player, PlayerId, Result as RoomResult, Room, room,
};
use playfield_state::{State, Tracker, Tracking};
use playfield_wire::schema::fingerprint;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Node, Said, joined_as, other, welcome};

/// The room that a scripted node has, as its type `table`.
#[derive(State, Default)]
pub(crate) struct Counted {
    pub(crate) n: u32,
}

#[derive(Message)]
#[reply(u32)]
struct Add(u32);

#[derive(Message)]
struct Nudge(String);

#[derive(Message)]
struct Dealt(u32);

#[derive(Message)]
struct Told(String);

#[room(messages(Add, Nudge), events(Dealt, Told))]
impl Room for Counted {}

impl Handle<Add> for Counted {
    fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> RoomResult<u32> {
        self.n += add.0;
        Ok(self.n)
    }
}

impl Handle<Nudge> for Counted {
    fn handle(&mut self, _: Nudge, _: &Player, _: &mut Context<Self>) -> RoomResult<()> {
        Ok(())
    }
}

/// A snapshot of the state `{"n": n}`.
pub(crate) fn counted(n: u32) -> Vec<u8> {
    let mut body = Vec::new();
    Tracker::new(&mut Counted { n }, Tracking::On).snapshot(PlayerId(4), Format::Packed, &mut body);
    body
}

/// A patch after which the state is `{"n": n}`.
pub(crate) fn counts(n: u32) -> Vec<u8> {
    let (mut state, mut body) = (Counted { n: !n }, Vec::new());
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    state.n = n;
    tracker.sync(&mut state);
    assert!(tracker.patch(PlayerId(4), 1, Format::Packed, &mut body));
    body
}

/// A patch that no copy can apply.
pub(crate) const BAD_PATCH: &[u8] = &[0x08];

/// The answer to a request to enter room 1, in epoch 3.
pub(crate) fn joined(request: RequestNumber) -> ServerMessage<'static> {
    joined_as(request, fingerprint(&playfield_room::schema::<Counted>()))
}

pub(crate) struct Server {
    stream: TcpStream,
    node: Node,
    heard: VecDeque<Said>,
}

impl Server {
    /// A welcomed connection over native framing, and the node's end of it.
    pub(crate) async fn welcomed() -> (Connection, Self) {
        Self::counting(|connect| connect).await
    }

    /// The same with these settings. The client knows the schema of the node's rooms.
    pub(crate) async fn counting(set: impl FnOnce(Connect) -> Connect) -> (Connection, Self) {
        let set = |connect: Connect| set(connect.built_with::<Counted>("table"));
        let (connection, mut server) = Self::welcomed_as(false, set).await;
        server.tell_schema().await;
        (connection, server)
    }

    /// Sends the schema of [`Counted`], which the client has named in its hello, and hears that the
    /// client has read it.
    pub(crate) async fn tell_schema(&mut self) {
        let schema = playfield_room::schema::<Counted>().to_json();
        self.schema(None, schema.as_bytes()).await;
        assert_eq!(self.hear().await, Said::Other("Ack { received: 1 }".to_owned()));
    }

    pub(crate) async fn welcomed_as(
        web_socket: bool,
        set: impl FnOnce(Connect) -> Connect,
    ) -> (Connection, Self) {
        let (connection, server) = Self::met(web_socket, set, async |server| {
            server.say(&welcome(0, 1000)).await;
        })
        .await;
        (connection.unwrap(), server)
    }

    /// Connects to a node of one connection, which reads the hello and then does this.
    pub(crate) async fn met(
        web_socket: bool,
        set: impl FnOnce(Connect) -> Connect,
        greet: impl AsyncFnOnce(&mut Self),
    ) -> (Result<Connection, Error>, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if web_socket { "ws" } else { "tcp" };
        let connecting = connect(&format!("{scheme}://{address}")).name("Ann");
        let connecting = set(connecting.reconnect_timeout(Duration::ZERO));
        let meet = async {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut server = Self { stream, node: Node::new(web_socket), heard: VecDeque::new() };
            assert_eq!(server.hear().await, Said::Hello { name: "Ann".to_owned() });
            greet(&mut server).await;
            server
        };
        tokio::join!(connecting, meet)
    }

    /// The next connection to a node, and its hello.
    pub(crate) async fn accept(listener: &TcpListener) -> (Self, Said) {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut server = Self { stream, node: Node::new(false), heard: VecDeque::new() };
        let hello = server.hear().await;
        (server, hello)
    }

    pub(crate) async fn say(&mut self, message: &ServerMessage<'_>) {
        let bytes = self.node.write(message);
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// Sends a snapshot of room 1 in epoch 3.
    pub(crate) async fn snapshot(&mut self, version: u64, body: &[u8]) {
        self.say(&ServerMessage::Snapshot(server::Snapshot {
            room: RoomNumber(1),
            epoch: 3,
            version,
            body: body.into(),
        }))
        .await;
    }

    /// Sends a patch of room 1.
    pub(crate) async fn patch(&mut self, base: u64, version: u64, body: &[u8]) {
        self.say(&ServerMessage::Patch(server::Patch {
            room: RoomNumber(1),
            base,
            version,
            body: body.into(),
        }))
        .await;
    }

    /// Sends a digest of room 1.
    pub(crate) async fn check(&mut self, version: u64, digest: u64) {
        self.say(&ServerMessage::Check(server::Check { room: RoomNumber(1), version, digest }))
            .await;
    }

    /// Sends the schema of the room type `table`.
    pub(crate) async fn schema(&mut self, request: Option<RequestNumber>, schema: &[u8]) {
        let room_type = "table".into();
        self.say(&ServerMessage::Schema(server::Schema {
            request,
            room_type,
            schema: schema.into(),
        }))
        .await;
    }

    /// Refuses a request.
    pub(crate) async fn error(
        &mut self,
        request: Option<RequestNumber>,
        code: ErrorCode,
        text: &str,
    ) {
        let (room, text) = (None, text.into());
        self.say(&ServerMessage::Error(server::Error {
            request,
            room,
            code,
            text,
            retry_after_ms: None,
        }))
        .await;
    }

    /// Refuses a request as one too many, until `retry_after_ms` have passed.
    pub(crate) async fn refuse_for(&mut self, request: RequestNumber, retry_after_ms: u32) {
        let (room, code, text) = (None, ErrorCode::Limit, "too many".into());
        let (request, retry_after_ms) = (Some(request), Some(retry_after_ms));
        self.say(&ServerMessage::Error(server::Error {
            request,
            room,
            code,
            text,
            retry_after_ms,
        }))
        .await;
    }

    /// Answers the client's next ping, after all that it sent before.
    pub(crate) async fn pong(&mut self) {
        loop {
            let Said::Other(said) = self.hear().await else { continue };
            if let Some(nonce) = said.strip_prefix("Ping { nonce: ") {
                let nonce = nonce.trim_end_matches(" }").parse().unwrap();
                return self.say(&ServerMessage::Pong(server::Pong { nonce, time_us: 0 })).await;
            }
        }
    }

    /// Sends bytes that may not be a message.
    pub(crate) async fn say_bytes(&mut self, body: &[u8]) {
        let bytes = self.node.frame(body);
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// Sends a WebSocket close frame.
    pub(crate) async fn close(&mut self, code: u16) {
        let mut bytes = Vec::new();
        playfield_websocket::encode_close(&mut bytes, code, "", None);
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// Returns whether the client has closed its half of the connection by now.
    pub(crate) async fn has_ended(&mut self) -> bool {
        // After a round trip over another connection, the runtime has polled this one.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        near.unwrap().write_all(b"x").await.unwrap();
        far.unwrap().0.read_exact(&mut [0]).await.unwrap();
        matches!(self.stream.try_read(&mut [0]), Ok(0))
    }

    /// Closes this half of the connection.
    pub(crate) async fn hang_up(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The token for the authenticator in the client's hello.
    pub(crate) fn token(&self) -> &[u8] {
        &self.node.token
    }

    /// Returns whether the client's hello said that it follows redirects.
    pub(crate) fn redirects(&self) -> bool {
        self.node.redirects
    }

    /// The client's next message.
    pub(crate) async fn hear(&mut self) -> Said {
        loop {
            if let Some(said) = self.heard.pop_front() {
                return said;
            }
            assert!(self.read().await, "the client has closed the connection");
        }
    }

    /// All messages of the client until it closes the connection.
    pub(crate) async fn hear_all(&mut self) -> Vec<Said> {
        while self.read().await {}
        self.heard.drain(..).collect()
    }

    async fn read(&mut self) -> bool {
        let mut bytes = [0; 1024];
        let length = self.stream.read(&mut bytes).await.unwrap();
        // A first ping, which measures the round trip, follows each welcome.
        let is_news = |said: &Said| *said != other("Ping { nonce: 1 }");
        self.heard.extend(self.node.read(&bytes[..length]).into_iter().filter(is_news));
        let answer = self.node.take_answer();
        self.stream.write_all(&answer).await.unwrap();
        length > 0
    }
}
