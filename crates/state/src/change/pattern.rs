//! Sets of paths.

use std::fmt;
use std::str::FromStr;

use super::{Path, PathStep};

/// A set of [paths](Path), written as a path in which `*` matches any one step and `**` any number
/// of steps, including none.
///
/// Names are quoted as in a path. A number matches the element at that index and the member of that
/// name alike.
///
/// ```
/// use playfield_state::{Path, PathStep, Pattern};
///
/// let name = |name: &str| PathStep::Name(name.into());
/// let path = Path(vec![name("players"), name("7"), name("hp")]);
/// for pattern in ["players.*.hp", "players.7.hp", "players.**", "**.hp", "**"] {
///     assert!(pattern.parse::<Pattern>()?.matches(&path), "{pattern}");
/// }
/// for pattern in ["players", "players.*", "players.*.hp.*", "*.hp"] {
///     assert!(!pattern.parse::<Pattern>()?.matches(&path), "{pattern}");
/// }
/// # Ok::<_, playfield_state::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// One step of this name, or to this index.
    Step(String),
    /// Any one step.
    One,
    /// Any steps.
    Any,
}

/// A text that is not a [`Pattern`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    pattern: String,
    what: &'static str,
}

impl Pattern {
    /// Returns whether the path matches.
    pub fn matches(&self, path: &Path) -> bool {
        let (parts, steps) = (&self.parts, path.steps());
        let (mut part, mut step) = (0, 0);
        // Where to resume if what follows the last `**` does not match: `**` then takes one more
        // step.
        let mut retry = None;
        while step < steps.len() {
            match parts.get(part) {
                Some(Part::Any) => {
                    retry = Some((part + 1, step + 1));
                    part += 1;
                }
                Some(wanted) if wanted.is(&steps[step]) => {
                    part += 1;
                    step += 1;
                }
                _ => {
                    let Some((behind, next)) = retry else { return false };
                    (part, step) = (behind, next);
                    retry = Some((behind, next + 1));
                }
            }
        }
        parts[part..].iter().all(|part| *part == Part::Any)
    }
}

impl Part {
    fn is(&self, step: &PathStep) -> bool {
        match (self, step) {
            (Self::Step(wanted), PathStep::Name(name)) => **wanted == **name,
            (Self::Step(wanted), PathStep::Index(index)) => *wanted == index.to_string(),
            (Self::One | Self::Any, _) => true,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(pattern: &str) -> Result<Self, PatternError> {
        let refuse = |what| PatternError { pattern: pattern.to_owned(), what };
        let mut parts = Vec::new();
        let mut rest = pattern;
        loop {
            let (part, behind) = if rest.starts_with('"') {
                let end = quoted_end(rest).ok_or_else(|| refuse("an unterminated quote"))?;
                let name = serde_json::from_str(&rest[..end])
                    .map_err(|_| refuse("an invalid quoted name"))?;
                (Part::Step(name), &rest[end..])
            } else {
                let end = rest.find('.').unwrap_or(rest.len());
                let part = match &rest[..end] {
                    "" => return Err(refuse("an empty step")),
                    "*" => Part::One,
                    "**" => Part::Any,
                    name if name.contains(['*', '"']) => {
                        return Err(refuse("a `*` or a quote inside a step: quote all of it"));
                    }
                    name => Part::Step(name.to_owned()),
                };
                (part, &rest[end..])
            };
            parts.push(part);
            match behind.strip_prefix('.') {
                Some(behind) => rest = behind,
                None if behind.is_empty() => return Ok(Self { parts }),
                None => return Err(refuse("no dot after a quoted name")),
            }
        }
    }
}

/// The end of the quoted name that the text begins with.
fn quoted_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(at, letter)| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends.then_some(at + 1)
    })
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pattern, what } = self;
        write!(f, "{pattern:?} is not a pattern such as players.*.hp: it has {what}")
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &str) -> Path {
        let step = |step: &str| match step.parse() {
            Ok(index) => PathStep::Index(index),
            Err(_) => PathStep::Name(step.into()),
        };
        Path(steps.split('/').filter(|step| !step.is_empty()).map(step).collect())
    }

    fn matches(pattern: &str, steps: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().matches(&path(steps))
    }

    #[test]
    fn stars_match_steps() {
        for (pattern, yes, no) in [
            ("a.*.c", &["a/b/c", "a/1/c"][..], &["a/c", "a/b/b/c", "a/b"][..]),
            ("**", &["", "a", "a/b"], &[]),
            ("a.**", &["a", "a/b/c"], &["b", ""]),
            ("**.c", &["c", "a/c", "c/c", "a/b/c"], &["a", "c/a", ""]),
            ("a.**.c.**.e", &["a/c/e", "a/x/c/c/y/e", "a/c/c/e/e"], &["a/e", "a/c/d", "a/x/e/c"]),
            ("**.*", &["a", "a/b"], &[""]),
            ("list.3", &["list/3"], &["list/33"]),
            (r#""list"."3""#, &["list/3"], &["list"]),
            (r#""a.b".*"#, &["a.b/c"], &["a/b/c"]),
            (r#""*"."\"""#, &["*/\""], &["a/\""]),
        ] {
            yes.iter().for_each(|path| assert!(matches(pattern, path), "{pattern} {path}"));
            no.iter().for_each(|path| assert!(!matches(pattern, path), "{pattern} {path}"));
        }
    }

    #[test]
    fn a_pattern_takes_no_longer_than_both_lengths_multiplied() {
        let pattern = vec!["**.a"; 200].join(".") + ".b";
        assert!(!matches(&pattern, &"a/".repeat(2_000)));
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        let say = |pattern: &str| pattern.parse::<Pattern>().unwrap_err().to_string();
        assert_eq!(
            say("a..b"),
            r#""a..b" is not a pattern such as players.*.hp: it has an empty step"#
        );
        for bad in
            ["", ".", "a.", ".a", "a*", "***", "a\"b\"", "\"a", "\"a\"b", "\"\\\"", "\"\\q\""]
        {
            assert!(say(bad).contains("is not a pattern"));
        }
    }

    #[test]
    fn a_path_is_a_pattern_of_itself() {
        for name in ["a", "a.b", "*", "", "\"", "\\", "é", "a b", "\u{1}"] {
            let path = Path(vec![PathStep::Name(name.into()), PathStep::Index(7)]);
            assert!(path.to_string().parse::<Pattern>().unwrap().matches(&path), "{path}");
        }
    }
}
