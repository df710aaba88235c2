//! Catching panics of a room's code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a room's code. If it panics, the error is the text of the panic.
pub(super) fn guard<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| panic_text(&*panic))
}

/// Returns the text of a panic.
#[cold]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no text)").to_owned()
}
