//! Text and bytes that cross the boundary.

use std::mem::MaybeUninit;
use std::time::Duration;

use crate::failure::{Failure, Outcome, PfCode};

/// Text in UTF-8, without a zero at its end. `pf_str` makes one of a C string.
///
/// As an argument it is copied before the function returns. A null pointer of length 0 is empty.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PfText {
    /// The first byte.
    pub data: *const u8,
    /// How many bytes.
    pub length: usize,
}

impl Default for PfText {
    fn default() -> Self {
        Self { data: std::ptr::null(), length: 0 }
    }
}

impl PfText {
    /// Refers to the text, without its lifetime.
    pub(crate) fn of(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), length: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    /// `data` is null, or points to `length` bytes that nobody writes to during `'a`.
    pub(crate) unsafe fn bytes<'a>(self, what: &str) -> Outcome<&'a [u8]> {
        if self.length == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() {
            let text = format!("{what} is null, and {} bytes long", self.length);
            return Err(Failure::new(PfCode::Null, text));
        }
        if isize::try_from(self.length).is_err() {
            return Err(Failure::argument(what, format_args!("it has {} bytes", self.length)));
        }
        // SAFETY: it is not null, the length fits, and the caller promises the rest.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.length) })
    }

    /// The text.
    ///
    /// # Safety
    /// As [`bytes`](Self::bytes).
    pub(crate) unsafe fn text<'a>(self, what: &str) -> Outcome<&'a str> {
        // SAFETY: the caller promises it.
        let bytes = unsafe { self.bytes(what) }?;
        std::str::from_utf8(bytes).map_err(|error| Failure::argument(what, error))
    }
}

/// A place for a result.
///
/// # Safety
/// `out` is null, or points to a place for a `T` that nobody else uses during the call.
pub(crate) unsafe fn place<'a, T>(out: *mut T, what: &str) -> Outcome<&'a mut T> {
    if out.is_null() {
        return Err(Failure::new(PfCode::Null, format!("{what} is null")));
    }
    if !out.is_aligned() {
        return Err(Failure::argument(what, "the pointer is not aligned"));
    }
    // SAFETY: it is neither null nor misaligned, and the caller promises the rest.
    Ok(unsafe { &mut *out })
}

/// Places for results, which need not be initialized.
///
/// # Safety
/// `out` is null, or points to places for `count` values that nobody else uses during the call.
pub(crate) unsafe fn places<'a, T>(
    out: *mut T,
    count: usize,
    what: &str,
) -> Outcome<&'a mut [MaybeUninit<T>]> {
    let out = out.cast::<MaybeUninit<T>>();
    // SAFETY: the caller promises it of all places, and so of the first.
    unsafe { place(out, what) }?;
    // SAFETY: it is neither null nor misaligned, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(out, count) })
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
