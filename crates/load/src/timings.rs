//! Times that things took, in HdrHistograms of three significant digits.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Times above this count as this much: one hour, in nanoseconds.
const NS_MAX: u64 = 3_600_000_000_000;

/// Some quantity's times, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Timings(Histogram<u64>);

impl Default for Timings {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three significant digits are supported"))
    }
}

impl Timings {
    /// Adds one time, in nanoseconds.
    pub fn record(&mut self, ns: u64) {
        // The histogram grows as needed, up to the limit.
        let _ = self.0.record(ns.clamp(1, NS_MAX));
    }

    /// Returns the number of times that were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that this percentage of all does not exceed, in milliseconds; 0 without any.
    #[must_use]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        ms(self.0.value_at_percentile(percent))
    }

    /// The longest time, in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        ms(self.0.max())
    }

    /// The mean, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e6
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    /// Adds those of another process.
    pub fn add(&mut self, more: &Self) {
        // Both have the same digits, and this one grows.
        let _ = self.0.add(&more.0);
    }

    /// All that was recorded, as pairs of a value and its count.
    pub(crate) fn to_json(&self) -> Value {
        self.0
            .iter_recorded()
            .map(|step| json!([step.value_iterated_to(), step.count_at_value()]))
            .collect()
    }

    /// Timings that [`to_json`](Self::to_json) wrote.
    pub(crate) fn from_json(value: &Value) -> Self {
        let mut timings = Self::default();
        for pair in value.as_array().into_iter().flatten() {
            if let (Some(ns), Some(count)) = (pair[0].as_u64(), pair[1].as_u64()) {
                let _ = timings.0.record_n(ns.clamp(1, NS_MAX), count);
            }
        }
        timings
    }
}

fn ms(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e3
}

/// The timings of a run, by what was timed.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllTimings {
    pub(crate) connect: Timings,
    pub(crate) join: Timings,
    pub(crate) ping: Timings,
    /// The lateness of patches.
    pub(crate) lateness: Timings,
    /// The time between two patches of a room.
    pub(crate) interval: Timings,
    /// Publications, from when they were due until a subscription received them.
    pub(crate) delivery: Timings,
    /// Replies to all messages.
    pub(crate) reply: Timings,
    /// Replies to each message.
    pub(crate) messages: Vec<(String, Timings)>,
}

impl AllTimings {
    pub(crate) fn new(messages: impl IntoIterator<Item = String>) -> Self {
        let messages = messages.into_iter().map(|name| (name, Timings::default())).collect();
        Self { messages, ..Self::default() }
    }

    /// A reply to the message with this number.
    pub(crate) fn replied(&mut self, message: usize, ns: u64) {
        self.reply.record(ns);
        if let Some((_, timings)) = self.messages.get_mut(message) {
            timings.record(ns);
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        for (own, more) in self.named_mut().into_iter().zip(more.named()) {
            own.add(more);
        }
        for (name, timings) in &more.messages {
            match self.messages.iter_mut().find(|(known, _)| known == name) {
                Some((_, own)) => own.add(timings),
                None => self.messages.push((name.clone(), timings.clone())),
            }
        }
    }

    /// The timings that every run has: their names and values.
    pub(crate) fn named(&self) -> [&Timings; 7] {
        let Self { connect, join, ping, lateness, interval, delivery, reply, .. } = self;
        [connect, join, ping, lateness, interval, delivery, reply]
    }

    fn named_mut(&mut self) -> [&mut Timings; 7] {
        let Self { connect, join, ping, lateness, interval, delivery, reply, .. } = self;
        [connect, join, ping, lateness, interval, delivery, reply]
    }

    pub(crate) const NAMES: [&'static str; 7] =
        ["connect", "join", "ping", "lateness", "interval", "delivery", "reply"];

    pub(crate) fn to_json(&self) -> Value {
        let named: Vec<_> = self.named().into_iter().map(Timings::to_json).collect();
        let messages: Vec<_> =
            self.messages.iter().map(|(name, timings)| json!([name, timings.to_json()])).collect();
        json!([named, messages])
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        let mut all = Self::default();
        for (own, value) in
            all.named_mut().into_iter().zip(value[0].as_array().into_iter().flatten())
        {
            *own = Timings::from_json(value);
        }
        all.messages = value[1]
            .as_array()
            .into_iter()
            .flatten()
            .map(|pair| {
                (pair[0].as_str().unwrap_or_default().to_owned(), Timings::from_json(&pair[1]))
            })
            .collect();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::AllTimings;

    #[test]
    fn timings_come_back_from_json_and_add_up() {
        let mut all = AllTimings::new(["add".to_owned()]);
        (1..=1000).for_each(|us| all.replied(0, us * 1000));
        all.connect.record(5);
        let mut sum = AllTimings::from_json(&all.to_json());
        assert_eq!(sum.reply.count(), 1000);
        sum.add(&all);
        assert_eq!(
            (sum.reply.count(), sum.messages[0].1.count(), sum.connect.count()),
            (2000, 2000, 2)
        );
        let median = sum.reply.percentile_ms(50.0);
        assert!((0.499..0.502).contains(&median), "{median}");
    }
}
