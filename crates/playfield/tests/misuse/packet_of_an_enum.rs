use playfield::packet::Packet;

#[derive(Packet)]
#[packet(opcode = 1_u8)]
enum Command {
    Go { x: i16 },
    Stop,
}

fn main() {}
