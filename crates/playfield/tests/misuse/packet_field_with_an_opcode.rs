use playfield::packet::Packet;

#[derive(Packet)]
struct Login {
    #[packet(opcode = 7)]
    kind: u16,
}

fn main() {}
