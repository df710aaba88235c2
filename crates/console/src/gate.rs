//! The check of who may use the console.
//!
//! A page of another origin can make a browser send requests to a loopback address, and by DNS
//! rebinding even read the answers. So, without a token, the `Host` must name the loopback
//! interface, and what changes anything must carry a header that pages of other origins can't send
//! unasked. A token does for both, since browsers do not send it by themselves. Wrong tokens are
//! [counted](crate::attempts), so that nobody can try many. A browser that has sent the right one
//! has a cookie, with which its tokens are not counted: who tries wrong ones, through the same
//! proxy even, does not lock it out.
//!
//! Browsers say where a request comes from: what another site asks for is refused, unless a link
//! there leads to a page of the console.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use ring::digest::{SHA256, digest};
use ring::rand::{self, SystemRandom};

use crate::attempts::{Attempts, Digest, is_same};
use crate::query::Refusal;
use crate::request::{self, Request};

/// The header that pages of other origins can't send without the console's permission.
const OWN_HEADER: &str = "x-playfield-console";

/// The cookie of browsers that have sent the right token.
const COOKIE: &str = "playfield_console";

/// A request that may go on: the cookie that its answer is to set, if any.
pub(crate) type Passed = Option<String>;

/// Decides who may use the console.
pub(crate) struct Gate {
    /// The digest of the token; without one, the console is for this machine.
    token: Option<Digest>,
    /// The value of the cookie: random, until the node ends.
    known: String,
    /// Wrong tokens lately, by the time since the gate was made.
    attempts: Mutex<Attempts>,
    made: Instant,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("has_token", &self.has_token()).finish()
    }
}

impl Gate {
    pub(crate) fn new(token: &str) -> Self {
        let token = (!token.is_empty()).then(|| hashed(token));
        let random = rand::generate::<Digest>(&SystemRandom::new());
        // Without random numbers there is no cookie.
        let known = random.map_or_else(|_| String::new(), |known| hex(&known.expose()));
        Self { token, known, attempts: Mutex::default(), made: Instant::now() }
    }

    /// Returns whether there is a token.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns whether this request, which comes from an address, may go on.
    ///
    /// # Errors
    /// The answer, if not.
    #[expect(clippy::result_large_err, reason = "a response is made for few")]
    pub(crate) fn check(&self, request: &Request, from: IpAddr) -> Result<Passed, Response> {
        let is_api = request.path().starts_with("/api/");
        let refuse = |status, text: &str| {
            Err(if is_api {
                Refusal(status, text.to_owned()).into()
            } else {
                request::text(status, text)
            })
        };
        if self.token.is_none() && !request.header("host").is_some_and(is_loopback) {
            return refuse(
                403,
                "the console serves 127.0.0.1, [::1] and localhost only; give it a token \
                 (console_token) to serve others",
            );
        }
        if let Some(origin) = request.header("origin")
            && !is_own(origin, request.header("host"))
        {
            return refuse(403, "this page is not the console's");
        }
        if is_of_another_site(request, is_api) {
            return refuse(403, "this request comes from another site (Sec-Fetch-Site)");
        }
        if !is_api {
            return Ok(None);
        }
        if let Some(token) = &self.token {
            let sent =
                request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
            let Some(sent) = sent.map(hashed) else {
                return refuse(401, "the console needs its token (console_token)");
            };
            if self.is_known(request) {
                return if is_same(&sent, token) {
                    Ok(None)
                } else {
                    refuse(401, "the token is wrong")
                };
            }
            // Nothing in it can panic half-way through a change.
            let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
            return match attempts.try_token(from, &sent, token, self.made.elapsed()) {
                Ok(true) => {
                    let cookie = format!("{COOKIE}={}; HttpOnly; SameSite=Strict", self.known);
                    Ok((!self.known.is_empty()).then_some(cookie))
                }
                Ok(false) => refuse(401, "the token is wrong"),
                Err(wait) => {
                    let seconds = wait.as_secs() + 1;
                    let text =
                        format!("too many wrong tokens were tried; try again in {seconds} s");
                    refuse(429, &text).map_err(|mut refusal: Response| {
                        refusal.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
                        refusal
                    })
                }
            };
        }
        if request.method() != "GET" && request.header(OWN_HEADER).is_none() {
            return refuse(403, "the header X-Playfield-Console is missing");
        }
        Ok(None)
    }

    /// Returns whether a browser sends the cookie of those that have sent the right token.
    fn is_known(&self, request: &Request) -> bool {
        let cookies = request.header("cookie").unwrap_or_default().split(';');
        let values = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        let is_it = |(name, value): (&str, &str)| {
            name == COOKIE && is_same(&hashed(value), &hashed(&self.known))
        };
        !self.known.is_empty() && values.into_iter().any(is_it)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hashed(token: &str) -> Digest {
    let digest = digest(&SHA256, token.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Whether a browser says that another site makes this request: not the console's page, and not a
/// user who typed the address or followed a link to a page. Browsers do not let pages set this
/// header (W3C, Fetch Metadata Request Headers).
fn is_of_another_site(request: &Request, is_api: bool) -> bool {
    let says = |name: &str, value: &str| request.header(name) == Some(value);
    let is_link = says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document");
    match request.header("sec-fetch-site") {
        None | Some("same-origin" | "none") => false,
        Some(_) => is_api || !is_link,
    }
}

/// Whether a `Host` header names the loopback interface.
fn is_loopback(host: &str) -> bool {
    let behind_host = host.rfind(']').unwrap_or(0);
    let name = match host[behind_host..].find(':') {
        Some(colon) => &host[..behind_host + colon],
        None => host,
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether an `Origin` is that of the page at this `Host`.
fn is_own(origin: &str, host: Option<&str>) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some() && authority == host
}

#[cfg(test)]
mod tests {
    use super::{is_loopback, is_own};

    #[test]
    fn only_names_of_the_loopback_interface_are_local() {
        for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:80"] {
            assert!(is_loopback(host), "{host}");
        }
        let others = [
            "",
            ":80",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1",
            "[::2]:80",
            "localhost@example.com",
            "[localhost",
            "0.0.0.0",
        ];
        for host in others {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_page_has_the_origin_of_its_host() {
        assert!(is_own("http://127.0.0.1:80", Some("127.0.0.1:80")));
        for (origin, host) in [
            ("http://127.0.0.1:81", Some("127.0.0.1:80")),
            ("http://example.com", Some("127.0.0.1:80")),
            ("null", Some("null")),
            ("http://a", None),
        ] {
            assert!(!is_own(origin, host), "{origin} {host:?}");
        }
    }
}
