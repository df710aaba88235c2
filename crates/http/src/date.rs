//! Dates in headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 24 * 60 * 60;
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The end of the year 9999: a year has four digits.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// A date as headers have it (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. A time before 1970
/// is written as 1970, and one after the year 9999 as its end.
pub fn http_date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().min(LAST).as_secs();
    let (days, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let weekday = WEEKDAYS[(days % 7) as usize];
    // In years that begin with March, the leap day comes last, and months have a pattern: see
    // Howard Hinnant, "chrono-compatible low-level date algorithms".
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + u64::from(month >= 10);
    let month = MONTHS[((month + 2) % 12) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::http_date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (u64::MAX / 4, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
            if let Some(time) = time {
                assert_eq!(http_date(time), expected);
            }
        }
    }
}
