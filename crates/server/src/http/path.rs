//! Paths of requests, and their percent-encoding (RFC 3986, 2.1).

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
            let (&[high, low], after) = rest.split_first_chunk()?;
            let digit = |byte| char::from(byte).to_digit(16);
            bytes.push((digit(high)? << 4 | digit(low)?) as u8);
            rest = after;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The segments of a request's path, decoded; `None` if one can't be.
pub(super) fn decoded(path: &str) -> Option<Vec<Cow<'_, str>>> {
    path.strip_prefix('/')?.split('/').map(percent_decoded).collect()
}

/// Encodes a path as clients send it. A parameter such as `{id}` stays as it is.
pub(super) fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/{}".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded, percent_decoded};

    #[test]
    fn paths_are_encoded_as_clients_send_them() {
        for (plain, sent) in
            [("/a b/{id}", "/a%20b/{id}"), ("/é", "/%C3%A9"), ("/a.b-c_d~/", "/a.b-c_d~/")]
        {
            assert_eq!(encoded(plain), sent);
            assert_eq!(percent_decoded(sent).as_deref(), Some(plain));
        }
    }

    #[test]
    fn what_is_not_validly_encoded_is_none() {
        for text in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(percent_decoded(text), None, "{text}");
        }
        assert!(decoded("/%f").is_none() && decoded("*").is_none());
        assert_eq!(decoded("/a%2Fb/c").unwrap(), ["a/b", "c"]);
    }
}
