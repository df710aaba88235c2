use playfield::packet::Packet;

#[derive(Packet)]
#[packet(opcode = -1_i8)]
struct Ping;

#[derive(Packet)]
#[packet(opcode = -1)]
struct Pong;

#[derive(Packet)]
#[packet(opcode = -129_i8)]
struct Pang;

fn main() {}
