//! Channels over real sockets: what the program, HTTP handlers and services publish.

use crate::common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use common::{Client, Heard, PATIENCE, config, encoded};
use playfield_server::Server;
use playfield_server::channel::{Access, ChannelRule};
use playfield_server::http::Failure;
use playfield_server::service::{Frame, FrameCodec, NativeFrames, Peer, Result, Service};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Publishes what it hears.
struct Gateway;

impl Service for Gateway {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        let text = String::from_utf8_lossy(frame.body).into_owned();
        peer.publish("news:service", &text)?;
        Ok(())
    }
}

fn client(address: SocketAddr, format: Format, channel: &str) -> Client {
    let mut client = Client::websocket(address, format);
    let subscribe = ClientMessage::Subscribe(client::Subscribe {
        request: RequestNumber(1),
        channel: channel.into(),
        since: None,
        presence: false,
    });
    client.say(&encoded(format, &subscribe));
    client.until(|heard| matches!(heard, Heard::Subscribed { .. }).then_some(()));
    client
}

fn next_publication(client: &mut Client) -> (u64, String) {
    client.until(|heard| match heard {
        Heard::Publication { offset, payload } => Some((*offset, payload.clone())),
        _ => None,
    })
}

#[test]
fn the_program_handlers_and_services_publish() {
    let running = Server::new(config(&[("shards", "2")]))
        .channel(ChannelRule::new("news:*"))
        .channel(ChannelRule::new("raw").bytes())
        .channel(ChannelRule::new("chat").publish(Access::Anyone))
        .route("POST", "/publish", async |node: playfield_server::NodeHandle| {
            node.publish("news:http", &"by http".to_owned()).map_err(Failure::from)
        })
        .service(ANY_PORT.into(), |_| Gateway)
        .start()
        .unwrap();
    let address = running.local_addr();
    let node = running.handle();

    for format in Format::ALL {
        let mut ann = client(address, format, "news:program");
        node.publish("news:program", &"first".to_owned()).unwrap();
        node.publish("news:program", &"second".to_owned()).unwrap();
        let (offset, first) = next_publication(&mut ann);
        assert_eq!(first, "first");
        assert_eq!(next_publication(&mut ann), (offset + 1, "second".into()));
    }
    let mut ann = client(address, Format::Packed, "raw");
    node.publish_bytes("raw", b"\x01x").unwrap();
    assert_eq!(next_publication(&mut ann), (1, "\u{1}x".into()));
    for (channel, code) in [("raw", ErrorCode::BadPayload), ("nothing", ErrorCode::UnknownChannel)]
    {
        assert_eq!(node.publish(channel, &1_u32).unwrap_err().code(), code);
    }
    let error = node.publish("news:x", &"x".repeat(70_000)).unwrap_err();
    assert!(error.text().starts_with("limits.payload_bytes: "), "{error}");

    let mut ann = client(address, Format::Json, "news:http");
    let mut http = TcpStream::connect(address).unwrap();
    http.set_read_timeout(Some(PATIENCE)).unwrap();
    http.write_all(b"POST /publish HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut status = [0; 12];
    http.read_exact(&mut status).unwrap();
    assert!(status.starts_with(b"HTTP/1.1 20"), "{status:?}");
    assert_eq!(next_publication(&mut ann), (1, "by http".into()));

    let mut ann = client(address, Format::Msgpack, "news:service");
    let mut device = TcpStream::connect(running.service_addrs()[0]).unwrap();
    device.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut frame = Vec::new();
    NativeFrames::new().encode(&mut frame, b"by a device").unwrap();
    device.write_all(&frame).unwrap();
    assert_eq!(next_publication(&mut ann), (1, "by a device".into()));
    running.shutdown();
    assert_eq!(node.publish("news:x", &1_u32).unwrap_err().code(), ErrorCode::ShuttingDown);
}

#[test]
fn a_pattern_that_is_none_is_an_error_at_the_start() {
    let server = Server::new(config(&[])).channel(ChannelRule::new("a::b"));
    let error = server.start().err().expect("it is not a pattern").to_string();
    assert!(error.contains(r#"the pattern "a::b" has an empty segment"#), "{error}");
}
