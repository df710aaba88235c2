//! Custom packets: a decoded packet encodes to the bytes it was read from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield::packet::{Big, Little, Order, Packet, PacketReader, Prefix};
use playfield_fuzz::packets::All;

fuzz_target!(|data: &[u8]| {
    reads::<Little>(data);
    reads::<Big>(data);
    let mut reader = PacketReader::<Little>::new(data);
    while let Ok(kind) = reader.u8() {
        let before = reader.offset();
        let read = match kind % 6 {
            0 => reader.text(Prefix::U16).map(str::len),
            1 => reader.bytes(Prefix::Varint).map(<[u8]>::len),
            2 => reader.padded(kind.into()).map(str::len),
            3 => reader.varint().map(|_| 0),
            4 => reader.zigzag().map(|_| 0),
            _ => reader.raw(kind.into()).map(<[u8]>::len),
        };
        match read {
            Ok(_) => assert!(reader.offset() >= before),
            Err(error) => {
                assert!(error.offset() <= data.len());
                break;
            }
        }
    }
});

fn reads<O: Order>(data: &[u8]) {
    if let Ok(all) = All::parse::<O>(data) {
        let mut out = Vec::new();
        all.append::<O>(&mut out).expect("a decoded packet can be encoded");
        assert_eq!(out, data);
    }
}
