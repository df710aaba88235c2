use playfield::packet::Packet;

#[derive(Packet)]
struct Text<'a> {
    to: u32,
    #[packet(rest)]
    text: &'a [u8],
}

#[derive(Packet)]
struct Wrapped<'a>(Text<'a>);

#[derive(Packet)]
#[packet(opcode = 1)]
struct Two<'a> {
    first: Text<'a>,
    second: Text<'a>,
}

#[derive(Packet)]
#[packet(opcode = 2)]
struct Wrapping<'a>(Wrapped<'a>, u8);

fn main() {}
