//! A packet with a field of every kind.

use playfield::packet::{Order, Packet};

/// The packet that the target `packets` reads.
#[derive(Packet, Debug)]
#[packet(opcode = 7_u8)]
pub struct All<'a> {
    pub a: i8,
    pub b: [u16; 3],
    pub c: &'a str,
    #[packet(len = u8)]
    pub d: Vec<Item<'a>>,
    #[packet(padded = 5)]
    pub e: String,
    #[packet(varint)]
    pub f: u32,
    #[packet(varint)]
    pub g: i64,
    pub h: bool,
    pub i: [bool; 2],
    #[packet(len = varint)]
    pub j: &'a [u8],
    #[packet(len = u32)]
    pub k: Vec<i64>,
    pub l: [f32; 2],
    pub m: &'a [u8; 2],
    #[packet(rest)]
    pub n: &'a [u8],
}

/// A list element.
#[derive(Packet, Debug)]
pub struct Item<'a> {
    pub of: f64,
    #[packet(len = u8)]
    pub name: &'a str,
}

/// Valid packets: a nearly empty one and a full one.
pub fn right<O: Order>() -> Vec<Vec<u8>> {
    let little = All {
        a: -1,
        b: [0; 3],
        c: "",
        d: Vec::new(),
        e: String::new(),
        f: 0,
        g: 0,
        h: false,
        i: [false; 2],
        j: b"",
        k: Vec::new(),
        l: [0.0; 2],
        m: b"\0\0",
        n: b"",
    };
    let much = All {
        a: i8::MIN,
        b: [0, 0x0102, u16::MAX],
        c: "é€😀",
        d: vec![Item { of: -0.5, name: "ann" }, Item { of: f64::NAN, name: "" }],
        e: "whole".into(),
        f: u32::MAX,
        g: i64::MIN,
        h: true,
        i: [true, false],
        j: &[0xFF; 200],
        k: vec![0, -1, i64::MAX],
        l: [1.5, f32::INFINITY],
        m: b"ab",
        n: b"and all that is left",
    };
    let written = [little, much].map(|packet| {
        let mut out = Vec::new();
        packet.append::<O>(&mut out).expect("no field is too long");
        out
    });
    written.into()
}
