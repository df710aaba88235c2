//! Blocks: the pieces of a file that is appended to, each with a number and checksums. A crash, a
//! missing piece and a flipped bit are noticed, at their place.
//!
//! | bytes | content |
//! |---|---|
//! | 7 | `PFBLOCK` |
//! | 1 | the kind of the block |
//! | 8 | its number in the file, from 0 |
//! | 4 | the length of its content |
//! | 4 | the CRC-32 of the bytes so far |
//! | | the content |
//! | 4 | the CRC-32 of the content |
//!
//! Numbers are little endian. The content is deflated if the highest bit of the kind is set. What
//! kinds there are, and what they contain, is up to the file.

use std::borrow::Cow;
use std::fmt;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

const MAGIC: &[u8; 7] = b"PFBLOCK";
const HEAD_BYTES: usize = 24;
const CHECK_BYTES: usize = 4;
const DEFLATED: u8 = 0x80;

/// The most bytes of a block's content, deflated or not.
pub const BLOCK_BYTES_MAX: usize = 1 << 28;

/// Content that is shorter is not deflated.
const DEFLATED_FROM: usize = 128;

/// Numbers the blocks of a file.
#[derive(Clone, Debug, Default)]
pub struct BlockWriter {
    next: u64,
}

impl BlockWriter {
    /// Appends a block. The kind is below 128; content beyond [`BLOCK_BYTES_MAX`] is refused by
    /// readers. `deflate` makes it smaller, if it can.
    pub fn put(&mut self, kind: u8, content: &[u8], deflate: bool, out: &mut Vec<u8>) {
        let deflated = (deflate && content.len() >= DEFLATED_FROM).then(|| deflated(content));
        let deflated = deflated.flatten().filter(|deflated| deflated.len() < content.len());
        let (kind, content) = match &deflated {
            Some(deflated) => (kind | DEFLATED, &deflated[..]),
            None => (kind, content),
        };
        let start = out.len();
        out.extend(MAGIC);
        out.push(kind);
        out.extend(self.next.to_le_bytes());
        out.extend(u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend(crc32fast::hash(&out[start..]).to_le_bytes());
        out.extend(content);
        out.extend(crc32fast::hash(content).to_le_bytes());
        self.next += 1;
    }
}

fn deflated(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).ok()?;
    encoder.finish().ok()
}

/// A block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Its kind.
    pub kind: u8,
    /// Its number.
    pub number: u64,
    /// The byte of the file at which it begins.
    pub at: usize,
    /// Its content.
    pub content: Cow<'a, [u8]>,
}

/// A fault of a file of blocks, at the block that should be there. What is before is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockError {
    /// The number of the block.
    pub number: u64,
    /// The byte of the file at which it begins.
    pub at: usize,
    /// The fault.
    pub fault: BlockFault,
}

/// A fault of a file of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockFault {
    /// The file ends within the block: it was being written when the process or the machine ended.
    Torn {
        /// The missing bytes, if the block says how long it is.
        missing: Option<usize>,
    },
    /// The block is not what was written.
    Damaged,
    /// Blocks are missing: another one follows.
    Missing {
        /// The number of the block that follows.
        found: u64,
    },
    /// The block is longer than [`BLOCK_BYTES_MAX`].
    TooLarge,
    /// The inflated size of the blocks up to this one exceeds the reader's limit.
    OverLimit {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, fault } = self;
        match fault {
            BlockFault::Torn { missing: Some(missing) } => {
                write!(
                    f,
                    "block {number}, at byte {at}, was not written whole: {missing} bytes are missing"
                )
            }
            BlockFault::Torn { missing: None } => {
                write!(f, "block {number}, at byte {at}, was not written whole")
            }
            BlockFault::Damaged => write!(f, "block {number}, at byte {at}, is damaged"),
            BlockFault::Missing { found } => {
                write!(f, "block {number} is missing: block {found} follows, at byte {at}")
            }
            BlockFault::TooLarge => {
                write!(f, "block {number}, at byte {at}, has more than {BLOCK_BYTES_MAX} bytes")
            }
            BlockFault::OverLimit { limit } => write!(
                f,
                "the blocks up to block {number}, at byte {at}, have more than {limit} bytes when \
                 they are inflated"
            ),
        }
    }
}

impl std::error::Error for BlockError {}

/// Reads the blocks of a file, until its end or the first fault. What can do without the blocks
/// that are lost [goes on](Self::skip_fault) behind it.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    at: usize,
    next: u64,
    /// The byte at which the last fault was found.
    fault_at: Option<usize>,
    /// The limit on the total size of all contents, and the bytes left.
    limit: usize,
    left: usize,
}

impl<'a> Blocks<'a> {
    /// The blocks in `bytes`, which begin at this byte of the file.
    #[must_use]
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, next: 0, fault_at: None, limit: usize::MAX, left: usize::MAX }
    }

    /// Like the above, with a limit on contents: a few deflated bytes may inflate to many.
    #[must_use]
    pub fn within(self, limit: usize) -> Self {
        Self { limit, left: limit, ..self }
    }

    /// After a fault, goes on at the next block whose head is whole; false if no block follows.
    pub fn skip_fault(&mut self) -> bool {
        let Some(fault_at) = self.fault_at.take() else { return false };
        // The damaged block itself may have a whole head.
        let follows = |at, number| number > self.next || at > fault_at && number == self.next;
        let is_next = |at: usize| Head::read(&self.bytes[at..]).filter(|it| follows(at, it.number));
        let found =
            self.bytes[fault_at..].windows(MAGIC.len()).enumerate().find_map(|(after, window)| {
                let at = fault_at + after;
                (window == MAGIC).then(|| is_next(at)).flatten().map(|head| (at, head.number))
            });
        let Some((at, number)) = found else { return false };
        (self.at, self.next) = (at, number);
        true
    }

    /// The blocks in a piece of a file, but its first one: from the first whole head on.
    pub(super) fn in_piece(bytes: &'a [u8]) -> Self {
        let mut this = Self { fault_at: Some(0), ..Self::new(bytes, 0) };
        if !this.skip_fault() {
            this.at = bytes.len();
        }
        this
    }

    /// The kind and the first bytes of the next block, which may go on beyond the end of `bytes`.
    /// Their checksum is not checked.
    pub(super) fn peek(&self, length: usize) -> Option<(u8, Vec<u8>)> {
        let rest = &self.bytes[self.at..];
        let (Head { kind, .. }, body) = (Head::read(rest)?, &rest[HEAD_BYTES..]);
        let mut first = Vec::new();
        if kind & DEFLATED == 0 {
            first.extend(&body[..length.min(body.len())]);
        } else {
            // The stream may end within the body; what came until then counts.
            let _ = DeflateDecoder::new(body).take(length as u64).read_to_end(&mut first);
        }
        Some((kind & !DEFLATED, first))
    }

    fn block(&mut self) -> Result<Block<'a>, BlockFault> {
        let rest = &self.bytes[self.at..];
        let Some((head, body)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Err(BlockFault::Torn { missing: None });
        };
        let Some(Head { kind, number, length }) = Head::read(head) else {
            // A file system may have made the file longer before the bytes were there.
            // Content is never all zeros: it has a checksum.
            let is_torn = rest[HEAD_BYTES..].iter().all(|byte| *byte == 0);
            return Err(match is_torn {
                true => BlockFault::Torn { missing: None },
                false => BlockFault::Damaged,
            });
        };
        if number != self.next {
            return Err(BlockFault::Missing { found: number });
        }
        if length > BLOCK_BYTES_MAX {
            return Err(BlockFault::TooLarge);
        }
        let whole = length + CHECK_BYTES;
        if body.len() < whole {
            return Err(BlockFault::Torn { missing: Some(whole - body.len()) });
        }
        let content = &body[..length];
        if crc32fast::hash(content).to_le_bytes() != body[length..whole] {
            let is_torn = ends_in_zeros(content, &body[length..]);
            return Err(match is_torn {
                true => BlockFault::Torn { missing: None },
                false => BlockFault::Damaged,
            });
        }
        let content = match kind & DEFLATED {
            0 => Cow::Borrowed(content),
            _ => Cow::Owned(inflated(content, self.left)?),
        };
        let over = BlockFault::OverLimit { limit: self.limit };
        self.left = self.left.checked_sub(content.len()).ok_or(over)?;
        if content.len() > BLOCK_BYTES_MAX {
            return Err(BlockFault::TooLarge);
        }
        let block = Block { kind: kind & !DEFLATED, number, at: self.at, content };
        self.at += HEAD_BYTES + whole;
        self.next += 1;
        Ok(block)
    }
}

/// Returns whether only the first bytes of a block were written before the machine ended, and all
/// after them, from its content or its checksum to the end of the file, is zeros. Damage alone
/// hardly gives the checksum zero.
fn ends_in_zeros(content: &[u8], rest: &[u8]) -> bool {
    let (check, after) = rest.split_at(CHECK_BYTES);
    let written = CHECK_BYTES - check.iter().rev().take_while(|byte| **byte == 0).count();
    let expected = crc32fast::hash(content).to_le_bytes();
    let is_begun = written < CHECK_BYTES && check[..written] == expected[..written];
    is_begun && after.iter().all(|byte| *byte == 0)
}

/// The head of a block.
struct Head {
    kind: u8,
    number: u64,
    /// The length of the content.
    length: usize,
}

impl Head {
    /// Reads a head that bytes begin with; `None` if they do not, or it is damaged.
    fn read(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let (fields, check) = head.split_last_chunk()?;
        if !fields.starts_with(MAGIC) || crc32fast::hash(fields).to_le_bytes() != *check {
            return None;
        }
        Some(Self {
            kind: fields[7],
            number: u64::from_le_bytes(*fields[8..].first_chunk()?),
            length: u32::from_le_bytes(*fields[16..].first_chunk()?) as usize,
        })
    }
}

/// The inflated content, cut one byte after the limit.
fn inflated(content: &[u8], max: usize) -> Result<Vec<u8>, BlockFault> {
    let mut inflated = Vec::new();
    let mut decoder = DeflateDecoder::new(content).take(max.min(BLOCK_BYTES_MAX) as u64 + 1);
    decoder.read_to_end(&mut inflated).map_err(|_| BlockFault::Damaged)?;
    Ok(inflated)
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let (at, number) = (self.at, self.next);
        Some(self.block().map_err(|fault| {
            (self.at, self.fault_at) = (self.bytes.len(), Some(at));
            BlockError { number, at, fault }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockError, BlockFault, BlockWriter, Blocks};

    fn file(contents: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut writer, mut file, mut starts) = (BlockWriter::default(), Vec::new(), Vec::new());
        for (number, content) in contents.iter().enumerate() {
            starts.push(file.len());
            writer.put(number as u8, content, number % 2 == 1, &mut file);
        }
        (file, starts)
    }

    fn contents() -> Vec<Vec<u8>> {
        let noise = (0..600_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        vec![b"short".to_vec(), vec![7; 1_000], Vec::new(), noise]
    }

    fn fault(file: &[u8]) -> (usize, BlockError) {
        let read: Vec<_> = Blocks::new(file, 0).collect();
        let error = read.last().unwrap().clone().unwrap_err();
        (read.len() - 1, error)
    }

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let (file, starts) = file(&contents());
        let read: Vec<_> = Blocks::new(&file, 0).map(Result::unwrap).collect();
        let read: Vec<_> = read
            .into_iter()
            .map(|block| (block.kind, block.at, block.content.into_owned()))
            .collect();
        let written = contents().into_iter().enumerate();
        let written: Vec<_> =
            written.map(|(number, content)| (number as u8, starts[number], content)).collect();
        assert_eq!(read, written);
        assert!(file.len() < 1_000, "the one that repeats is deflated: {} bytes", file.len());
    }

    #[test]
    fn a_file_that_is_cut_anywhere_ends_in_a_torn_block() {
        let (file, starts) = file(&contents());
        for end in 0..file.len() {
            if starts.contains(&end) {
                assert!(Blocks::new(&file[..end], 0).all(|block| block.is_ok()));
                continue;
            }
            let whole = starts.iter().filter(|start| **start < end).count() - 1;
            let (read, error) = fault(&file[..end]);
            assert_eq!((read, error.number, error.at), (whole, whole as u64, starts[whole]));
            assert!(matches!(error.fault, BlockFault::Torn { .. }), "{end}: {error}");
        }
    }

    #[test]
    fn zeros_at_the_end_are_a_torn_block() {
        let (mut file, _) = file(&contents());
        file.extend([0; 300]);
        assert_eq!(fault(&file).1.fault, BlockFault::Torn { missing: None });
    }

    #[test]
    fn a_file_whose_end_is_zeros_from_anywhere_ends_in_a_torn_block() {
        let (file, starts) = file(&contents());
        let ends = [&starts[1..], &[file.len()]].concat();
        for zeros_from in 0..file.len() {
            let mut torn = file.clone();
            torn[zeros_from..].fill(0);
            torn.resize(file.len() + 300, 0);
            let whole = ends.iter().filter(|end| torn[..**end] == file[..**end]).count();
            let (read, error) = fault(&torn);
            let at = [&[0], &ends[..]].concat()[whole];
            assert_eq!((read, error.at), (whole, at), "{zeros_from}");
            assert_eq!(error.fault, BlockFault::Torn { missing: None }, "{zeros_from}");
        }
    }

    #[test]
    fn each_flipped_bit_is_noticed_at_its_block() {
        let (file, starts) = file(&contents());
        for bit in 0..8 * file.len() {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let block = starts.iter().filter(|start| **start <= bit / 8).count() - 1;
            let error = fault(&flipped).1;
            let expected =
                BlockError { number: block as u64, at: starts[block], fault: BlockFault::Damaged };
            assert_eq!(error, expected, "bit {bit}");
        }
    }

    #[test]
    fn reading_goes_on_behind_a_fault() {
        let (file, starts) = file(&contents());
        let numbers = |file: &[u8]| {
            let (mut blocks, mut read, mut faults) = (Blocks::new(file, 0), Vec::new(), 0);
            loop {
                match blocks.next() {
                    Some(Ok(block)) => read.push((block.number, block.at)),
                    Some(Err(_)) => {
                        faults += 1;
                        if !blocks.skip_fault() {
                            return (read, faults);
                        }
                    }
                    None => return (read, faults),
                }
            }
        };
        for bit in 0..8 * file.len() {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let block = starts.iter().filter(|start| **start <= bit / 8).count() - 1;
            let mut expected: Vec<_> = (0..).zip(starts.iter().copied()).collect();
            expected.remove(block);
            assert_eq!(numbers(&flipped), (expected, 1), "bit {bit}");
        }
        let without = [&file[..starts[1]], &file[starts[2]..]].concat();
        let read = vec![(0, 0), (2, starts[1]), (3, starts[1] + starts[3] - starts[2])];
        assert_eq!(numbers(&without), (read, 1));
        let twice = [&file[..starts[2]], &file[starts[1]..]].concat();
        assert_eq!(
            numbers(&twice).0.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        assert!(!Blocks::new(&file, 0).skip_fault());
    }

    #[test]
    fn no_more_is_inflated_than_is_taken() {
        let (file, starts) = file(&contents());
        let taken = |limit| Blocks::new(&file, 0).within(limit).collect::<Vec<_>>();
        assert_eq!(taken(1_605).len(), 4);
        assert!(taken(1_605).into_iter().all(|block| block.is_ok()));
        let read = taken(1_000);
        let error = read.last().unwrap().clone().unwrap_err();
        let fault = BlockFault::OverLimit { limit: 1_000 };
        assert_eq!((read.len(), error), (2, BlockError { number: 1, at: starts[1], fault }));
    }

    #[test]
    fn a_missing_block_is_noticed() {
        let (file, starts) = file(&contents());
        let without = [&file[..starts[1]], &file[starts[2]..]].concat();
        let error = fault(&without).1;
        assert_eq!((error.number, error.at), (1, starts[1]));
        assert_eq!(error.fault, BlockFault::Missing { found: 2 });
        assert_eq!(
            error.to_string(),
            format!("block 1 is missing: block 2 follows, at byte {}", starts[1])
        );
    }
}
