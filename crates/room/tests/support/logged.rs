//! The lines logged on the thread of a test.

use std::cell::RefCell;

use log::{LevelFilter, Log, Metadata, Record};

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        LINES.with_borrow_mut(|lines| lines.push(record.args().to_string()));
    }

    fn flush(&self) {}
}

/// The lines that `act` logs.
pub(crate) fn logged(act: impl FnOnce()) -> Vec<String> {
    // Another test may have set it.
    let _ = log::set_logger(&Lines);
    log::set_max_level(LevelFilter::Info);
    LINES.take();
    act();
    LINES.take()
}
