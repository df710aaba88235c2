use playfield::packet::Packet;

#[derive(Packet)]
union Bits {
    whole: u32,
    bytes: [u8; 4],
}

fn main() {}
