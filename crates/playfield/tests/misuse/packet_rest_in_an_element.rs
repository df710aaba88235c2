use playfield::packet::Packet;

#[derive(Packet)]
struct Text {
    to: u32,
    #[packet(rest)]
    text: Vec<u8>,
}

#[derive(Packet)]
struct Listed {
    #[packet(len = u8)]
    texts: Vec<Text>,
}

#[derive(Packet)]
struct Few {
    texts: [[Text; 2]; 2],
    last: u8,
}

fn main() {}
