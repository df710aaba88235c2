use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(len = u64)]
    name: String,
}

fn main() {}
