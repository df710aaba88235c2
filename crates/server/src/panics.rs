//! Panics in code of the application.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code of the application. If it panics, the panic is logged under the name `what`, and the
/// result is `None`.
#[inline]
pub(crate) fn guard<T>(what: &str, code: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| report(what, &*panic)).ok()
}

#[cold]
fn report(what: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text =
        text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)");
    log::error!("{what} panicked: {text}");
}
