use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(prefix = u8)]
    name: String,
}

fn main() {}
