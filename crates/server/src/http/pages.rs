//! Pages in memory, by path.

use std::collections::HashMap;
use std::io::{self, Write};

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};

use super::coding::accepts_gzip;
use super::path::decoded;

/// The pages for browsers.
#[derive(Default)]
pub(crate) struct Pages {
    pages: HashMap<String, Page>,
}

/// A page, as it was given and compressed.
pub(crate) struct Page {
    plain: Variant,
    /// None if it is not shorter.
    gzip: Option<Variant>,
}

/// One form of a page.
struct Variant {
    headers: HeaderMap,
    body: Bytes,
}

/// The pages that may read a page: those of its own origin, or those of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    SameOrigin,
    Everyone,
}

impl Pages {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Adds a page, or says why it can't be one.
    pub(super) fn add(
        &mut self,
        path: String,
        content_type: &str,
        body: Vec<u8>,
        readers: Readers,
    ) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("the page {path:?}: {why}"));
        if !path.starts_with('/') {
            return refuse("a path begins with a slash");
        }
        if path.contains(['?', '#', '%']) || path.contains(char::is_control) {
            return refuse("a path has no query and is not encoded; give it as it is when decoded");
        }
        let page = match Page::new(content_type, body, readers) {
            Ok(page) => page,
            Err(defect) => return refuse(&defect),
        };
        if self.pages.contains_key(&path) {
            return refuse(match &*path {
                // Of the crate above, which always adds it.
                "/playfield.js" | "/playfield-packed.js" => {
                    "the server has the browser client at this path; use another"
                }
                _ => "there is a page at this path already",
            });
        }
        self.pages.insert(path, page);
        Ok(())
    }

    /// The page at a path as it was sent.
    pub(crate) fn find(&self, path: &str) -> Option<&Page> {
        if !path.contains('%') {
            return self.pages.get(path);
        }
        let segments = decoded(path)?;
        // An encoded slash is part of a segment, so it is in no page's path.
        let has_slash = segments.iter().any(|segment| segment.contains('/'));
        if has_slash { None } else { self.pages.get(&format!("/{}", segments.join("/"))) }
    }

    /// Drops the pages whose path `keeps` refuses.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        self.pages.retain(|path, _| keeps(path));
    }

    /// The paths of all pages.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.pages.keys().map(String::as_str)
    }
}

impl Page {
    /// Compresses a page, or says why it can't be one.
    fn new(content_type: &str, body: Vec<u8>, readers: Readers) -> Result<Self, String> {
        let content_type = HeaderValue::from_str(content_type)
            .map_err(|_| format!("the content type {content_type:?} has a control character"))?;
        let hash = digest(&SHA256, &body);
        let hash: String =
            hash.as_ref()[..TAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        let compressed = gzip(&body).map_err(|error| format!("it can't be compressed: {error}"))?;
        let is_shorter = compressed.len() < body.len();
        let variant = |suffix: &str, body: Vec<u8>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, content_type.clone());
            headers.insert(ETAG, value(&format!("\"{hash}{suffix}\"")));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            with_caution(&mut headers);
            if is_shorter {
                headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
            }
            if readers == Readers::Everyone {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            }
            Variant { headers, body: body.into() }
        };
        let gzip = is_shorter.then(|| {
            let mut gzip = variant("-gzip", compressed);
            gzip.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            gzip
        });
        Ok(Self { plain: variant("", body), gzip })
    }

    /// The answer to a `GET` or `HEAD`.
    pub(crate) fn answer(&self, request: &Parts) -> Response<Body> {
        let accepts = request.headers.get_all(ACCEPT_ENCODING).into_iter();
        let accepts = accepts_gzip(accepts.map(HeaderValue::as_bytes));
        let variant = self.gzip.as_ref().filter(|_| accepts).unwrap_or(&self.plain);
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = variant.headers.clone();
        let known = request.headers.get_all(IF_NONE_MATCH);
        if is_known(known, &variant.headers[ETAG]) == Some(true) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().remove(CONTENT_LENGTH);
        } else if request.method != Method::HEAD {
            *response.body_mut() = Body::from(variant.body.clone());
        }
        response
    }

    /// The body as it was given.
    #[cfg(test)]
    pub(crate) fn body(&self) -> &[u8] {
        &self.plain.body
    }
}

/// The number of bytes of a hash that tell pages apart.
const TAG_BYTES: usize = 16;

fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body)?;
    encoder.finish()
}

/// The value of a header, from text without control characters.
pub(super) fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// Adds headers that make browsers ask for a page or a file again, take its type as it is, and tell
/// no other site of it.
pub(super) fn with_caution(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Returns whether the client has what this entity tag names already: all its lines of
/// `If-None-Match` are one list (RFC 9110, 5.3 and 13.1.2). `None` if there are none.
pub(super) fn is_known<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
    tag: &HeaderValue,
) -> Option<bool> {
    let mut lines = lines.into_iter().peekable();
    lines.peek()?;
    let mut tags = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    Some(tags.any(|other| {
        let other = other.trim_ascii();
        other == b"*" || other.strip_prefix(b"W/").unwrap_or(other) == tag.as_bytes()
    }))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::request::Parts;
    use axum::http::{Request, Response};

    use super::{Pages, Readers};

    #[test]
    fn a_page_that_cant_be_is_an_error() {
        let mut pages = Pages::default();
        let mut add = |path: &str, content_type: &str| {
            pages.add(path.into(), content_type, Vec::new(), Readers::SameOrigin)
        };
        add("/a b", "text/plain").unwrap();
        for (path, content_type, why) in [
            ("a", "text/plain", "a path begins with a slash"),
            ("/a?b", "text/plain", "a path has no query"),
            ("/a%20b", "text/plain", "is not encoded"),
            ("/a\nb", "text/plain", "is not encoded"),
            ("/b", "text/plain\r\nX: y", "has a control character"),
            ("/a b", "text/plain", "there is a page at this path already"),
        ] {
            let error = add(path, content_type).unwrap_err();
            assert!(
                error.starts_with(&format!("the page {path:?}: ")) && error.contains(why),
                "{error}"
            );
        }
        assert!(pages.find("/a b").is_some() && pages.find("/b").is_none());
        assert!(pages.find("/a%20b").is_some() && pages.find("/a%2").is_none());
    }

    fn get(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
        response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    const GZIP: (&str, &str) = ("accept-encoding", "gzip");

    #[test]
    fn a_page_is_sent_compressed_only_if_that_is_shorter() {
        let mut pages = Pages::default();
        let long = "a page ".repeat(100);
        for (path, body) in [("/short", "hello"), ("/long", &long)] {
            let body = body.as_bytes().to_vec();
            pages.add(path.into(), "text/plain", body, Readers::SameOrigin).unwrap();
        }
        let answer = |path, headers: &[_]| pages.find(path).unwrap().answer(&get(headers));
        let short = answer("/short", &[GZIP]);
        assert_eq!((header(&short, "content-length"), header(&short, "vary")), (Some("5"), None));
        let plain = answer("/long", &[]);
        let gzip = answer("/long", &[GZIP]);
        let length = |response| header(response, "content-length").unwrap().parse::<usize>();
        assert_eq!(length(&plain).unwrap(), long.len());
        assert!(length(&gzip).unwrap() < 100);
        assert_eq!(header(&plain, "content-encoding"), None);
        assert_eq!(header(&gzip, "content-encoding"), Some("gzip"));
        for response in [&plain, &gzip] {
            assert_eq!(header(response, "vary"), Some("accept-encoding"));
            assert_eq!(header(response, "access-control-allow-origin"), None);
        }
        assert_ne!(header(&plain, "etag"), header(&gzip, "etag"));
        assert_ne!(header(&plain, "etag"), header(&short, "etag"));
    }

    #[test]
    fn only_the_same_form_of_a_page_is_unchanged() {
        let mut pages = Pages::default();
        let body = "a page ".repeat(100).into_bytes();
        pages.add("/".into(), "text/plain", body, Readers::Everyone).unwrap();
        let answer = |headers: &[_]| pages.find("/").unwrap().answer(&get(headers));
        let tag = |headers: &[_]| header(&answer(headers), "etag").unwrap().to_owned();
        let tags = [tag(&[]), tag(&[GZIP])].map(|tag| format!("W/\"x\", {tag}"));
        let plain: &[(&str, &str)] = &[];
        for (own, other, known) in [(plain, &[GZIP][..], &tags[0]), (&[GZIP], plain, &tags[1])] {
            let known = ("if-none-match", known.as_str());
            let unchanged = answer(&[own, &[known]].concat());
            assert_eq!(
                (unchanged.status().as_u16(), header(&unchanged, "content-length")),
                (304, None)
            );
            // A browser checks and keeps what it is sent here, too.
            for name in ["etag", "vary", "cache-control", "access-control-allow-origin"] {
                assert_eq!(header(&unchanged, name), header(&answer(own), name), "{name}");
                assert!(header(&unchanged, name).is_some(), "{name}");
            }
            assert_eq!(answer(&[other, &[known]].concat()).status(), 200);
        }
        assert_eq!(answer(&[("if-none-match", "*")]).status(), 304);
        let [other, known] = ["\"x\"", tags[0].as_str()].map(|tags| ("if-none-match", tags));
        assert_eq!(answer(&[other, known]).status(), 304, "all lines are one list");
        assert_eq!(answer(&[("if-none-match", "\"x\"")]).status(), 200);
    }
}
