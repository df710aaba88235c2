//! Connections of a service that are devices.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use playfield_room::Target;
use playfield_wire::ErrorCode;
use playfield_wire::framing::{Frame, FrameCodec, LengthPrefixed};
use playfield_wire::packet::Big;

use super::devices;
use super::gadget::{Gadget, Told};
use super::world::{Client, World};
use crate::device::Registration;
use crate::service::{
    Closed, Command, CommandId, ConnectionId, Context, Hosted, Peer, Result, Service,
};

type Codec = LengthPrefixed<u16, Big>;

const CODEC: Codec = LengthPrefixed::new();

type Log = Arc<Mutex<Vec<String>>>;

fn frame(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    CODEC.encode(&mut out, body.as_bytes()).unwrap();
    out
}

/// The frames that a client got since it was last asked.
fn heard(world: &mut World, client: Client) -> Vec<String> {
    let bytes = world.raw(client);
    let (mut at, mut bodies) = (0, Vec::new());
    while let Some(frame) = CODEC.decode(&bytes[at..], usize::MAX).unwrap() {
        bodies.push(String::from_utf8(frame.body.to_vec()).unwrap());
        at += frame.consumed;
    }
    bodies
}

/// A service whose clients are devices: `is <id>` registers one, `answer <text>` answers the last
/// request.
#[derive(Default)]
struct Meters {
    asked: Option<CommandId>,
    log: Log,
}

impl Service for Meters {
    type Connection = ();
    type Codec = Codec;

    fn codec(&self) -> Codec {
        CODEC
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    fn received(&mut self, (): &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        let text = std::str::from_utf8(frame.body)?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "is" => {
                let registration = Registration::new(rest).tag("meter");
                let id = peer.id();
                let said = match peer.register(id, registration) {
                    Ok(is_new) => is_new.to_string(),
                    Err(error) => error.code().to_string(),
                };
                peer.reply(said.as_bytes())?;
            }
            "answer" => {
                let id = self.asked.take().expect("it was asked");
                let is_taken = peer.answer(id, Ok(rest.into()));
                peer.reply(is_taken.to_string().as_bytes())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn command(&mut self, (): &mut (), command: Command<'_>, peer: &mut Peer<Self>) -> Result {
        self.asked = command.id;
        peer.reply(command.payload)?;
        Ok(())
    }

    fn closed(&mut self, (): (), _: ConnectionId, why: &Closed, _: &mut Context<Self>) {
        self.log.lock().unwrap().push(why.to_string());
    }
}

#[test]
fn a_connection_of_a_service_is_a_device_like_a_session() {
    let mut world = World::new(2, &[]);
    let logs = [Log::default(), Log::default()];
    for (shard, log) in logs.iter().enumerate() {
        let meters = Meters { log: Arc::clone(log), ..Meters::default() };
        world.shards[shard].services.host(Box::new(Hosted::new(meters)));
    }
    let meter = world.connect_to(0, 0);
    world.bytes(meter, &frame("is m1"));
    assert_eq!(heard(&mut world, meter), ["true"]);
    world.bytes(meter, &frame("is m2"));
    assert_eq!(heard(&mut world, meter), ["limit"]);
    assert_eq!(devices::push(&mut world, Target::tag("meter"), "1"), Ok(1));
    assert_eq!(heard(&mut world, meter), ["1"]);
    for (answer, expected) in [("20", Ok(b"20".to_vec())), ("{", Err(ErrorCode::BadPayload))] {
        let mut answered = devices::request(&mut world, "m1", r#""state""#, 1000);
        assert_eq!(heard(&mut world, meter), [r#""state""#]);
        world.bytes(meter, &frame(&format!("answer {answer}")));
        assert_eq!(heard(&mut world, meter), ["true"]);
        let answered = answered.try_recv().unwrap();
        assert_eq!(answered.map_err(|error| error.code()), expected);
    }
    // No session takes its id, but another connection of a service does.
    let mut guest = Gadget::guest(&mut world, 0);
    let told = guest.register(&mut world, "m1", &[]);
    assert_eq!(told, [Told::Error(ErrorCode::DeviceTaken)]);
    let waits = devices::request(&mut world, "m1", "1", 1000);
    let other = world.connect_to(0, 1);
    world.bytes(other, &frame("is m1"));
    assert_eq!(heard(&mut world, other), ["false"]);
    assert_eq!(*logs[0].lock().unwrap(), ["another has registered as its device"]);
    assert_eq!(devices::code(waits), ErrorCode::UnknownDevice);
    assert!(world.is_over(meter));
    // What is received is a sign of life; silence is noticed.
    let fleet = world.node.fleet.as_ref().unwrap();
    let device = fleet.registry.get("m1").unwrap();
    let before = device.last_seen();
    world.wait(1000);
    world.bytes(other, &frame("nothing"));
    assert!(device.last_seen() > before);
    world.wait(32_000);
    assert!(device.is_silent());
    world.bytes(other, &frame("nothing"));
    assert!(!device.is_silent());
    world.vanish(other);
    let log = std::mem::take(&mut *world.fleet_log.lock().unwrap());
    let expected = [
        "m1 registered",
        "m1 registered",
        "m1 TakenOver",
        "m1 silent",
        "m1 back",
        "m1 ConnectionLost",
    ];
    assert_eq!(log, expected);
}
