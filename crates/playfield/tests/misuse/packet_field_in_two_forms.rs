use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(len = u8, padded = 16)]
    name: String,
}

fn main() {}
