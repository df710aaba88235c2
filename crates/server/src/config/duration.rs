//! Durations as settings write them: `250ms`, `30s`, `1m30s`.

use std::fmt::Write;
use std::time::Duration;

/// Units and their length in milliseconds, the longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads a duration: whole numbers, each with its unit. Otherwise says why not.
pub(super) fn read(text: &str) -> Result<Duration, String> {
    let (mut rest, mut sum_ms) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, behind) = after.split_at(letters);
        if number.is_empty() {
            return Err("not a duration".into());
        }
        let Some((_, unit_ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(match unit {
                "" if after.starts_with('.') => {
                    format!("{text} has a fraction: write whole numbers, such as 1s500ms")
                }
                "" if after.starts_with(' ') => format!("{text:?} has a space"),
                "" => format!("{number} has no unit: ms, s, m or h"),
                _ => format!("{unit} is not a unit: it is ms, s, m or h"),
            });
        };
        // All digits, so what does not parse is too large.
        let number_ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
        sum_ms = number_ms.and_then(|ms| sum_ms.checked_add(ms)).ok_or("too long")?;
        rest = behind;
    }
    if text.is_empty() { Err("not a duration".into()) } else { Ok(Duration::from_millis(sum_ms)) }
}

/// Writes a duration, in whole milliseconds.
pub(super) fn text(duration: Duration) -> String {
    let mut rest_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest_ms == 0 {
        return "0s".into();
    }
    let mut text = String::new();
    for (unit, unit_ms) in UNITS {
        let number = rest_ms / unit_ms;
        if number > 0 {
            let _ = write!(text, "{number}{unit}");
        }
        rest_ms %= unit_ms;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{read, text};

    #[test]
    fn a_duration_is_whole_numbers_with_units() {
        for (written, ms, shown) in [
            ("30s", 30_000, "30s"),
            ("250ms", 250, "250ms"),
            ("5m", 300_000, "5m"),
            ("2h", 7_200_000, "2h"),
            ("1m30s", 90_000, "1m30s"),
            ("90s", 90_000, "1m30s"),
            ("1500ms", 1500, "1s500ms"),
            ("0s", 0, "0s"),
            ("0ms", 0, "0s"),
        ] {
            assert_eq!(read(written), Ok(Duration::from_millis(ms)), "{written}");
            assert_eq!(text(Duration::from_millis(ms)), shown);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_reason() {
        for (written, why) in [
            ("", "not a duration"),
            ("s", "not a duration"),
            ("-1s", "not a duration"),
            ("30", "30 has no unit: ms, s, m or h"),
            ("1m30", "30 has no unit: ms, s, m or h"),
            ("1.5s", "1.5s has a fraction: write whole numbers, such as 1s500ms"),
            ("5 s", "\"5 s\" has a space"),
            ("3d", "d is not a unit: it is ms, s, m or h"),
            ("3S", "3 has no unit: ms, s, m or h"),
            ("99999999999999999999s", "too long"),
            ("18446744073709551615h", "too long"),
        ] {
            assert_eq!(read(written), Err(why.to_owned()), "{written}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn every_duration_is_read_as_it_was_written(ms in any::<u64>()) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(read(&text(duration)), Ok(duration));
        }
    }
}
