use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(padded = "16")]
    name: String,
}

fn main() {}
