//! Whole packets, written and read.

use std::hint::black_box;

use playfield_wire::packet::{Little, Packet};

use super::{kept, payload};
use crate::harness::rounds::{Form, Run, run};

// Each packet begins like mpacket's: four bytes of length and one byte of opcode.

/// 12 bytes.
#[derive(playfield_derive::Packet, Clone, Copy, Debug, PartialEq)]
#[packet(opcode = 0_u32)]
pub(super) struct Small {
    opcode: u8,
    kind: u8,
    x: i16,
    id: i32,
}

/// 38 bytes.
#[derive(playfield_derive::Packet, Clone, Copy, Debug, PartialEq)]
#[packet(opcode = 0_u32)]
pub(super) struct Medium<'a> {
    opcode: u8,
    id: i32,
    name: &'a str,
    level: i16,
    gold: i32,
    stats: [i16; 4],
}

/// 607 bytes.
#[derive(playfield_derive::Packet, Clone, Copy, Debug, PartialEq)]
#[packet(opcode = 0_u32)]
pub(super) struct Large<'a> {
    opcode: u8,
    id: i32,
    text: &'a str,
    values: [i32; 10],
    data: &'a [u8; 512],
    time: i64,
}

/// Everything about a player: the saved fields and an inventory of 24 items.
#[derive(playfield_derive::Packet, Clone, Debug, PartialEq)]
#[packet(opcode = 0_u32)]
struct Save<'a> {
    opcode: u8,
    id: i32,
    #[packet(padded = 13)]
    name: &'a str,
    looks: [u8; 4],
    stats: [i16; 12],
    counts: [i32; 6],
    times: [i64; 2],
    place: [f32; 2],
    items: Vec<Item>,
}

#[derive(playfield_derive::Packet, Clone, Copy, Debug, PartialEq)]
struct Item {
    of: i32,
    count: i16,
    until: i64,
}

/// Writes a packet and reads it back. The values change each time, so that nothing can be
/// precomputed.
macro_rules! round_trip {
    ($name:ident, $of:ident, $make:expr) => {
        pub(in super::super) fn $name(form: Form, times: u64) -> Run {
            let data: Vec<u8> = payload(512);
            let data: &[u8; 512] = data.first_chunk().expect("512 bytes");
            let make = $make;
            let mut out = Vec::with_capacity(1_024);
            let mut bytes = 0;
            let run = run(times, 0, |time| {
                out.clear();
                let packet = black_box(make(time, data));
                let written = packet.append::<Little>(&mut out);
                bytes = out.len();
                let read = $of::parse::<Little>(black_box(&out));
                match form {
                    Form::Same => written.is_ok() && kept(read),
                    Form::Verified => written.is_ok() && read.as_ref() == Ok(&packet),
                }
            });
            Run { bytes_per_op: bytes as u64, ..run }
        }
    };
}

round_trip!(small, Small, |time: u64, _| Small {
    opcode: 0x10,
    kind: time as u8,
    x: time as i16,
    id: time as i32
});

round_trip!(medium, Medium, |time: u64, _| Medium {
    opcode: 0x11,
    id: time as i32,
    name: "ValkyrieOf013",
    level: time as i16,
    gold: !time as i32,
    stats: [1, 2, 3, time as i16],
});

round_trip!(large, Large, |time: u64, data| Large {
    opcode: 0x12,
    id: time as i32,
    text: "a text that is thirty-six characters",
    values: [time as i32; 10],
    data,
    time: time as i64,
});

pub(in super::super) fn player_save(form: Form, times: u64) -> Run {
    let mut save = Save {
        opcode: 0x13,
        id: 7,
        name: "Valkyrie",
        looks: [1, 2, 3, 4],
        stats: [5; 12],
        counts: [6; 6],
        times: [7; 2],
        place: [1.5, -2.5],
        items: (0..24).map(|number| Item { of: number, count: 1, until: i64::MAX }).collect(),
    };
    let mut out = Vec::with_capacity(1_024);
    let mut bytes = 0;
    let run = run(times, 0, |time| {
        out.clear();
        save.id = time as i32;
        let written = black_box(&save).append::<Little>(&mut out);
        bytes = out.len();
        match form {
            Form::Same => written.is_ok() && black_box(&out).len() == bytes,
            Form::Verified => Save::parse::<Little>(black_box(&out)).as_ref() == Ok(&save),
        }
    });
    Run { bytes_per_op: bytes as u64, ..run }
}

pub(in super::super) fn create(form: Form, times: u64) -> Run {
    #[derive(playfield_derive::Packet)]
    #[packet(opcode = 0_u32)]
    struct Empty {
        opcode: u8,
    }

    let mut out = Vec::with_capacity(64);
    run(times, 5, |_| {
        out.clear();
        let written = black_box(Empty { opcode: 0x14 }).append::<Little>(&mut out);
        let out = black_box(&out);
        written.is_ok() && (form == Form::Same || **out == [0, 0, 0, 0, 0x14])
    })
}

pub(in super::super) fn rotating(form: Form, times: u64) -> Run {
    let packets: Vec<(Small, Vec<u8>)> = (0..16)
        .map(|number| {
            let small =
                Small { opcode: 0x10, kind: number, x: number.into(), id: i32::from(number) << 20 };
            let mut out = Vec::new();
            small.append::<Little>(&mut out).expect("it has no field with a length");
            (small, out)
        })
        .collect();
    run(times, packets[0].1.len(), |time| {
        let (expected, bytes) = &packets[time as usize % packets.len()];
        let read = Small::parse::<Little>(black_box(bytes));
        match form {
            Form::Same => kept(read),
            Form::Verified => read.as_ref() == Ok(expected),
        }
    })
}
