//! What a case reports.

use serde_json::Value;

/// Named values in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Record(Vec<(String, Value)>);

impl Record {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a measured number, rounded to three decimals: more is noise.
    #[must_use]
    pub fn measured(self, name: &str, value: f64) -> Self {
        self.with(name, (value * 1e3).round() / 1e3)
    }

    /// One line of JSON, without the end of the line.
    pub fn line(&self) -> String {
        let members: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn a_line_keeps_the_order_and_three_decimals() {
        let record =
            Record::new().with("suite", "a \"b\"").with("count", 3).measured("us", 1.234_56);
        assert_eq!(record.line(), r#"{"suite":"a \"b\"","count":3,"us":1.235}"#);
    }
}
