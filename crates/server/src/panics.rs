//! Panics in code of the application.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use playfield_room::panic_text;

/// Runs code of the application. If it panics, the panic is logged under the name `what`, and the
/// result is `None`.
#[inline]
pub(crate) fn guard<T>(what: &str, code: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| report(what, &*panic)).ok()
}

#[cold]
fn report(what: &str, panic: &(dyn Any + Send)) {
    log::error!("{what} panicked: {}", panic_text(panic));
}
