use playfield::packet::Packet;

#[derive(Packet)]
#[packet(opcode = 1_u128)]
struct Ping;

fn main() {}
