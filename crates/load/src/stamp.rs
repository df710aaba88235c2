//! Stamps, which make a publication of the load known where it is received.

const MARK: &str = "load:";

/// The length of a stamp: the mark, and numbers in 16, 8, 8 and 16 hexadecimal digits.
pub(crate) const STAMP_BYTES: usize = MARK.len() + 48;

/// Identifies a publication, and says when it was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The load.
    pub(crate) run: u64,
    /// The connection.
    pub(crate) publisher: u32,
    /// Counts the publications of the connection.
    pub(crate) sequence: u32,
    /// In nanoseconds of the machine's monotonic clock, which all processes share.
    pub(crate) due: u64,
}

impl Stamp {
    pub(crate) fn text(&self) -> String {
        let Self { run, publisher, sequence, due } = self;
        format!("{MARK}{run:016x}{publisher:08x}{sequence:08x}{due:016x}")
    }

    /// The stamp of a payload, if it has one.
    pub(crate) fn find(payload: &[u8]) -> Option<Self> {
        let mark = MARK.as_bytes();
        let mut starts = payload.windows(STAMP_BYTES).filter(|bytes| bytes.starts_with(mark));
        starts.find_map(|bytes| {
            let digits = std::str::from_utf8(&bytes[mark.len()..]).ok()?;
            let number = |from: usize, length: usize| {
                u64::from_str_radix(digits.get(from..from + length)?, 16).ok()
            };
            Some(Self {
                run: number(0, 16)?,
                publisher: number(16, 8)? as u32,
                sequence: number(24, 8)? as u32,
                due: number(32, 16)?,
            })
        })
    }
}
