//! Catching panics.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

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

thread_local! {
    /// A panic of this thread becomes an error, and is not reported by itself.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of a library that panics where it should return an error. Returns the panic's text, in
/// one line; nothing else reports it.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                report(panic);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    let result = guard(work);
    IS_QUIET.set(before);
    result.map_err(|text| text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}
