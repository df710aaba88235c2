//! The lines that a program prints.

use std::io::BufRead;

/// The lines of a stream, to its end. What is not UTF-8 is replaced: a program may print anything.
pub(super) fn lines(mut from: impl BufRead) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = from.read_until(b'\n', &mut line).ok()?;
        let text = String::from_utf8_lossy(&line);
        (read > 0).then(|| text.trim_end_matches(['\r', '\n']).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_line_that_is_not_a_text_ends_nothing() {
        let printed: &[u8] = b"one\r\n\xff\xfe two\n\nlast";
        let read: Vec<_> = lines(printed).collect();
        assert_eq!(read, ["one", "\u{fffd}\u{fffd} two", "", "last"]);
    }
}
