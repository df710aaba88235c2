//! Input of channels' clients and of devices that arrives in pieces of any size: over WebSocket and
//! in native framing, in every format, the node does the same as if each frame came whole.

use playfield_wire::Format;

use super::devices::{push, request};
use super::gadget::{self, Gadget};
use super::listener::{Listener, Told};
use super::world::{Client, World};

/// The way bytes arrive.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// All at once.
    Whole,
    /// In two pieces; the first has this many bytes.
    Cut(usize),
    /// One after the other.
    Bytes,
}

impl Arrival {
    /// Every way in which so many bytes are to arrive.
    fn all(count: usize) -> impl Iterator<Item = Self> {
        (1..count).map(Self::Cut).chain([Self::Bytes])
    }

    fn bring(self, world: &mut World, client: Client, bytes: &[u8]) {
        match self {
            Self::Whole => world.bytes(client, bytes),
            Self::Cut(at) => {
                let (first, rest) = bytes.split_at(at.min(bytes.len()));
                world.bytes(client, first);
                world.bytes(client, rest);
            }
            Self::Bytes => bytes.chunks(1).for_each(|byte| world.bytes(client, byte)),
        }
    }
}

/// Holds back what `say` makes a client send, and returns it.
fn held(world: &mut World, say: impl FnOnce(&mut World)) -> Vec<u8> {
    world.held = Some(Vec::new());
    say(world);
    world.held.take().expect("it was held")
}

/// The messages to a client of channels, and how many bytes it has sent.
fn channels(is_websocket: bool, format: Format, arrival: Arrival) -> (Vec<Told>, usize) {
    // With more shards, what is published comes later than what is sent together with it.
    let mut world = World::new(1, &[]);
    let mut ann = Listener::new(&mut world, 0, "ann", is_websocket, format);
    let not_utf8: &[u8] = match format {
        Format::Packed => b"\xff\x00",
        Format::Json => br#""/wA=""#,
        Format::Msgpack => b"\xc4\x02\xff\x00",
    };
    let bytes = held(&mut world, |world| {
        ann.subscribe(world, "chat:a");
        ann.subscribe(world, "bytes:a");
    });
    arrival.bring(&mut world, ann.client, &bytes);
    let mut told = ann.told(&mut world);
    let more = held(&mut world, |world| {
        ann.publish(world, "chat:a", r#"{"text":"é\u0000€"}"#);
        ann.publish_raw(world, "bytes:a", not_utf8);
        ann.ask_members(world, "chat:a");
        ann.ask_history(world, "chat:a", 0, 0);
        ann.unsubscribe(world, "bytes:a");
        ann.publish_raw(world, "bytes:a", not_utf8);
    });
    arrival.bring(&mut world, ann.client, &more);
    told.extend(ann.told(&mut world));
    (told, bytes.len().max(more.len()))
}

#[test]
fn frames_of_channels_are_split_at_every_byte() {
    for (is_websocket, format) in [
        (false, Format::Packed),
        (true, Format::Packed),
        (true, Format::Json),
        (true, Format::Msgpack),
    ] {
        let (whole, bytes) = channels(is_websocket, format, Arrival::Whole);
        let publications = whole.iter().filter(|told| matches!(told, Told::Publication { .. }));
        assert_eq!(publications.count(), 2, "{whole:?}");
        assert!(whole.iter().all(|told| !matches!(told, Told::Error { .. })), "{whole:?}");
        for arrival in Arrival::all(bytes) {
            let (told, _) = channels(is_websocket, format, arrival);
            assert_eq!(told, whole, "{format:?} {arrival:?}");
        }
    }
}

/// The messages to a device, the answers to the program, the calls of its fleet, and how many bytes
/// the device has sent.
fn devices(format: Format, arrival: Arrival) -> (Vec<gadget::Told>, String, usize) {
    let mut world = World::new(2, &[]);
    let mut lamp = Gadget::new(&mut world, 1, format, "ann");
    let bytes = held(&mut world, |world| {
        lamp.register(world, "lamp", &["light", "größe"]);
        lamp.report(world, r#"{"w":"é"}"#);
    });
    arrival.bring(&mut world, lamp.client, &bytes);
    let mut told = lamp.told(&mut world);
    assert_eq!(push(&mut world, "lamp", "7").ok(), Some(1));
    let mut answered = request(&mut world, "lamp", "8", 1000);
    told.extend(lamp.told(&mut world));
    let command = told.iter().find_map(|told| match told {
        gadget::Told::Command { command, .. } => *command,
        _ => None,
    });
    let more = held(&mut world, |world| {
        lamp.answer(world, command.expect("it was asked"), Ok(r#"{"é":[1]}"#));
        lamp.report(world, "9");
    });
    arrival.bring(&mut world, lamp.client, &more);
    told.extend(lamp.told(&mut world));
    let log = world.fleet_log.lock().unwrap().join(", ");
    let answer = format!("{:?}; {log}", answered.try_recv().expect("it is answered"));
    (told, answer, bytes.len().max(more.len()))
}

#[test]
fn frames_of_devices_are_split_at_every_byte() {
    for format in Format::ALL {
        let (whole, answer, bytes) = devices(format, Arrival::Whole);
        assert_eq!(whole.len(), 5, "{whole:?}");
        assert!(answer.starts_with("Ok(") && answer.ends_with("lamp registered"), "{answer}");
        for arrival in Arrival::all(bytes) {
            let (told, answered, _) = devices(format, arrival);
            assert_eq!((told, answered), (whole.clone(), answer.clone()), "{format:?} {arrival:?}");
        }
    }
}
