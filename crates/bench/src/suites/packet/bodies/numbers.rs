//! One value, written to a new packet or read from an existing one.

use std::hint::black_box;

use playfield_wire::packet::{Little, PacketReader, PacketWriter, Prefix};

use super::{TEXT, kept, payload};
use crate::harness::rounds::{Form, Run, run};

/// Defines a row that writes one value, and a row that reads it.
macro_rules! number {
    ($of:ident $write:ident $read:ident) => {
        pub(in super::super) fn $write(form: Form, times: u64) -> Run {
            let mut out = Vec::with_capacity(64);
            run(times, size_of::<$of>(), |time| {
                out.clear();
                PacketWriter::<Little>::new(&mut out).$of(black_box(time as $of));
                let out = black_box(&out);
                form == Form::Same || **out == (time as $of).to_le_bytes()
            })
        }

        pub(in super::super) fn $read(form: Form, times: u64) -> Run {
            let packet = black_box((7 as $of).to_le_bytes().to_vec());
            run(times, size_of::<$of>(), |_| {
                let value = PacketReader::<Little>::new(black_box(&packet)).$of();
                match form {
                    Form::Same => kept(value),
                    Form::Verified => value == Ok(7),
                }
            })
        }
    };
}

number! { u8 write_u8 read_u8 }
number! { i16 write_i16 read_i16 }
number! { i32 write_i32 read_i32 }
number! { i64 write_i64 read_i64 }

pub(in super::super) fn write_string(form: Form, times: u64) -> Run {
    let mut out = Vec::with_capacity(64);
    run(times, 2 + TEXT.len(), |_| {
        out.clear();
        let written = PacketWriter::<Little>::new(&mut out).text(Prefix::U16, black_box(TEXT));
        let out = black_box(&out);
        written.is_ok()
            && (form == Form::Same || (out[..2] == [38, 0] && out[2..] == *TEXT.as_bytes()))
    })
}

pub(in super::super) fn read_string(form: Form, times: u64) -> Run {
    let mut packet = Vec::new();
    PacketWriter::<Little>::new(&mut packet).text(Prefix::U16, TEXT).expect("a short text");
    run(times, packet.len(), |_| {
        let value = PacketReader::<Little>::new(black_box(&packet)).text(Prefix::U16);
        match form {
            Form::Same => kept(value),
            Form::Verified => value == Ok(TEXT),
        }
    })
}

pub(in super::super) fn write_bytes(form: Form, times: u64) -> Run {
    let payload = payload(1_024);
    let mut out = Vec::with_capacity(1_024);
    run(times, payload.len(), |_| {
        out.clear();
        PacketWriter::<Little>::new(&mut out).raw(black_box(&payload));
        let out = black_box(&out);
        form == Form::Same || *out == payload
    })
}

pub(in super::super) fn read_bytes(form: Form, times: u64) -> Run {
    let packet = payload(1_024);
    let expected = packet.clone();
    run(times, packet.len(), |_| {
        let value = PacketReader::<Little>::new(black_box(&packet)).raw(1_024);
        match form {
            Form::Same => kept(value),
            Form::Verified => value.is_ok_and(|bytes| bytes == expected),
        }
    })
}
