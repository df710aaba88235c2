use playfield::packet::Packet;

#[derive(Packet)]
#[packet(order = big)]
struct Ping {
    nonce: u32,
}

fn main() {}
