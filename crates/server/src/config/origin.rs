//! Origins of web pages.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

/// The origin of a web page (RFC 6454): a scheme, a host, and a port unless it is the scheme's
/// default, such as `https://play.example.com` or `http://localhost:8080`. Upper and lower case are
/// the same. [`Config::set`](crate::Config::set) reads origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// In lower case, without the scheme's own port, and with an IPv6 address as browsers write it.
    text: String,
}

impl Origin {
    /// Reads one; otherwise says why not.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("{text:?} is not an origin: {why}"));
        if text == "*" {
            return refuse("leave the list empty to allow every page");
        }
        if text == "null" {
            return refuse("files and sandboxed pages from anywhere say it of themselves");
        }
        if !text.is_ascii() {
            return refuse("write the host as browsers send it, in ASCII (xn--)");
        }
        let text = text.to_ascii_lowercase();
        let Some((scheme, authority)) = text.split_once("://") else {
            return refuse("it has no scheme");
        };
        if !is_scheme(scheme) {
            return refuse("its scheme is none");
        }
        if authority.contains(['/', '?', '#', '@']) {
            return refuse("there is more in it than scheme, host and port");
        }
        // The colons of an IPv6 address are within brackets.
        let behind_host = authority.rfind(']').unwrap_or(0);
        let (host, port) = match authority[behind_host..].find(':') {
            Some(at) => (&authority[..behind_host + at], Some(&authority[behind_host + at + 1..])),
            None => (authority, None),
        };
        let Some(host) = read_host(host) else {
            return refuse("its host is none");
        };
        let port = match port.map(read_port) {
            Some(None) => return refuse("its port is none"),
            Some(Some(port)) if OWN_PORTS.contains(&(scheme, port)) => None,
            Some(port) => port,
            None => None,
        };
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        Ok(Self { text: format!("{scheme}://{host}{port}") })
    }

    /// Returns whether a page of this `Origin` header, if there is one, may connect where these are
    /// allowed. All may if none is named. A client without the header is not a browser: its user
    /// could as well send any header.
    pub(crate) fn is_allowed(header: Option<&[u8]>, allowed: &[Self]) -> bool {
        let Some(header) = header else { return true };
        let named = || Self::read(std::str::from_utf8(header).ok()?).ok();
        allowed.is_empty() || named().is_some_and(|origin| allowed.contains(&origin))
    }
}

/// Schemes with a port of their own.
const OWN_PORTS: [(&str, u16); 2] = [("http", 80), ("https", 443)];

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The host as browsers write it. There are many ways to write an IPv6 address, and theirs is the
/// shortest, in hexadecimal throughout (WHATWG URL, 3.5).
fn read_host(text: &str) -> Option<Cow<'_, str>> {
    let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        let is_name = !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        return is_name.then_some(text.into());
    };
    let address: Ipv6Addr = address.parse().ok()?;
    Some(match (address.to_ipv4_mapped(), address.segments()) {
        // What the standard library writes with dots.
        (Some(_), [.., high, low]) => format!("[::ffff:{high:x}:{low:x}]").into(),
        (None, _) => format!("[{address}]").into(),
    })
}

fn read_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Origin;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for (text, read) in [
            ("https://play.example.com", "https://play.example.com"),
            ("HTTPS://Play.Example.com:443", "https://play.example.com"),
            ("http://localhost:80", "http://localhost"),
            ("http://localhost:443", "http://localhost:443"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("https://[2001:DB8::1]", "https://[2001:db8::1]"),
            ("http://[0:0:0:0:0:0:0:1]", "http://[::1]"),
            ("http://[2001:0db8:0:0:1:0:0:01]:81", "http://[2001:db8::1:0:0:1]:81"),
            ("http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]"),
            ("http://[::127.0.0.1]", "http://[::7f00:1]"),
            ("capacitor://localhost", "capacitor://localhost"),
            ("app+x.y-z://a_b", "app+x.y-z://a_b"),
        ] {
            assert_eq!(Origin::read(text).unwrap().to_string(), read, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "*",
            "null",
            "play.example.com",
            "//play.example.com",
            "://a",
            "1http://a",
            "ht tp://a",
            "https://",
            "https://:1",
            "https://a/",
            "https://a/b",
            "https://a?b",
            "https://user@a",
            "https://*.a",
            "https://a b",
            "https://a https://b",
            "https://a:",
            "https://a:0",
            "https://a:+1",
            "https://a:65536",
            "https://a:1:2",
            "https://[::1",
            "https://::1",
            "https://[::1]2",
            "https://[a]",
            "https://caf\u{e9}.example",
        ] {
            let error = Origin::read(text).unwrap_err();
            assert!(error.starts_with(&format!("{text:?} is not an origin: ")), "{error}");
        }
    }

    #[test]
    fn only_named_origins_are_let_in_where_some_are_named() {
        let allowed = ["https://a.example", "http://localhost:8080", "http://[0:0:0:0:0:0:0:1]"]
            .map(|text| Origin::read(text).unwrap());
        for (header, expected) in [
            (None, true),
            (Some(&b"https://a.example"[..]), true),
            (Some(b"http://[::1]"), true),
            (Some(b"HTTPS://A.EXAMPLE:443"), true),
            (Some(b"http://localhost:8080"), true),
            (Some(b"http://localhost"), false),
            (Some(b"http://a.example"), false),
            (Some(b"https://a.example.evil"), false),
            (Some(b"https://evil/https://a.example"), false),
            (Some(b"https://a.example https://evil"), false),
            (Some(b"null"), false),
            (Some(b""), false),
            (Some(b"https://a.example\xFF"), false),
        ] {
            assert_eq!(Origin::is_allowed(header, &allowed), expected, "{header:?}");
            assert!(Origin::is_allowed(header, &[]));
        }
    }
}
