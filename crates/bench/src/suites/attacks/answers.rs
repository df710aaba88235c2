//! Reads the node's answers to attackers: cuts them into messages, and counts these by kind. Bodies
//! are skipped, except short ones that attackers need.

/// The kinds of messages that matter, as `packed` numbers them.
pub(super) mod kind {
    pub(crate) const WELCOME: u8 = 0x41;
    pub(crate) const JOINED: u8 = 0x42;
    pub(crate) const LISTED: u8 = 0x43;
    pub(crate) const REPLY: u8 = 0x45;
    pub(crate) const SNAPSHOT: u8 = 0x47;
    pub(crate) const PONG: u8 = 0x4A;
    pub(crate) const ERROR: u8 = 0x4B;
    pub(crate) const REGISTERED: u8 = 0x57;
}

/// The bytes of a header: the length of the message that follows.
const HEADER_BYTES: usize = 4;

/// The part of a message that has arrived.
#[derive(Default)]
pub(super) struct Answers {
    header: Vec<u8>,
    /// The bytes of the message that are still to come.
    left: usize,
    kind: u8,
    /// The body, if it is kept.
    body: Vec<u8>,
}

impl Answers {
    /// Reads on, and calls `whole` with the kind and the body of each message that is complete. The
    /// body is empty unless `keeps` says that this kind is kept.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        keeps: impl Fn(u8) -> bool,
        mut whole: impl FnMut(u8, &[u8]),
    ) {
        while !bytes.is_empty() {
            if self.header.len() < HEADER_BYTES {
                let count = bytes.len().min(HEADER_BYTES - self.header.len());
                self.header.extend_from_slice(&bytes[..count]);
                bytes = &bytes[count..];
                if let Ok(length) = <[u8; HEADER_BYTES]>::try_from(&self.header[..]) {
                    self.left = u32::from_le_bytes(length) as usize;
                    self.kind = 0;
                    self.body.clear();
                }
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(self.left));
            if self.kind == 0
                && let Some(&first) = part.first()
            {
                self.kind = first;
            }
            if keeps(self.kind) {
                self.body.extend_from_slice(part);
            }
            self.left -= part.len();
            bytes = rest;
            if self.left == 0 {
                self.header.clear();
                whole(self.kind, &self.body);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Answers;

    #[test]
    fn messages_are_found_however_the_bytes_are_cut() {
        let mut bytes = Vec::new();
        for body in [&[0x41, 1, 2, 3][..], &[0x47; 300], &[0x4A]] {
            bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
            bytes.extend_from_slice(body);
        }
        for size in 1..=bytes.len() {
            let mut answers = Answers::default();
            let mut found = Vec::new();
            for part in bytes.chunks(size) {
                let keeps = |kind| kind == 0x41;
                answers.read(part, keeps, |kind, body| found.push((kind, body.to_vec())));
            }
            let kept = vec![0x41, 1, 2, 3];
            assert_eq!(found, [(0x41, kept), (0x47, vec![]), (0x4A, vec![])], "cut at {size}");
        }
    }
}
