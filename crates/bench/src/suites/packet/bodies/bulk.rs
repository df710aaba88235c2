//! Large payloads.

use std::hint::black_box;

use playfield_wire::packet::{Little, PacketError, PacketReader, PacketWriter};

use super::{kept, payload};
use crate::harness::rounds::{Form, Run, run};

/// Encodes a length, an opcode and a payload, and reads a view of it.
#[inline(always)]
fn throughput(form: Form, times: u64, bytes: usize) -> Run {
    let payload = payload(bytes);
    let mut out = Vec::with_capacity(bytes + 5);
    run(times, bytes, |_| {
        out.clear();
        let mut packet = PacketWriter::<Little>::new(&mut out);
        packet.u32(0);
        packet.u8(0x20);
        packet.raw(black_box(&payload));
        let mut packet = PacketReader::<Little>::new(black_box(&out));
        let head = (packet.u32(), packet.u8());
        let view = packet.rest();
        match form {
            Form::Same => kept(head.1) && black_box(view).len() == bytes,
            Form::Verified => head == (Ok(0), Ok(0x20)) && view == payload,
        }
    })
}

pub(in super::super) fn throughput_64(form: Form, times: u64) -> Run {
    throughput(form, times, 64)
}

pub(in super::super) fn throughput_512(form: Form, times: u64) -> Run {
    throughput(form, times, 512)
}

pub(in super::super) fn throughput_4_kb(form: Form, times: u64) -> Run {
    throughput(form, times, 4 << 10)
}

pub(in super::super) fn throughput_64_kb(form: Form, times: u64) -> Run {
    throughput(form, times, 64 << 10)
}

pub(in super::super) fn payload_10_kb(form: Form, times: u64) -> Run {
    throughput(form, times, 10 << 10)
}

/// The fields before the payload in a packet of 1,047 bytes.
const FIELDS: (i32, i16, i64, u8, f64) = (7, -8, 9, 10, 1.5);

pub(in super::super) fn encode_1047(form: Form, times: u64) -> Run {
    let payload = payload(1_024);
    let mut out = Vec::with_capacity(1_100);
    run(times, 1_047, |_| {
        out.clear();
        let mut packet = PacketWriter::<Little>::new(&mut out);
        let (id, x, time, kind, speed) = black_box(FIELDS);
        packet.i32(id);
        packet.i16(x);
        packet.i64(time);
        packet.u8(kind);
        packet.f64(speed);
        packet.raw(black_box(&payload));
        let out = black_box(&out);
        form == Form::Same || {
            let mut packet = PacketReader::<Little>::new(out);
            let fields = (packet.i32(), packet.i16(), packet.i64(), packet.u8(), packet.f64());
            fields == (Ok(FIELDS.0), Ok(FIELDS.1), Ok(FIELDS.2), Ok(FIELDS.3), Ok(FIELDS.4))
                && packet.rest() == payload
        }
    })
}

/// Packet sizes as in typical traffic: mostly short, some long.
const MIX: [usize; 8] = [16, 32, 24, 64, 48, 256, 40, 1_024];

/// The number of packets prepared of each size: more than fits in the L1 cache.
const MIX_TURNS: usize = 64;

struct Mix {
    packets: Vec<Vec<u8>>,
    /// The sum of each packet's bytes when it was created.
    sums: Vec<u64>,
}

fn mix_packets() -> Mix {
    let packets: Vec<Vec<u8>> = (0..MIX_TURNS * MIX.len())
        .map(|number| {
            let mut out = Vec::new();
            let mut packet = PacketWriter::<Little>::new(&mut out);
            packet.u16(number as u16);
            packet.raw(&payload(MIX[number % MIX.len()]));
            out
        })
        .collect();
    let sums = packets.iter().map(|packet| sum(&packet[2..])).collect();
    Mix { packets, sums }
}

/// Reads every byte.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

/// One operation reads every packet of the mix once. The verified form also reads every byte. The
/// other form reads none: it measures slices changing hands and says nothing about memory.
pub(in super::super) fn mix_decode(form: Form, times: u64) -> Run {
    let Mix { packets, sums } = mix_packets();
    let bytes = packets.iter().map(Vec::len).sum();
    run(times, bytes, |_| {
        packets.iter().zip(&sums).enumerate().all(|(number, (packet, expected))| {
            let mut packet = PacketReader::<Little>::new(black_box(packet));
            let opcode = packet.u16();
            let view = packet.rest();
            match form {
                Form::Same => kept(opcode) && !black_box(view).is_empty(),
                Form::Verified => opcode == Ok(number as u16) && sum(view) == *expected,
            }
        })
    })
}

/// The same, but each packet is written first.
pub(in super::super) fn mix(form: Form, times: u64) -> Run {
    let Mix { packets, sums } = mix_packets();
    let bytes = packets.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(2_048);
    run(times, bytes, |_| {
        packets.iter().zip(&sums).enumerate().all(|(number, (source, expected))| {
            out.clear();
            let mut packet = PacketWriter::<Little>::new(&mut out);
            packet.u16(number as u16);
            packet.raw(&black_box(source)[2..]);
            let mut packet = PacketReader::<Little>::new(black_box(&out));
            let opcode = packet.u16();
            let view = packet.rest();
            match form {
                Form::Same => kept(opcode) && !black_box(view).is_empty(),
                Form::Verified => opcode == Ok(number as u16) && sum(view) == *expected,
            }
        })
    })
}

/// Decodes one position from each of 1,000 players.
pub(in super::super) fn players(form: Form, times: u64) -> Run {
    const PLAYERS: u32 = 1_000;
    let packets: Vec<Vec<u8>> = (0..PLAYERS)
        .map(|number| {
            let mut out = Vec::new();
            let mut packet = PacketWriter::<Little>::new(&mut out);
            packet.u16(0x21);
            packet.u32(number);
            packet.i16(number as i16);
            packet.i16(!number as i16);
            out
        })
        .collect();
    run(times, packets.iter().map(Vec::len).sum(), |_| {
        packets.iter().enumerate().all(|(number, packet)| {
            let mut packet = PacketReader::<Little>::new(black_box(packet));
            let mut read = || {
                Ok::<_, PacketError>((packet.u16()?, packet.u32()?, packet.i16()?, packet.i16()?))
            };
            match form {
                Form::Same => kept(read()),
                Form::Verified => {
                    read() == Ok((0x21, number as u32, number as i16, !number as i16))
                }
            }
        })
    })
}

/// The cost of copying alone; in the verified form, copying and comparing.
pub(in super::super) fn memcpy(form: Form, times: u64) -> Run {
    let source = payload(64 << 10);
    let mut copy = vec![0; source.len()];
    run(times, source.len(), |_| {
        black_box(&mut copy).copy_from_slice(black_box(&source));
        form == Form::Same || *black_box(&copy) == source
    })
}
