use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    name: String,
    age: Option<u8>,
}

fn main() {}
