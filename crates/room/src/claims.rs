//! The claims of a user, from a verified token.

use std::fmt;
use std::sync::Arc;

use playfield_state::__rt::{JsonMap, Value};
use playfield_wire::ErrorCode;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// The claims of a user, from a verified token: a JSON object, such as the claims of a JWT. Empty
/// for guests.
///
/// A copy shares the object.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Claims(Option<Arc<JsonMap<String, Value>>>);

impl Claims {
    /// The claims in a JSON object.
    pub fn new(claims: JsonMap<String, Value>) -> Self {
        Self((!claims.is_empty()).then(|| Arc::new(claims)))
    }

    /// The claims in the text of a JSON object.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_json(text: &str) -> Result<Self> {
        match serde_json::from_str(text) {
            Ok(claims) => Ok(Self::new(claims)),
            Err(error) => {
                let text = format!("the claims are not a JSON object: {error}");
                Err(Error::new(ErrorCode::BadPayload, text))
            }
        }
    }

    /// The text of the JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.0.as_ref().map_or_else(
            || "{}".into(),
            |claims| serde_json::to_string(&**claims).unwrap_or_default(),
        )
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The claim of this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.get(name)
    }

    /// The claim of this name, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// All claims, as a type that implements `serde::Deserialize`.
    ///
    /// # Errors
    /// `unauthorized`, if a claim is missing or of another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let claims = self.0.as_deref().cloned().unwrap_or_default();
        T::deserialize(Value::Object(claims)).map_err(|error| {
            Error::new(ErrorCode::Unauthorized, format!("the claims of the token: {error}"))
        })
    }
}

/// Names only: values are the user's own.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().flat_map(|claims| claims.keys())).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use playfield_wire::ErrorCode;

    use super::Claims;

    #[test]
    fn claims_are_read_by_name_and_as_a_type() {
        let claims = Claims::from_json(r#"{"role":"admin","level":7}"#).unwrap();
        assert_eq!(claims.text("role"), Some("admin"));
        assert_eq!(claims.get("level").and_then(|level| level.as_u64()), Some(7));
        assert_eq!((claims.text("level"), claims.get("x")), (None, None));
        let wrong = claims.read::<BTreeMap<String, u32>>().unwrap_err();
        assert_eq!(wrong.code(), ErrorCode::Unauthorized);
        assert!(Claims::from_json("{}").unwrap().is_empty());
        assert!(Claims::from_json("[1]").is_err());
        assert_eq!(Claims::default().read::<BTreeMap<String, u32>>().unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_log_shows_names_only() {
        let claims = Claims::from_json(r#"{"email":"ann@example.com"}"#).unwrap();
        assert_eq!(format!("{claims:?}"), r#"{"email"}"#);
    }
}
