//! Text that an operator looks for.

/// A text to find in others, in upper or lower case.
pub(crate) struct Sought {
    lower: String,
}

impl Sought {
    pub(crate) fn new(text: &str) -> Self {
        Self { lower: text.to_lowercase() }
    }

    /// Returns whether it occurs in this text; an empty one occurs in all.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let sought = self.lower.as_bytes();
        if sought.is_empty() {
            return true;
        }
        if text.is_ascii() {
            // Without memory: this is asked of every room and every player.
            return text
                .as_bytes()
                .windows(sought.len())
                .any(|part| sought.eq_ignore_ascii_case(part));
        }
        text.to_lowercase().contains(&self.lower)
    }

    /// Returns whether it is all of this text.
    pub(crate) fn is(&self, text: &str) -> bool {
        text.to_lowercase() == self.lower
    }
}

#[cfg(test)]
mod tests {
    use super::Sought;

    #[test]
    fn text_is_found_in_either_case() {
        for (sought, text) in
            [("", ""), ("", "a"), ("ANN", "Joanna"), ("ölaf", "ÖLAF 2"), ("na", "na")]
        {
            assert!(Sought::new(sought).is_in(text), "{sought} in {text}");
        }
        for (sought, text) in [("ann", ""), ("ann", "an"), ("é", "e"), ("ann", "a\u{301}nn")] {
            assert!(!Sought::new(sought).is_in(text), "{sought} in {text}");
        }
        assert!(Sought::new("Ann").is("aNN") && !Sought::new("Ann").is("Anna"));
    }
}
