use playfield::packet::Packet;

#[derive(Packet)]
struct Pair<T> {
    left: T,
    right: T,
}

fn main() {}
