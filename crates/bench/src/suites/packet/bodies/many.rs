//! Many small values in one packet.

use std::hint::black_box;

use playfield_wire::packet::{Little, PacketError, PacketReader, PacketWriter};

use super::kept;
use crate::harness::rounds::{Form, Run, run};

pub(in super::super) fn write_100(form: Form, times: u64) -> Run {
    let mut out = Vec::with_capacity(128);
    run(times, 100, |_| {
        out.clear();
        let mut packet = PacketWriter::<Little>::new(&mut out);
        for value in 0..100_u8 {
            packet.u8(black_box(value));
        }
        let out = black_box(&out);
        form == Form::Same || out.iter().copied().eq(0..100)
    })
}

pub(in super::super) fn read_100(form: Form, times: u64) -> Run {
    let packet: Vec<u8> = (0..100).collect();
    run(times, 100, |_| {
        let mut packet = PacketReader::<Little>::new(black_box(&packet));
        match form {
            Form::Same => (0..100).all(|_| kept(packet.u8())),
            Form::Verified => (0..100).all(|value| packet.u8() == Ok(value)),
        }
    })
}

fn write(out: &mut Vec<u8>) {
    let mut packet = PacketWriter::<Little>::new(out);
    for number in 0..1_000_u32 {
        packet.u8(black_box(number as u8));
        packet.i16(black_box(number as i16));
        packet.i32(black_box(number as i32));
    }
}

pub(in super::super) fn write_1000(form: Form, times: u64) -> Run {
    let mut expected = Vec::new();
    write(&mut expected);
    let mut out = Vec::with_capacity(7_000);
    run(times, 7_000, |_| {
        out.clear();
        write(&mut out);
        let out = black_box(&out);
        form == Form::Same
            || (*out == expected
                && read(out, |number, values| values == expected_values(number)) == Ok(true))
    })
}

pub(in super::super) fn read_1000(form: Form, times: u64) -> Run {
    let mut bytes = Vec::new();
    write(&mut bytes);
    run(times, 7_000, |_| {
        let read = match form {
            Form::Same => read(black_box(&bytes), |_, values| {
                black_box(values);
                true
            }),
            Form::Verified => {
                read(black_box(&bytes), |number, values| values == expected_values(number))
            }
        };
        read == Ok(true)
    })
}

fn expected_values(number: u32) -> (u8, i16, i32) {
    (number as u8, number as i16, number as i32)
}

#[inline(always)]
fn read(
    bytes: &[u8],
    mut take: impl FnMut(u32, (u8, i16, i32)) -> bool,
) -> Result<bool, PacketError> {
    let mut packet = PacketReader::<Little>::new(bytes);
    let mut right = true;
    for number in 0..1_000 {
        right &= take(number, (packet.u8()?, packet.i16()?, packet.i32()?));
    }
    packet.finish()?;
    Ok(right)
}
