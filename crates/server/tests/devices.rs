//! The devices of a running node, by its handle.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_room::Target;
use playfield_server::device::{Cursor, Registration};
use playfield_server::service::{Command, FixedSize, Frame, Peer, Result, Service};
use playfield_server::{Config, Fleet, FleetSettings, NodeHandle, Server};
use playfield_wire::ErrorCode;

/// Each client of this service says its id in four bytes, and answers requests with themselves,
/// unless they are `silence`.
struct Meters;

impl Service for Meters {
    type Connection = ();
    type Codec = FixedSize<4>;

    fn codec(&self) -> FixedSize<4> {
        FixedSize
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    fn received(&mut self, (): &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        let registration = Registration::new(std::str::from_utf8(frame.body)?).tag("meter");
        let id = peer.id();
        peer.register(id, registration)?;
        peer.write(b"here");
        Ok(())
    }

    fn command(&mut self, (): &mut (), command: Command<'_>, peer: &mut Peer<Self>) -> Result {
        peer.write(command.payload);
        match command.id {
            Some(id) if command.payload != br#""silence""# => {
                assert!(peer.answer(id, Ok(command.payload.to_vec())));
            }
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Started(Arc<OnceLock<NodeHandle>>);

impl Fleet for Started {
    fn started(&self, node: &NodeHandle) {
        self.0.set(node.clone()).expect("it is started once");
    }
}

/// A client, once it is registered.
fn meter(address: SocketAddr, id: &str) -> TcpStream {
    let mut meter = TcpStream::connect(address).unwrap();
    meter.write_all(id.as_bytes()).unwrap();
    hears(&mut meter, "here");
    meter
}

fn hears(meter: &mut TcpStream, text: &str) {
    let mut bytes = vec![0; text.len()];
    meter.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), text);
}

#[test]
fn the_handle_finds_reaches_and_disconnects_devices() {
    let started = Started::default();
    let config = Config { shards: 2, ..Config::default() };
    let running = Server::new(config)
        .service(([127, 0, 0, 1], 0).into(), |_| Meters)
        .fleet(started.clone(), FleetSettings::new())
        .start();
    let running = running.unwrap();
    let address = running.service_addrs()[0];
    let mut meters = ["m-01", "m-02", "m-03"].map(|id| meter(address, id));
    let node = started.0.get().unwrap();
    let devices = node.devices();

    assert_eq!((devices.count(), devices.count_of_tag("meter")), (3, 3));
    let found = devices.get("m-02").unwrap();
    assert!(found.last_seen() <= devices.now() && devices.get("m-04").is_none());
    let page = devices.list(Cursor::default(), 2);
    let rest = devices.list(page.next.unwrap(), 2);
    assert_eq!((page.devices.len(), rest.devices.len(), rest.next), (2, 1, None));
    devices.set_tags("m-03", ["spare"]).unwrap();
    assert_eq!(devices.list_tag("spare", Cursor::default(), 9).devices[0].id(), "m-03");

    assert_eq!(devices.push("m-01", &1_u32), Ok(1));
    assert_eq!(devices.push(Target::tag("meter"), &2_u32), Ok(2));
    assert_eq!(devices.push(Target::All, &3_u32), Ok(3));
    for (meter, text) in meters.iter_mut().zip(["123", "23", "3"]) {
        hears(meter, text);
    }
    let error = devices.push_bytes("m-01", b"1").unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadPayload);
    assert_eq!(devices.push("m-04", &1_u32).unwrap_err().code(), ErrorCode::UnknownDevice);

    let wait = Duration::from_secs(30);
    let answer: u32 = devices.request("m-01", &77_u32, wait).wait().unwrap();
    assert_eq!(answer, 77);
    let silence = "silence".to_owned();
    let short = devices.request::<u32>("m-01", &silence, Duration::from_millis(20)).wait();
    assert_eq!(short.unwrap_err().code(), ErrorCode::Timeout);
    let lost = devices.request::<u32>("m-02", &silence, wait);
    devices.disconnect("m-02", "enough").unwrap();
    assert_eq!(lost.wait().unwrap_err().code(), ErrorCode::UnknownDevice);
    hears(&mut meters[1], r#""silence""#);
    assert_eq!(meters[1].read(&mut [0]).unwrap(), 0, "it is closed");
    assert_eq!(devices.count(), 2);

    running.shutdown();
    assert_eq!((node.devices().count(), node.devices().count_of_tag("meter")), (0, 0));
    assert_eq!(node.devices().push(Target::All, &1_u32), Ok(0));
}

#[test]
fn a_node_without_a_fleet_has_no_devices() {
    let running = Server::new(Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() });
    let node = running.start().unwrap().handle();
    let devices = node.devices();
    assert_eq!((devices.count(), devices.get("one").is_none()), (0, true));
    assert_eq!(devices.push("one", &1_u32).unwrap_err().code(), ErrorCode::Forbidden);
}

#[test]
fn a_pattern_of_ids_that_is_none_is_an_error_at_the_start() {
    let server = Server::new(Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() });
    let settings = FleetSettings::new().ids("a::b");
    let error = server.fleet(Started::default(), settings).start().err().unwrap();
    assert!(error.to_string().contains(r#""a::b""#), "{error}");
}
