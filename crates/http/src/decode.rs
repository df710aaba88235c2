//! Percent-encoding (RFC 3986, 2.1), and the pairs of a query.

use std::borrow::Cow;

/// Decodes a part of a path; `None` if a `%` is not followed by two hexadecimal digits, or the
/// result is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (value, after) = hex_pair(rest)?;
            bytes.push(value);
            rest = after;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex_pair(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&[high, low], rest) = bytes.split_first_chunk()?;
    let digit = |byte| char::from(byte).to_digit(16);
    Some(((digit(high)? << 4 | digit(low)?) as u8, rest))
}

/// Decodes a name or a value of a query as forms encode them: `+` is a space. What is not validly
/// encoded stays as it is, as in the URL standard.
pub(crate) fn form_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, hex_pair(rest)) {
            (b'%', Some((value, after))) => {
                bytes.push(value);
                rest = after;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    match String::from_utf8_lossy(&bytes) {
        Cow::Borrowed(_) => Cow::Owned(String::from_utf8(bytes).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{form_decoded, percent_decoded};

    #[test]
    fn paths_are_decoded_strictly_and_forms_leniently() {
        for (text, path, form) in [
            ("abc", Some("abc"), "abc"),
            ("a%20b+c", Some("a b+c"), "a b c"),
            ("%C3%a9", Some("é"), "é"),
            ("%2e%2E%2f", Some("../"), "../"),
            ("%00", Some("\0"), "\0"),
            ("%", None, "%"),
            ("%4", None, "%4"),
            ("%4x", None, "%4x"),
            ("%+4", None, "% 4"),
            ("%ff", None, "\u{FFFD}"),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), path, "{text}");
            assert_eq!(form_decoded(text), form, "{text}");
        }
    }
}
