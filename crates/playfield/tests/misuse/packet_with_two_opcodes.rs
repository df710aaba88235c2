use playfield::packet::Packet;

#[derive(Packet)]
#[packet(opcode = 1_u8, opcode = 2_u8)]
struct Ping;

fn main() {}
