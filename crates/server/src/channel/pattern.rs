//! The channels that a rule is for.

use std::fmt;

/// The segments of names and patterns are split by this.
const SEPARATOR: char = ':';

/// A pattern of channel names: segments separated by `:`. `*` matches one segment, `**` at the end
/// matches one or more, and `{user}` matches the verified user of the session.
///
/// A pattern is matched in one pass, whatever the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    segments: Vec<Segment>,
    /// Whether it ends with `**`.
    is_open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Exactly(Box<str>),
    Any,
    User,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.segments.iter().map(|segment| match segment {
            Segment::Exactly(text) => &**text,
            Segment::Any => "*",
            Segment::User => "{user}",
        });
        for (at, text) in texts.chain(self.is_open.then_some("**")).enumerate() {
            let separator = if at > 0 { ":" } else { "" };
            write!(f, "{separator}{text}")?;
        }
        Ok(())
    }
}

/// A text that is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    pattern: String,
    why: &'static str,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pattern {:?} {}", self.pattern, self.why)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If a segment is empty, `**` is not the last, or a segment has `*`, `{` or `}` beside others.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let refuse = |why| Err(PatternError { pattern: text.into(), why });
        let mut segments = Vec::new();
        let mut is_open = false;
        for segment in text.split(SEPARATOR) {
            if is_open {
                return refuse("goes on after `**`");
            }
            match segment {
                "" => return refuse("has an empty segment"),
                "*" => segments.push(Segment::Any),
                "{user}" => segments.push(Segment::User),
                "**" => is_open = true,
                _ if segment.contains(['*', '{', '}']) => {
                    return refuse("has a segment that is neither text, `*`, `**` nor `{user}`");
                }
                _ => segments.push(Segment::Exactly(segment.into())),
            }
        }
        Ok(Self { segments, is_open })
    }

    /// Returns whether it matches the channel with this name. Here `{user}` matches any segment, since a
    /// channel has the same rule for every user.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.fits(name, |_| true)
    }

    /// Returns whether a session of this user may use the channel with this name, which the pattern
    /// [matches](Self::matches): `{user}` has to be this user.
    #[must_use]
    pub fn admits(&self, name: &str, user: Option<&str>) -> bool {
        self.fits(name, |segment| Some(segment) == user)
    }

    fn fits(&self, name: &str, is_user: impl Fn(&str) -> bool) -> bool {
        let mut names = name.split(SEPARATOR);
        for segment in &self.segments {
            let Some(name) = names.next() else { return false };
            let fits = match segment {
                Segment::Exactly(text) => **text == *name,
                Segment::Any => true,
                Segment::User => is_user(name),
            };
            if !fits {
                return false;
            }
        }
        names.next().is_some() == self.is_open
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn segments_match_one_by_one() {
        assert!(matches("news", "news"));
        assert!(!matches("news", "news:uk") && !matches("news", "new"));
        assert!(matches("chat:*", "chat:lobby"));
        assert!(!matches("chat:*", "chat") && !matches("chat:*", "chat:a:b"));
        assert!(matches("chat:*:log", "chat:a:log") && !matches("chat:*:log", "chat:a:b"));
        assert!(matches("chat:**", "chat:a") && matches("chat:**", "chat:a:b:c"));
        assert!(!matches("chat:**", "chat"));
        assert!(matches("**", "anything") && matches("**", "any:thing"));
    }

    #[test]
    fn a_user_s_segment_is_the_user_s_alone() {
        let inbox = Pattern::new("inbox:{user}").unwrap();
        assert!(inbox.matches("inbox:ann") && inbox.matches("inbox:bob"));
        assert!(inbox.admits("inbox:ann", Some("ann")));
        assert!(!inbox.admits("inbox:bob", Some("ann")));
        assert!(!inbox.admits("inbox:", None) && !inbox.admits("inbox:ann", None));
        let open = Pattern::new("chat:*").unwrap();
        assert!(open.admits("chat:a", None));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_reason() {
        for pattern in ["", "a::b", ":a", "a:", "**:a", "a*", "{me}", "a:{user}x", "***"] {
            let error = Pattern::new(pattern).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the pattern {pattern:?} ")), "{error}");
        }
    }

    #[test]
    fn a_long_name_is_matched_in_one_pass() {
        let pattern = Pattern::new(&["*"; 1000].join(":")).unwrap();
        let name = ["a"; 1001].join(":");
        assert!(!pattern.matches(&name));
        assert!(pattern.matches(&name[2..]));
    }
}
