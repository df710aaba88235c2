use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(padded = 8)]
    id: u32,
}

fn main() {}
