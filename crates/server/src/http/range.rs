//! Parts of a file (RFC 9110, 14).

use std::ops::Range;

/// The part that a `Range` header asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The whole file: there is no such header, or one that is not understood, such as one for
    /// several parts.
    Whole,
    Part(Range<u64>),
    /// Nothing that the file has.
    Beyond,
}

/// Reads the header for a file of this many bytes.
pub(crate) fn asked(header: Option<&str>, length: u64) -> Asked {
    let parts = header.and_then(|header| header.strip_prefix("bytes=")?.split_once('-'));
    let Some((first, last)) = parts else { return Asked::Whole };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // All digits: what does not fit lies beyond any file.
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(last)) if first.is_empty() => length.saturating_sub(last)..length,
        _ => return Asked::Whole,
    };
    if range.is_empty() { Asked::Beyond } else { Asked::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::{Asked, asked};

    #[test]
    fn one_part_is_understood() {
        for (header, expected) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-5", Asked::Part(2..6)),
            ("bytes=2-", Asked::Part(2..10)),
            ("bytes=2-99999999999999999999", Asked::Part(2..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=-0", Asked::Beyond),
            ("bytes=10-", Asked::Beyond),
            ("bytes=10-20", Asked::Beyond),
            ("bytes=5-2", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("lines=0-1", Asked::Whole),
        ] {
            assert_eq!(asked(Some(header), 10), expected, "{header}");
        }
        assert_eq!(asked(None, 10), Asked::Whole);
        assert_eq!(asked(Some("bytes=0-"), 0), Asked::Beyond);
    }
}
