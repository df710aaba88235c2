//! Places in a state.

use std::fmt;
use std::sync::Arc;

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// To a member of an object: a field, or the entry of a map under its key.
    Name(Arc<str>),
    /// To the element of an array.
    Index(usize),
}

/// The steps from the root of a state to a place in it.
///
/// It displays as its steps with dots between them. A name with characters other than letters,
/// digits, `_` and `-` is quoted:
///
/// ```
/// use playfield_state::{Path, PathStep};
///
/// let path = Path(vec![PathStep::Name("log".into()), PathStep::Index(2), PathStep::Name("a.b".into())]);
/// assert_eq!(path.to_string(), r#"log.2."a.b""#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(pub Vec<PathStep>);

impl Path {
    /// Its steps, from the root.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            step.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Name(name) if !name.is_empty() && name.chars().all(plain) => f.write_str(name),
            Self::Name(name) => serde_json::Value::from(&**name).fmt(f),
        }
    }
}
