//! The framing of a body in chunks (RFC 9112, 7.1), as far as hyper is less strict: it takes lines of
//! many kilobytes with the size of a chunk, and what another reader takes otherwise can hide a
//! request.

/// The most bytes of a line with the size of a chunk, its extensions and its end included.
const LINE_BYTES_MAX: usize = 256;

/// The bytes of a request whose body is in chunks, from its head on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// This many bytes come before the next line: the head, or a chunk and its line end.
    Bytes(u64),
    /// The line with the size of a chunk: the size and the bytes of it so far. The size has ended
    /// where something else followed.
    Line { size: u64, bytes: usize, in_size: bool },
    /// The last line has come. Hyper limits what follows.
    Last,
    /// A line was too long.
    TooLong,
}

impl Chunks {
    /// A request with a head of so many bytes.
    pub(super) fn behind(head_bytes: usize) -> Self {
        Self::Bytes(head_bytes as u64)
    }

    const fn line() -> Self {
        Self::Line { size: 0, bytes: 0, in_size: true }
    }

    /// Reads the next bytes, and returns how many of them are good.
    pub(super) fn read(&mut self, input: &[u8]) -> usize {
        let mut read = 0;
        while read < input.len() {
            match self {
                Self::Bytes(0) => *self = Self::line(),
                Self::Bytes(left) => {
                    let bytes =
                        (input.len() - read).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= bytes as u64;
                    read += bytes;
                }
                Self::Line { size, bytes, in_size } => {
                    let byte = input[read];
                    if *bytes == LINE_BYTES_MAX {
                        *self = Self::TooLong;
                        return read;
                    }
                    *bytes += 1;
                    read += 1;
                    match char::from(byte).to_digit(16) {
                        _ if byte == b'\n' && *size == 0 => *self = Self::Last,
                        _ if byte == b'\n' => *self = Self::Bytes(size.saturating_add(2)),
                        Some(digit) if *in_size => {
                            *size = size.saturating_mul(16).saturating_add(digit.into());
                        }
                        _ => *in_size = false,
                    }
                }
                Self::Last => return input.len(),
                Self::TooLong => return read,
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunks, LINE_BYTES_MAX};

    /// The number of bytes that are good, however they are cut.
    fn good(text: &str) -> usize {
        let head = "POST / HTTP/1.1\r\n\r\n";
        let all = [head, text].concat();
        let counts = [1, 2, 7, all.len()].map(|pieces| {
            let mut chunks = Chunks::behind(head.len());
            all.as_bytes().chunks(pieces).map(|piece| chunks.read(piece)).sum::<usize>()
        });
        assert!(counts.iter().all(|count| *count == counts[0]), "{text}: {counts:?}");
        counts[0] - head.len()
    }

    #[test]
    fn the_line_of_a_chunk_may_have_256_bytes_and_no_more() {
        let line = |bytes: usize| format!("3;{}\r\n", "x".repeat(bytes - 4));
        for (before, after) in [("", ""), ("A;a=b\r\n0123456789\r\n", "abc\r\n0\r\n\r\n")] {
            let longest = [before, &line(LINE_BYTES_MAX), after].concat();
            assert_eq!(good(&longest), longest.len());
            let too_long = [before, &line(LINE_BYTES_MAX + 1), after].concat();
            assert_eq!(good(&too_long), before.len() + LINE_BYTES_MAX);
        }
        assert_eq!(good(&"0".repeat(300)), LINE_BYTES_MAX);
    }

    #[test]
    fn what_is_in_chunks_and_behind_them_may_be_as_long_as_it_is() {
        let data = "x".repeat(0x1f4);
        let all = format!("1F4\r\n{data}\r\n0;a\r\nX: {data}\r\n\r\n{data}");
        assert_eq!(good(&all), all.len());
    }
}
