use playfield::packet::Packet;

#[derive(Packet)]
struct Folder {
    of: u16,
    folders: Vec<Folder>,
}

fn main() {}
