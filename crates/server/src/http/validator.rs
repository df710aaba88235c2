//! Entity tags, by which clients ask only for what has changed (RFC 9110, 13.1.2).

use playfield_http::Request;

/// Whether the client has what this tag names already; `None` if it has named none.
pub(crate) fn is_known(request: &Request, tag: &str) -> Option<bool> {
    let is_same = |other: &str| other == "*" || other.strip_prefix("W/").unwrap_or(other) == tag;
    let tags = request.header("If-None-Match")?;
    Some(tags.split(',').map(str::trim).any(is_same))
}
