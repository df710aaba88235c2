//! Errors are reported where they are, and nothing else where the types are used.
use playfield::packet::Packet;

#[derive(Packet)]
#[packet(opcode = 3)]
struct Logins<'a> {
    logins: Vec<Login>,
    kinds: Vec<Kind>,
    texts: Text<'a, u8>,
}

#[derive(Packet)]
struct Login {
    #[packet(padded = 0)]
    name: String,
}

#[derive(Packet)]
enum Kind {
    A,
}

#[derive(Packet)]
struct Text<'a, T> {
    text: &'a str,
    number: T,
}

fn main() {
    let texts = Text { text: "", number: 1 };
    let logins = Logins { logins: Vec::new(), kinds: vec![Kind::A], texts };
    let _ = logins.append::<playfield::packet::Big>(&mut Vec::new());
}
