use playfield::packet::Packet;

#[derive(Packet)]
#[packet(opcode = 300_u8)]
struct Ping;

#[derive(Packet)]
#[packet(opcode = 70_000)]
struct Pong;

fn main() {}
