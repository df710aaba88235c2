use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(padded = 0)]
    name: String,
}

fn main() {}
