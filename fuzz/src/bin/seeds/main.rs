//! Writes valid bodies, messages, schemas, frames and packets into `corpus/` as the fuzzer's seeds.

// The states that the laws of `playfield-state` are tested with.
#[path = "../../../../crates/state/tests/common/mod.rs"]
mod common;
mod wire;

use std::fs;
use std::io;
use std::path::Path;

use common::Dice;
use common::field::Field;
use common::kinds::Kinds;
use common::swarm::Swarm;
use common::world::{Desks, Root, World};
use playfield_fuzz::input::put_piece;
use playfield_fuzz::{VIEWER, schema_of};
use playfield_state::{Format, Tracker, Tracking};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing;
use playfield_wire::server::{self, ServerMessage, Versions, write_patch, write_snapshot};
use playfield_wire::{RequestNumber, RoomNumber};

fn main() -> io::Result<()> {
    of_state::<World>(0)?;
    of_state::<Desks>(1)?;
    of_state::<Swarm>(2)?;
    of_state::<Kinds>(3)?;
    of_state::<Field>(4)?;
    for (place, format) in Format::ALL.into_iter().enumerate() {
        of_messages(place as u8, format)?;
    }
    wire::all()
}

fn of_state<T: Root>(place: u8) -> io::Result<()> {
    put("schemas", &format!("state-{place}"), schema_of::<T>().to_json().as_bytes())?;
    for seed in 0..8 {
        for (number, format) in Format::ALL.into_iter().enumerate() {
            let mut file = vec![if format == Format::Packed {
                place
            } else {
                u8::from(format == Format::Msgpack)
            }];
            bodies::<T>(seed, format).iter().for_each(|body| put_piece(&mut file, body));
            let targets: &[&str] = if number == 0 { &["copies", "transcode"] } else { &["trees"] };
            for target in targets {
                put(target, &format!("state-{place}-{seed}-{format}"), &file)?;
            }
        }
    }
    Ok(())
}

/// A snapshot, and patches that follow it.
fn bodies<T: Root>(seed: u64, format: Format) -> Vec<Vec<u8>> {
    let mut state = T::changed(20 + seed * 5);
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut dice = Dice::new(seed);
    let mut bodies = vec![Vec::new()];
    tracker.snapshot(VIEWER, format, &mut bodies[0]);
    for _ in 0..4 {
        let since = tracker.version();
        (0..4).for_each(|_| state.change(&mut dice));
        tracker.sync(&mut state);
        let mut body = Vec::new();
        if tracker.patch(VIEWER, since, format, &mut body) {
            bodies.push(body);
        }
    }
    bodies
}

fn of_messages(place: u8, format: Format) -> io::Result<()> {
    let [snapshot, patch, ..] = &bodies::<World>(1, format)[..] else { return Ok(()) };
    let mut messages = Vec::new();
    let mut say = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut message = Vec::new();
        write(&mut message);
        messages.push(message);
    };
    let welcome = ServerMessage::Welcome(server::Welcome {
        protocol: playfield_wire::PROTOCOL,
        session: 1,
        resume: b"token".as_slice().into(),
        heartbeat_ms: 1000,
        max_message_bytes: 100_000,
        ..server::Welcome::default()
    });
    let room = RoomNumber(1);
    let joined = ServerMessage::Joined(server::Joined {
        request: RequestNumber(1),
        room,
        id: "r".into(),
        room_type: "world".into(),
        player: 1,
        epoch: 1,
        tick_hz: 20,
        sync_hz: 20,
        fingerprint: 1,
        grace_ms: 10_000,
        ..server::Joined::default()
    });
    say(&|out| welcome.encode(format, out));
    say(&|out| joined.encode(format, out));
    say(&|out| write_snapshot(format, out, room, 1, 1, |out| out.extend_from_slice(snapshot)));
    let versions = Versions { base: 1, version: 2 };
    say(&|out| write_patch(format, out, room, versions, |out| out.extend_from_slice(patch)));
    if format == Format::Packed {
        let mut talk = vec![0];
        for message in &messages {
            let mut frame = Vec::new();
            framing::write_frame(&mut frame, message);
            put_piece(&mut talk, &frame);
            // No command follows.
            talk.extend([15, 0]);
        }
        put("client", "talk", &talk)?;
    }
    let mut hello = Vec::new();
    ClientMessage::Hello(Hello::new(format)).encode(format, &mut hello);
    messages.push(hello);
    for (number, message) in messages.iter().enumerate() {
        let mut file = vec![place];
        put_piece(&mut file, message);
        put("messages", &format!("message-{format}-{number}"), &file)?;
    }
    Ok(())
}

fn put(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}
