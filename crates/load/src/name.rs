//! Names that depend on a connection's number.

/// A name in which `{n}` is the connection's number, from 0; `{n/10}` is the same for every 10
/// connections in a row, and `{n%10}` is one of 10 numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Number,
    Quotient(usize),
    Rest(usize),
}

impl Name {
    /// Reads a name. In it, only `{n}`, `{n/N}` and `{n%N}` may stand between braces. `None` if it
    /// is empty or has others.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (number, after) = after.split_once('}')?;
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            let number = number.strip_prefix('n')?;
            let parse = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
            parts.push(match number.split_at_checked(1) {
                None if number.is_empty() => Part::Number,
                Some(("/", digits)) => Part::Quotient(parse(digits)?),
                Some(("%", digits)) => Part::Rest(parse(digits)?),
                _ => return None,
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        (!parts.is_empty() && !rest.contains('}')).then_some(Self(parts))
    }

    /// The name for the connection with this number.
    pub(crate) fn of(&self, number: usize) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Number => number.to_string(),
            Part::Quotient(by) => (number / by).to_string(),
            Part::Rest(by) => (number % by).to_string(),
        };
        self.0.iter().map(part).collect()
    }
}

/// The token of the connection with this number: a name, or the same for all.
pub(crate) fn token_of(token: &[u8], number: usize) -> Vec<u8> {
    match std::str::from_utf8(token) {
        Ok(text) => player_name_of(text, number).into_bytes(),
        Err(_) => token.to_vec(),
    }
}

/// The player's name on the connection with this number: made from a [`Name`], or the same for all.
pub(crate) fn player_name_of(text: &str, number: usize) -> String {
    Name::parse(text).map_or_else(|| text.to_owned(), |name| name.of(number))
}

#[cfg(test)]
mod tests {
    use super::{Name, player_name_of, token_of};

    #[test]
    fn players_have_the_numbers_of_their_connections_in_their_names() {
        assert_eq!(player_name_of("bot {n}", 7), "bot 7");
        for name in ["", "bot", "{bot}"] {
            assert_eq!(player_name_of(name, 7), name);
        }
    }

    #[test]
    fn a_token_that_is_no_name_is_the_same_for_all() {
        assert_eq!(token_of(b"user-{n}", 7), b"user-7");
        for token in [&b""[..], b"secret", br#"{"user":1}"#, b"\xff{n}"] {
            assert_eq!(token_of(token, 7), token);
        }
    }

    #[test]
    fn a_name_has_the_number_of_its_connection() {
        for (text, expected) in [
            ("news", "news"),
            ("pump-{n}", "pump-1234"),
            ("chat:{n/100}:{n%100}!", "chat:12:34!"),
            ("{n}", "1234"),
        ] {
            let name = Name::parse(text).map(|name| name.of(1234));
            assert_eq!(name.as_deref(), Some(expected));
        }
        for text in ["", "{}", "{m}", "{n", "n}", "{n/0}", "{n/}", "{n%x}", "{n*2}", "{né}"] {
            assert_eq!(Name::parse(text), None, "{text:?}");
        }
    }
}
