use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(varint)]
    level: u8,
}

fn main() {}
