use playfield::packet::Packet;

#[derive(Packet)]
struct Chat<'a> {
    #[packet(rest)]
    text: &'a [u8],
    to: u32,
}

fn main() {}
