//! Values of settings: how each kind is read, written and described.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use log::LevelFilter;

use super::{ClientUrl, Descriptors, EngineUrl, Network, Origin, Secret, duration};

/// A value of a setting.
pub(super) trait Value: Sized {
    /// Says that it is shown nowhere.
    const IS_SECRET: bool = false;
    /// Says that it may be a list in a file.
    const IS_LIST: bool = false;
    /// The names of its parts, if it is a table.
    const PARTS: &'static [&'static str] = &[];
    /// The limits beyond those of its type.
    type Range;

    /// Describes what it may be, for people.
    fn describe(range: &Self::Range, default: &str) -> String;

    /// Reads it, or says why it can't.
    fn parse(text: &str, range: &Self::Range) -> Result<Self, String>;

    /// Writes it in the form that `parse` reads.
    fn text(&self) -> String;

    /// Reads a text in place of this value. A table keeps the parts that the text does not name,
    /// except the burst of a rate, which goes with its number.
    fn update(&mut self, text: &str, range: &Self::Range) -> Result<(), String> {
        *self = Self::parse(text, range)?;
        Ok(())
    }

    /// Describes what one of its [parts](Self::PARTS) may be.
    fn describe_part(_range: &Self::Range, _part: &str) -> String {
        String::new()
    }

    /// Reads one of its [parts](Self::PARTS).
    fn set_part(&mut self, part: &str, _text: &str, _range: &Self::Range) -> Result<(), String> {
        Err(format!("it has no part {part}"))
    }

    /// Writes one of its [parts](Self::PARTS), unless that is not set.
    fn part(&self, _part: &str) -> Option<String> {
        None
    }
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Value for $number {
            type Range = RangeInclusive<$number>;

            fn describe(range: &Self::Range, _default: &str) -> String {
                format!("{range:?}")
            }

            fn parse(text: &str, range: &Self::Range) -> Result<Self, String> {
                if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err("not a whole number".into());
                }
                // All digits, so what does not parse is too large.
                match text.parse() {
                    Ok(value) if range.contains(&value) => Ok(value),
                    Ok(value) if value < *range.start() => Err("too small".into()),
                    _ => Err("too large".into()),
                }
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

number!(usize, u64);

impl Value for Duration {
    type Range = RangeInclusive<Self>;

    fn describe(range: &Self::Range, default: &str) -> String {
        let (least, most) = (duration::text(*range.start()), duration::text(*range.end()));
        format!("a duration such as {default:?}, from {least} to {most}")
    }

    fn parse(text: &str, range: &Self::Range) -> Result<Self, String> {
        match duration::read(text)? {
            value if range.contains(&value) => Ok(value),
            value if value < *range.start() => Err("too short".into()),
            _ => Err("too long".into()),
        }
    }

    fn text(&self) -> String {
        duration::text(*self)
    }
}

/// The range of settings that only their type limits.
pub(super) struct Any(pub(super) &'static str);

/// Values that only their type limits: how each is read, and written.
macro_rules! plain {
    ($($value:ty: $read:expr, $write:expr $(, $kind:ident)?;)*) => {$(
        impl Value for $value {
            $(const $kind: bool = true;)?
            type Range = Any;

            fn describe(range: &Self::Range, _default: &str) -> String {
                range.0.into()
            }

            fn parse(text: &str, _range: &Self::Range) -> Result<Self, String> {
                let read: fn(&str) -> Result<Self, String> = $read;
                read(text)
            }

            fn text(&self) -> String {
                let write: fn(&Self) -> String = $write;
                write(self)
            }
        }
    )*};
}

plain! {
    SocketAddr: address, Self::to_string;
    Option<SocketAddr>: |text| if text.is_empty() { Ok(None) } else { address(text).map(Some) },
        |value| value.map_or_else(String::new, |address| address.to_string());
    Secret: Self::read, Self::to_string, IS_SECRET;
    bool: |text| text.parse().map_err(|_| "neither true nor false".into()), Self::to_string;
    PathBuf: |text| Ok(text.into()), |path| path.display().to_string();
    LevelFilter: |text| text.parse().map_err(|_| "not a log level".into()),
        |level| level.as_str().to_ascii_lowercase();
    Descriptors: Self::read, Self::to_string;
    String: |text| Ok(text.to_owned()), Self::clone;
    Vec<EngineUrl>: |text| list(text, EngineUrl::read), |items| joined(items), IS_LIST;
    Vec<ClientUrl>: |text| list(text, ClientUrl::read), |items| joined(items), IS_LIST;
    Vec<Origin>: |text| list(text, Origin::read), |items| joined(items), IS_LIST;
    Vec<Network>: |text| list(text, Network::read), |items| joined(items), IS_LIST;
    Vec<usize>: |text| list(text, core), |items| joined(items), IS_LIST;
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an address and a port".into())
}

fn core(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is not a core's number"))
}

fn list<T>(text: &str, read: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(read).collect()
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}
