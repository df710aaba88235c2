use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(len = u8)]
    id: u32,
}

fn main() {}
