//! The report of a case.

use serde_json::Value;

/// Named values, in insertion order.
#[derive(Clone, Debug, Default)]
pub struct Record(Vec<(String, Value)>);

impl Record {
    /// Creates an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a measurement, rounded to three decimals. More digits would be noise.
    #[must_use]
    pub fn measured(self, name: &str, value: f64) -> Self {
        self.with(name, (value * 1e3).round() / 1e3)
    }

    /// Formats the record as JSON on one line, without a line ending.
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
