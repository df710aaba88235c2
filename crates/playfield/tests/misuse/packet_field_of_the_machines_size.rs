use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    length: usize,
}

fn main() {}
