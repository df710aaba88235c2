use playfield::packet::Packet;

#[derive(Packet)]
struct Chat {
    #[packet(rest)]
    text: String,
}

fn main() {}
