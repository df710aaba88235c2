//! `Sec-WebSocket-Extensions` (RFC 6455, 9.1).

use std::borrow::Cow;

use httparse::Header;

use super::{
    HandshakeError,
    head::{token, values},
};

/// One extension in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extension<'a> {
    pub(crate) name: &'a str,
    /// Parameter names and optional values.
    pub(crate) parameters: Vec<(&'a str, Option<Cow<'a, str>>)>,
}

const HEADER: &str = "Sec-WebSocket-Extensions";

/// Parses the list from all lines of the header.
pub(super) fn extensions<'a>(headers: &[Header<'a>]) -> Result<Vec<Extension<'a>>, HandshakeError> {
    let mut extensions = Vec::new();
    for value in values(headers, HEADER) {
        let text =
            std::str::from_utf8(value).map_err(|_| HandshakeError::invalid(HEADER, value))?;
        let mut rest = Rest(text);
        loop {
            // Empty list elements are ignored (RFC 9110, 5.6.1).
            while rest.eat(',') {}
            if rest.is_empty() {
                break;
            }
            extensions
                .push(rest.extension().ok_or_else(|| HandshakeError::invalid(HEADER, value))?);
            if !rest.eat(',') && !rest.is_empty() {
                return Err(HandshakeError::invalid(HEADER, value));
            }
        }
    }
    Ok(extensions)
}

/// The unparsed rest of a line.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn is_empty(&mut self) -> bool {
        self.skip_blanks();
        self.0.is_empty()
    }

    fn eat(&mut self, separator: char) -> bool {
        self.skip_blanks();
        let rest = self.0.strip_prefix(separator);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// `name; parameter; parameter=value`
    fn extension(&mut self) -> Option<Extension<'a>> {
        let name = self.token()?;
        let mut parameters = Vec::new();
        while self.eat(';') {
            let name = self.token()?;
            let value = if self.eat('=') { Some(self.value()?) } else { None };
            parameters.push((name, value));
        }
        Some(Extension { name, parameters })
    }

    fn token(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let end = self.0.find([' ', '\t', ',', ';', '=']).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        token(name.as_bytes())
    }

    /// A token, or a quoted token in which a backslash escapes any character.
    fn value(&mut self) -> Option<Cow<'a, str>> {
        if !self.eat('"') {
            return self.token().map(Cow::Borrowed);
        }
        let mut value = String::new();
        let mut characters = self.0.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    token(value.as_bytes())?;
                    return Some(Cow::Owned(value));
                }
                '\\' => value.push(characters.next()?.1),
                character => value.push(character),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&'static str]) -> Option<Vec<String>> {
        let headers: Vec<_> = lines
            .iter()
            .map(|line| Header { name: "sec-websocket-extensions", value: line.as_bytes() })
            .collect();
        let shown = |extension: &Extension<'_>| {
            let parameters = extension.parameters.iter().map(|(name, value)| match value {
                Some(value) => format!(";{name}={value}"),
                None => format!(";{name}"),
            });
            extension.name.to_owned() + &parameters.collect::<String>()
        };
        extensions(&headers).ok().map(|all| all.iter().map(shown).collect())
    }

    #[test]
    fn lists_in_every_spelling() {
        assert_eq!(read(&[]).unwrap(), [""; 0]);
        assert_eq!(read(&["", " , ,"]).unwrap(), [""; 0]);
        assert_eq!(read(&["a", "b ,c"]).unwrap(), ["a", "b", "c"]);
        assert_eq!(read(&["a ; x\t; y = 1,a;x=\"2\""]).unwrap(), ["a;x;y=1", "a;x=2"]);
        assert_eq!(read(&[r#"a; x="\1\5""#]).unwrap(), ["a;x=15"]);
    }

    #[test]
    fn what_is_no_list() {
        for line in [
            "a b",
            ";",
            "a;",
            "a;;b",
            "a;=1",
            "a;x=",
            "a;x=\"1",
            "a;x=\"1,2\"",
            "a;x=\"\"",
            "a;x=1 2",
            "a=1",
            "\"a\"",
            "a;x=\"1\\",
        ] {
            assert_eq!(read(&[line]), None, "{line}");
        }
    }
}
