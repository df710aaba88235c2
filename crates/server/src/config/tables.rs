//! Settings of several numbers that belong together: a limit with its share for an address, a rate
//! with its burst, and the like. In a file each is a table.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::closest;
use super::value::Value;

macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $help:literal])+ $part:ident,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $help])+ pub $part: usize,)+
        }

        impl Value for $name {
            const PARTS: &'static [&'static str] = &[$(stringify!($part)),+];
            type Range = [RangeInclusive<usize>; [$(stringify!($part)),+].len()];

            fn describe(range: &Self::Range, _default: &str) -> String {
                let [$($part),+] = range;
                inline([$((stringify!($part), format!("{:?}", $part))),+])
            }

            fn parse(text: &str, range: &Self::Range) -> Result<Self, String> {
                let mut value = Self::default();
                value.update(text, range)?;
                Ok(value)
            }

            fn text(&self) -> String {
                inline([$((stringify!($part), self.$part.to_string())),+])
            }

            fn update(&mut self, text: &str, range: &Self::Range) -> Result<(), String> {
                replace(self, text, range)
            }

            fn describe_part(range: &Self::Range, part: &str) -> String {
                let [$($part),+] = range;
                $(if part == stringify!($part) {
                    return usize::describe($part, "");
                })+
                String::new()
            }

            fn set_part(
                &mut self,
                part: &str,
                text: &str,
                range: &Self::Range,
            ) -> Result<(), String> {
                let [$($part),+] = range;
                $(if part == stringify!($part) {
                    self.$part = Value::parse(text, $part)?;
                    return Ok(());
                })+
                Err(no_part::<Self>(part))
            }

            fn part(&self, part: &str) -> Option<String> {
                $(if part == stringify!($part) {
                    return Some(self.$part.to_string());
                })+
                None
            }
        }
    };
}

table! {
    /// A limit of the node, and the share of it that one address may have.
    Quota {
        /// The maximum of the node.
        total,
        /// The maximum of one address.
        per_address,
    }
}

table! {
    /// Bytes that wait to be sent to a client.
    OutboxBytes {
        /// The maximum.
        max,
        /// While more than this wait, nothing is read from the client.
        high,
    }
}

table! {
    /// The longest names, in bytes.
    NameBytes {
        /// Of a player, as others see it.
        player,
        /// Of a channel.
        channel,
        /// Of a device, and of one of its tags.
        device,
    }
}

table! {
    /// The longest lists in one answer.
    Listed {
        /// Rooms, in the answer to `list`.
        rooms,
        /// Members of a channel, in the answer to `members`.
        members,
        /// Publications, in the answer to `history`.
        publications,
    }
}

table! {
    /// The longest queues.
    Queues {
        /// Messages to a shard, from other shards.
        mail,
        /// Requests to rooms from outside that are unanswered: from HTTP handlers, services and
        /// the program.
        asks,
        /// Background tasks of all rooms.
        tasks,
        /// Computations of all rooms.
        computations,
        /// Clients whose authentication waits, for a database or a web service.
        authentications,
    }
}

table! {
    /// The limits of a device.
    DeviceLimits {
        /// Its tags.
        tags,
        /// The size of its metadata, in bytes.
        metadata_bytes,
        /// Requests to it that it has not answered.
        commands,
    }
}

/// The time that the number of a [`RateLimit`] is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// A second.
    #[default]
    Second,
    /// A minute.
    Minute,
}

/// A rate, and how many may come at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// The number in the time.
    pub count: u64,
    /// The time.
    pub per: Per,
    /// The number at once; `None` is as many as `count`.
    pub burst: Option<u64>,
}

impl RateLimit {
    /// This many each second, and as many at once.
    #[must_use]
    pub const fn per_second(count: u64) -> Self {
        Self { count, per: Per::Second, burst: None }
    }

    /// This many each minute, and as many at once.
    #[must_use]
    pub const fn per_minute(count: u64) -> Self {
        Self { count, per: Per::Minute, burst: None }
    }

    /// Returns the number that may come at once.
    #[must_use]
    pub fn burst(self) -> u64 {
        self.burst.unwrap_or(self.count)
    }
}

impl Per {
    /// The time itself.
    #[must_use]
    pub const fn time(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_secs(60),
        }
    }

    /// The unit as text.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
        }
    }

    /// The part of a table that has the number.
    const fn part(self) -> &'static str {
        match self {
            Self::Second => "per_second",
            Self::Minute => "per_minute",
        }
    }
}

impl Value for RateLimit {
    const PARTS: &'static [&'static str] = &["per_second", "per_minute", "burst"];
    /// Of the number, and of the burst.
    type Range = [RangeInclusive<u64>; 2];

    fn describe([count, burst]: &Self::Range, _default: &str) -> String {
        format!("{{ per_second = {count:?}, burst = {burst:?} }}, or per_minute")
    }

    fn parse(text: &str, range: &Self::Range) -> Result<Self, String> {
        let mut value = Self::default();
        value.update(text, range)?;
        Ok(value)
    }

    fn text(&self) -> String {
        let burst = self.burst.map(|burst| ("burst", burst.to_string()));
        inline([(self.per.part(), self.count.to_string())].into_iter().chain(burst))
    }

    fn update(&mut self, text: &str, range: &Self::Range) -> Result<(), String> {
        if text.contains("per_second") && text.contains("per_minute") {
            return Err("both per_second and per_minute; choose one".into());
        }
        replace(self, text, range)
    }

    fn describe_part([count, burst]: &Self::Range, part: &str) -> String {
        u64::describe(if part == "burst" { burst } else { count }, "")
    }

    fn set_part(&mut self, part: &str, text: &str, range: &Self::Range) -> Result<(), String> {
        let [count, burst] = range;
        match part {
            "per_second" | "per_minute" => {
                let is_slow = part == "per_second" && text.contains('.');
                self.count = Value::parse(text, count).map_err(|why| match is_slow {
                    true => format!("{why}; per_minute takes slower rates"),
                    false => why,
                })?;
                self.per = if part == "per_second" { Per::Second } else { Per::Minute };
                // The burst of another rate would let through many times what this one does.
                self.burst = None;
            }
            "burst" => self.burst = Some(Value::parse(text, burst)?),
            _ => return Err(no_part::<Self>(part)),
        }
        Ok(())
    }

    fn part(&self, part: &str) -> Option<String> {
        match part {
            "burst" => self.burst.map(|burst| burst.to_string()),
            _ => (part == self.per.part()).then(|| self.count.to_string()),
        }
    }
}

/// Writes a table in one line.
fn inline(parts: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let parts: Vec<String> =
        parts.into_iter().map(|(part, value)| format!("{part} = {value}")).collect();
    format!("{{ {} }}", parts.join(", "))
}

/// Reads the parts that a table in one line names. Nothing is changed if one is wrong.
fn replace<T: Value + Copy>(value: &mut T, text: &str, range: &T::Range) -> Result<(), String> {
    let mut changed = *value;
    let known = || T::PARTS.join(", ");
    let table = text
        .starts_with('{')
        .then(|| format!("table = {text}").parse::<toml::Table>().ok())
        .flatten()
        .ok_or_else(|| format!("not a table of {}", known()))?;
    let Some(parts) = table["table"].as_table().filter(|_| table.len() == 1) else {
        return Err(format!("not a table of {}", known()));
    };
    // A part may change those behind it.
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|(part, _)| T::PARTS.iter().position(|known| known == part));
    for (part, value) in parts {
        let text = match value {
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => format!("{number:?}"),
            _ => return Err(format!("{part} is not a whole number")),
        };
        changed.set_part(part, &text, range).map_err(|why| {
            if T::PARTS.contains(&part.as_str()) { format!("{part} is {why}") } else { why }
        })?;
    }
    *value = changed;
    Ok(())
}

fn no_part<T: Value>(part: &str) -> String {
    match closest(part, T::PARTS.iter().copied()) {
        Some(meant) => format!("it has no part {part}; did you mean {meant}?"),
        None => format!("it has no part {part}; its parts are {}", T::PARTS.join(", ")),
    }
}
