//! A figure before and now: has it changed beyond the noise?

use std::fmt;

/// The least change of CPU time that is not noise, as a part of it.
pub const CPU_NOISE: f64 = 0.05;
/// The same of bytes: players move otherwise each time.
pub const BYTES_NOISE: f64 = 0.02;
/// The same of memory, which the system gives in pages.
pub const MEMORY_NOISE: f64 = 0.1;

/// The direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less of it is better: times, bytes.
    Less,
    /// More of it is better: rates.
    More,
}

/// The meaning of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Worse by more than the noise.
    Worse,
    /// A difference beyond the noise of a quiet machine, and the machine was not quiet.
    TooNoisy,
    /// Better by more than the noise.
    Better,
    /// No change beyond the noise.
    Equal,
}

impl Finding {
    /// Its name in texts and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::TooNoisy => "too noisy to say",
            Self::Better => "better",
            Self::Equal => "equal",
        }
    }
}

/// A figure before and now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The name of the figure.
    pub name: String,
    /// Before.
    pub before: f64,
    /// Now.
    pub now: f64,
    /// A change of this part of it, or less, is noise.
    pub noise: f64,
    /// The direction in which it is better.
    pub better: Better,
    /// Says whether the machine was quiet both times.
    pub is_quiet: bool,
}

impl Change {
    /// A figure before and now, on a quiet machine; less is better.
    #[must_use]
    pub fn of(name: impl Into<String>, [before, now]: [f64; 2], noise: f64) -> Self {
        Self { name: name.into(), before, now, noise, better: Better::Less, is_quiet: true }
    }

    /// The change as a part of what was before; infinite if there was nothing.
    #[must_use]
    pub fn part(&self) -> f64 {
        match (self.before > 0.0, self.now > 0.0) {
            (true, _) => self.now / self.before - 1.0,
            (false, true) => f64::INFINITY,
            (false, false) => 0.0,
        }
    }

    /// Returns whether it has changed by more than the noise.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.part().abs() > self.noise
    }

    /// The meaning of the change.
    #[must_use]
    pub fn finding(&self) -> Finding {
        let is_more = self.part() > 0.0;
        match self.is_real() {
            false => Finding::Equal,
            true if !self.is_quiet => Finding::TooNoisy,
            true if is_more == (self.better == Better::More) => Finding::Better,
            true => Finding::Worse,
        }
    }

    /// Returns whether it has got worse by more than the noise.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.finding() == Finding::Worse
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, before, now, noise, .. } = self;
        let part = self.part() * 100.0;
        match self.is_real() {
            true if part.is_infinite() => write!(f, "{name}: none before, {now:.4} now"),
            true if *now <= 0.0 => write!(f, "{name}: {before:.4} before, none now"),
            true => write!(f, "{part:+.1} % {name}: {before:.4} → {now:.4}"),
            false => write!(f, "{name}: no change beyond the noise of {:.0} %", noise * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Change, Finding};

    #[test]
    fn a_change_beyond_the_noise_is_worse_or_better_or_not_to_be_said() {
        let time = |now| Change::of("us", [100.0, now], 0.05);
        assert_eq!(time(104.9).finding(), Finding::Equal);
        assert_eq!(time(105.1).finding(), Finding::Worse);
        assert_eq!(time(94.0).finding(), Finding::Better);
        let rate = |now| Change { better: Better::More, ..time(now) };
        assert_eq!(
            (rate(106.0).finding(), rate(94.0).finding()),
            (Finding::Better, Finding::Worse)
        );
        let noisy = |now| Change { is_quiet: false, ..time(now) };
        assert_eq!(noisy(200.0).finding(), Finding::TooNoisy);
        assert_eq!(noisy(101.0).finding(), Finding::Equal);
    }

    #[test]
    fn a_figure_that_comes_or_goes_has_changed() {
        let of = |before, now| Change::of("bytes", [before, now], 0.02);
        assert_eq!(of(0.0, 250.0).finding(), Finding::Worse);
        assert_eq!(of(0.0, 250.0).to_string(), "bytes: none before, 250.0000 now");
        assert_eq!(of(250.0, 0.0).finding(), Finding::Better);
        assert_eq!(of(250.0, 0.0).to_string(), "bytes: 250.0000 before, none now");
        assert_eq!(of(0.0, 0.0).finding(), Finding::Equal);
    }
}
