//! Masks for frames: random bytes from the operating system, fetched in blocks.

/// The random bytes fetched first; then twice as many each time. A system call for each mask would
/// cost more than the mask; a large block would weigh on connections that only send pings.
const BLOCK_BYTES_MIN: usize = 1 << 5;

/// The most random bytes fetched at a time.
const BLOCK_BYTES_MAX: usize = 1 << 10;

/// A source of masks that the author of a payload can't predict (RFC 6455, 10.3).
#[derive(Debug, Default)]
pub(crate) struct Masks {
    block: Vec<u8>,
}

impl Masks {
    /// The next mask.
    pub(crate) fn draw(&mut self) -> [u8; 4] {
        if self.block.is_empty() {
            let bytes = (2 * self.block.capacity()).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
            self.block.resize(bytes, 0);
            getrandom::fill(&mut self.block).expect("the operating system has a random generator");
        }
        let mut mask = [0; 4];
        let rest = self.block.len() - mask.len();
        mask.copy_from_slice(&self.block[rest..]);
        self.block.truncate(rest);
        mask
    }
}
