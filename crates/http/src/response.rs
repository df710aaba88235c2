//! A response, and how it is written.

use std::borrow::Cow;

use crate::body::is_token;
use crate::status::phrase;

/// An HTTP response: a status, headers and a body.
///
/// `Content-Length`, `Connection` and `Date` are the server's. A header that can't be written, or
/// that is the server's, makes the whole response a 500: see
/// [`defect`](Self::defect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: u16,
    headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    body: Cow<'static, [u8]>,
    defect: Option<String>,
}

/// Headers that the server writes itself.
const RESERVED: [&str; 7] = [
    "Connection",
    "Content-Length",
    "Date",
    "Keep-Alive",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

const TEXT: &str = "text/plain; charset=utf-8";

impl Response {
    /// A response without a body. A status outside 200 to 599 makes it a 500.
    pub fn new(status: u16) -> Self {
        let mut response =
            Self { status, headers: Vec::new(), body: Cow::Borrowed(&[]), defect: None };
        if !(200..600).contains(&status) {
            response.defect = Some(format!("the status {status} is not from 200 to 599"));
        }
        response
    }

    /// 200, with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(200).with_body(TEXT, text.into().into_bytes())
    }

    /// 200, with a page.
    pub fn html(html: impl Into<String>) -> Self {
        Self::new(200).with_body("text/html; charset=utf-8", html.into().into_bytes())
    }

    /// 200, with JSON that is written already.
    pub fn json(json: impl Into<String>) -> Self {
        Self::new(200).with_body("application/json", json.into().into_bytes())
    }

    /// An error, with text for people.
    pub fn error(status: u16, text: impl Into<String>) -> Self {
        Self::new(status).with_body(TEXT, text.into().into_bytes())
    }

    /// The same, with this body. Its type is a header, so a second call replaces both.
    #[must_use]
    pub fn with_body(
        mut self,
        content_type: impl Into<Cow<'static, str>>,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        self.body = body.into();
        self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Type"));
        self.with_header("Content-Type", content_type)
    }

    /// The same, with another status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        let defect = self.defect.or(Self::new(status).defect);
        Self { status, defect, ..self }
    }

    /// The same, with one more header.
    #[must_use]
    pub fn with_header(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (name, value) = (name.into(), value.into());
        let is_written = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
        let defect = if name.is_empty() || !name.as_bytes().iter().all(is_token) {
            Some(format!("{name:?} is no name of a header"))
        } else if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
            Some(format!("the header {name} is the server's"))
        } else if !value.as_bytes().iter().all(is_written) {
            Some(format!("the value of the header {name} has a control character"))
        } else {
            None
        };
        match defect {
            None => self.headers.push((name, value)),
            Some(defect) => drop(self.defect.get_or_insert(defect)),
        }
        self
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of a header, whose name is case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Why it can't be written; it is then written as a 500.
    pub fn defect(&self) -> Option<&str> {
        self.defect.as_deref()
    }

    /// Appends the response.
    pub fn write(&self, out: &mut Vec<u8>, sending: &Sending<'_>) {
        if self.defect.is_some() {
            return Self::error(500, "the handler's response can't be written\n")
                .write(out, sending);
        }
        let has_body = !matches!(self.status, 204 | 304);
        let body = if has_body { &*self.body } else { &[] };
        self.write_head(out, sending, has_body.then_some(body.len() as u64));
        if !sending.head_only {
            out.extend_from_slice(body);
        }
    }

    /// Appends the head, for a body of so many bytes that is sent apart; `None` for a status without
    /// a body.
    pub fn write_head(&self, out: &mut Vec<u8>, sending: &Sending<'_>, body_bytes: Option<u64>) {
        let mut digits = [0; 20];
        let status = decimal(u64::from(self.status), &mut digits);
        put(out, &["HTTP/1.1 ", status, " ", phrase(self.status), "\r\n"]);
        for (name, value) in &self.headers {
            put(out, &[name, ": ", value, "\r\n"]);
        }
        if let Some(bytes) = body_bytes {
            put(out, &["Content-Length: ", decimal(bytes, &mut digits), "\r\n"]);
        }
        if let Some(date) = sending.date {
            put(out, &["Date: ", date, "\r\n"]);
        }
        put(
            out,
            match (sending.keeps_alive, sending.is_http_1_0) {
                (true, true) => &["Connection: keep-alive\r\n"],
                (true, false) => &[],
                (false, _) => &["Connection: close\r\n"],
            },
        );
        put(out, &["\r\n"]);
    }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// How a response is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending<'a> {
    /// The request was `HEAD`: the body is left out.
    pub head_only: bool,
    /// Another request may follow.
    pub keeps_alive: bool,
    /// The client speaks HTTP/1.0.
    pub is_http_1_0: bool,
    /// The present, as a [date](crate::http_date), where the server has a clock.
    pub date: Option<&'a str>,
}

/// Appends the interim response that lets a client send its body (RFC 9110, 15.2.1).
pub fn write_continue(out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
}

fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &str {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[at..]).unwrap_or_default()
}
