//! Reports: one HTML page each, which opens from disk, in light and dark, and loads nothing.
//!
//! [`Page`] takes headings, paragraphs, [`Table`]s, [`Bars`] and [`Plot`]s; [`capacity`] makes the
//! page of a capacity. All text is escaped.

mod capacity;
mod page;
mod plot;
mod published;
mod table;
#[cfg(test)]
mod tests;

pub use capacity::capacity;
pub use page::{Page, replace};
pub use plot::{Plot, Scale, Series};
pub use published::swift_state_tree;
pub use table::{Bars, Table};

/// Text as it is written in HTML, between tags and in attributes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
