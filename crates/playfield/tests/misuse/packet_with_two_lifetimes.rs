use playfield::packet::Packet;

#[derive(Packet)]
struct Names<'a, 'b> {
    first: &'a str,
    second: &'b str,
}

fn main() {}
