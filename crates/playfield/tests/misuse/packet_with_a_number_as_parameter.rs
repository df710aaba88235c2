use playfield::packet::Packet;

#[derive(Packet)]
struct Block<const N: usize> {
    bytes: [u8; N],
}

fn main() {}
