//! The head of a request.

use std::ops::Range;

use httparse::Header;

use crate::coding::accepts_gzip;
use crate::{Limits, RequestError};

/// The longest request target, in bytes: the length that RFC 9110 (4.1) recommends every server to
/// support, independent of the limit on the whole head.
pub const TARGET_BYTES_MAX: usize = 8_000;

/// A part of the head's bytes.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range that `part` takes in `whole`. It must be a subslice of it.
    fn of(part: &[u8], whole: &[u8]) -> Self {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        Self { start: start as u32, end: (start + part.len()) as u32 }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// How a body is framed (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes; 0 without a body.
    Length(u64),
    Chunked,
}

/// The head of a request: the first line and the headers.
#[derive(Clone, Debug)]
pub struct Head {
    bytes: Box<[u8]>,
    method: Span,
    path: Span,
    query: Span,
    headers: Vec<(Span, Span)>,
    minor_version: u8,
    pub(crate) framing: Framing,
    keeps_alive: bool,
    expects_continue: bool,
    upgrades_to_websocket: bool,
}

impl Head {
    /// Parses a whole head, which ends with an empty line.
    pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, RequestError> {
        let mut headers = vec![httparse::EMPTY_HEADER; limits.headers_max];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = match request.parse(bytes) {
            Ok(parsed) => parsed,
            Err(error) => {
                // If it comes bit by bit, the first line is refused before the others are read.
                let end = bytes.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                check_first_line(&bytes[..end], limits)?;
                return Err(refused(error, limits));
            }
        };
        let (true, Some(method), Some(target), Some(minor_version)) = (
            parsed == httparse::Status::Complete(bytes.len()),
            request.method,
            request.path,
            request.version,
        ) else {
            // An empty line ended the head before the parser saw its end.
            return Err(RequestError::malformed("a line"));
        };
        let (path, query) = split_target(method, target)?;
        let headers = &*request.headers;

        if single(headers, "Host")?.is_none() && minor_version >= 1 {
            return Err(RequestError::Missing { header: "Host" });
        }
        let framing = framing(headers, minor_version)?;
        if let Framing::Length(length) = framing
            && length > limits.body_bytes_max as u64
        {
            return Err(RequestError::BodyTooLarge { bytes_max: limits.body_bytes_max });
        }
        let expects_continue = match single(headers, "Expect")? {
            None => false,
            Some(value) if value.eq_ignore_ascii_case(b"100-continue") => minor_version >= 1,
            Some(_) => return Err(RequestError::UnknownExpectation),
        };
        let keeps_alive = !has_token(headers, "Connection", "close")
            && (minor_version >= 1 || has_token(headers, "Connection", "keep-alive"));
        // Without the option in `Connection`, or in HTTP/1.0, `Upgrade` means nothing (RFC 9110,
        // 7.8).
        let upgrades_to_websocket = minor_version >= 1
            && has_token(headers, "Connection", "upgrade")
            && has_token(headers, "Upgrade", "websocket");
        let span = |part: &[u8]| Span::of(part, bytes);
        Ok(Self {
            method: span(method.as_bytes()),
            path: span(path.as_bytes()),
            query: span(query.as_bytes()),
            headers: headers
                .iter()
                .map(|header| (span(header.name.as_bytes()), span(header.value)))
                .collect(),
            minor_version,
            framing,
            keeps_alive,
            expects_continue,
            upgrades_to_websocket,
            bytes: bytes.into(),
        })
    }

    /// The bytes that it was parsed from, with the empty line at the end.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The method, such as `GET`.
    pub fn method(&self) -> &str {
        self.text(self.method)
    }

    /// The path as it was sent, from the first slash, still encoded; `*` for `OPTIONS *`.
    pub fn path(&self) -> &str {
        // The target of a proxy's request may lack one: `http://host`.
        match self.text(self.path) {
            "" => "/",
            path => path,
        }
    }

    /// The query as it was sent, without the question mark; empty if there is none.
    pub fn query(&self) -> &str {
        self.text(self.query)
    }

    /// The headers in order, with names as they were sent.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers.iter().map(|&(name, value)| (self.text(name), &self.bytes[value.range()]))
    }

    /// The value of a header, whose name is case-insensitive; the first if it is repeated. `None`
    /// also if the value is not UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers();
        let (_, value) = headers.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Whether the client accepts a body in gzip, and no less than one without a coding.
    pub fn accepts_gzip(&self) -> bool {
        let is_named = |(name, _): &(&str, &[u8])| name.eq_ignore_ascii_case("Accept-Encoding");
        accepts_gzip(self.headers().filter(is_named).map(|(_, value)| value))
    }

    /// Whether the connection may serve another request after this one.
    pub fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Whether the version is HTTP/1.0.
    pub fn is_http_1_0(&self) -> bool {
        self.minor_version == 0
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue && self.framing != Framing::Length(0)
    }

    /// Whether the client asks for a WebSocket instead of a response: `Upgrade` names it, and
    /// `Connection` names `Upgrade`.
    pub fn upgrades_to_websocket(&self) -> bool {
        self.upgrades_to_websocket
    }

    fn text(&self, span: Span) -> &str {
        // The parser lends texts only, and paths and queries are cut at ASCII.
        std::str::from_utf8(&self.bytes[span.range()]).unwrap_or_default()
    }
}

/// Checks the first line, while the rest is still on its way.
pub(crate) fn check_first_line(line: &[u8], limits: &Limits) -> Result<(), RequestError> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse(line) {
        // A header follows the line, and there is no space left for it.
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {}
        Err(error) => return Err(refused(error, limits)),
    }
    match (request.method, request.path) {
        (Some(method), Some(target)) => split_target(method, target).map(drop),
        _ => Ok(()),
    }
}

fn refused(error: httparse::Error, limits: &Limits) -> RequestError {
    RequestError::malformed(match error {
        httparse::Error::TooManyHeaders => {
            return RequestError::TooManyHeaders { headers_max: limits.headers_max };
        }
        httparse::Error::HeaderName => "a header name",
        httparse::Error::HeaderValue => "a header value",
        httparse::Error::NewLine => "a line ending",
        httparse::Error::Status => "the status",
        httparse::Error::Token => "the first line",
        httparse::Error::Version => "the HTTP version",
    })
}

/// The path and the query of a request target (RFC 9112, 3.2).
fn split_target<'a>(method: &str, target: &'a str) -> Result<(&'a str, &'a str), RequestError> {
    if target.len() > TARGET_BYTES_MAX {
        return Err(RequestError::TargetTooLong);
    }
    let path = if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        target
    } else {
        let scheme = ["http://", "https://"].into_iter().find(|scheme| {
            target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        let Some(scheme) = scheme else {
            return Err(RequestError::malformed("the request target"));
        };
        let authority_and_path = &target[scheme.len()..];
        let end = authority_and_path.find(['/', '?', '#']).unwrap_or(authority_and_path.len());
        &authority_and_path[end..]
    };
    // A client that sends a fragment is wrong, but can't mean anything else by it.
    let path = path.split_once('#').map_or(path, |(path, _)| path);
    // Of the target even if empty, so that it has a place there.
    Ok(path.split_once('?').unwrap_or((path, &path[path.len()..])))
}

fn framing(headers: &[Header<'_>], minor_version: u8) -> Result<Framing, RequestError> {
    let length = single(headers, "Content-Length")?;
    let Some(coding) = single(headers, "Transfer-Encoding")? else {
        return length.map_or(Ok(Framing::Length(0)), content_length);
    };
    if length.is_some() {
        return Err(RequestError::malformed("Content-Length beside Transfer-Encoding"));
    }
    if minor_version == 0 {
        return Err(RequestError::malformed("Transfer-Encoding in HTTP/1.0"));
    }
    if !coding.eq_ignore_ascii_case(b"chunked") {
        return Err(RequestError::UnknownCoding);
    }
    Ok(Framing::Chunked)
}

fn content_length(value: &[u8]) -> Result<Framing, RequestError> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(RequestError::malformed("Content-Length"));
    }
    // All digits, so what does not fit is too large for any limit.
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    let length = digits.fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(digit));
    Ok(Framing::Length(length))
}

fn values<'a>(headers: &[Header<'a>], name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
}

/// The value of a header that must not be repeated.
fn single<'a>(
    headers: &[Header<'a>],
    header: &'static str,
) -> Result<Option<&'a [u8]>, RequestError> {
    let mut values = values(headers, header);
    let value = values.next();
    if values.next().is_some() {
        return Err(RequestError::Repeated { header });
    }
    Ok(value)
}

/// Whether a comma-separated header contains a token, ignoring case (RFC 9110, 5.6.1).
fn has_token(headers: &[Header<'_>], name: &str, token: &str) -> bool {
    values(headers, name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .any(|element| element.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}
