//! Pages in memory, by path.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use playfield_http::{Request, Response};
use ring::digest::{SHA256, digest};

use super::validator;

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
    tag: String,
    whole: Response,
    /// For clients that have it already.
    unchanged: Response,
}

/// Which pages may read a page: those of its own origin, or those of any.
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
        content_type: String,
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
        let page = match Page::new(&content_type, body, readers) {
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

    /// The page at a decoded path.
    pub(crate) fn find(&self, path: &str) -> Option<&Page> {
        self.pages.get(path)
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
        let hash = digest(&SHA256, &body);
        let hash: String =
            hash.as_ref()[..TAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        let compressed = gzip(&body).map_err(|error| format!("it can't be compressed: {error}"))?;
        let is_shorter = compressed.len() < body.len();
        let headers = || {
            let mut response = with_caution(Response::new(200));
            if is_shorter {
                response = response.with_header("Vary", "Accept-Encoding");
            }
            if readers == Readers::Everyone {
                response = response.with_header("Access-Control-Allow-Origin", "*");
            }
            response
        };
        let plain = Variant::new(headers(), content_type, format!("\"{hash}\""), body);
        if let Some(defect) = plain.whole.defect() {
            return Err(defect.to_owned());
        }
        let gzip = is_shorter.then(|| {
            let headers = headers().with_header("Content-Encoding", "gzip");
            Variant::new(headers, content_type, format!("\"{hash}-gzip\""), compressed)
        });
        Ok(Self { plain, gzip })
    }

    /// The answer to a `GET` or `HEAD`.
    pub(crate) fn answer(&self, request: &Request) -> &Response {
        let gzip = self.gzip.as_ref().filter(|_| request.head().accepts_gzip());
        let variant = gzip.unwrap_or(&self.plain);
        match validator::is_known(request, &variant.tag) {
            Some(true) => &variant.unchanged,
            _ => &variant.whole,
        }
    }

    /// The body as it was given.
    #[cfg(test)]
    pub(crate) fn body(&self) -> &[u8] {
        self.plain.whole.body()
    }
}

impl Variant {
    fn new(headers: Response, content_type: &str, tag: String, body: Vec<u8>) -> Self {
        let headers = headers.with_header("ETag", tag.clone());
        let unchanged = headers.clone().with_status(304);
        Self { tag, whole: headers.with_body(content_type.to_owned(), body), unchanged }
    }
}

/// How many bytes of a hash tell pages apart.
const TAG_BYTES: usize = 16;

fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body)?;
    encoder.finish()
}

/// A page or a file, with headers that make browsers ask for it again, take its type as it is, and
/// tell no other site of it.
pub(crate) fn with_caution(response: Response) -> Response {
    response
        .with_header("Cache-Control", "no-cache")
        .with_header("X-Content-Type-Options", "nosniff")
        .with_header("Referrer-Policy", "no-referrer")
}

#[cfg(test)]
mod tests {
    use playfield_http::{Limits, Parser, Request, Step};

    use super::{Pages, Readers};

    #[test]
    fn a_page_that_cant_be_is_an_error() {
        let mut pages = Pages::default();
        let mut add = |path: &str, content_type: &str| {
            pages.add(path.into(), content_type.into(), b"hello".to_vec(), Readers::SameOrigin)
        };
        add("/a b", "text/html").unwrap();
        for (path, content_type, why) in [
            ("", "text/html", "begins with a slash"),
            ("index.html", "text/html", "begins with a slash"),
            ("/a?b", "text/html", "no query"),
            ("/a%20b", "text/html", "not encoded"),
            ("/a b", "text/plain", "there is a page at this path already"),
            ("/b", "text/html\r\nX: y", "control character"),
        ] {
            let error = add(path, content_type).unwrap_err();
            assert!(
                error.starts_with(&format!("the page {path:?}: ")) && error.contains(why),
                "{error}"
            );
        }
        assert!(pages.find("/a b").is_some() && pages.find("/b").is_none());
    }

    fn get(headers: &str) -> Request {
        let input = format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let mut parser = Parser::new(Limits::default());
        let (head_bytes, _) = parser.parse(input.as_bytes()).unwrap();
        match parser.parse(&input.as_bytes()[head_bytes..]).unwrap() {
            (_, Step::Complete(request)) => request,
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn a_page_is_sent_compressed_only_if_that_is_shorter() {
        let mut pages = Pages::default();
        let long = "a page ".repeat(100);
        for (path, body) in [("/short", "hello"), ("/long", &long)] {
            let body = body.as_bytes().to_vec();
            pages.add(path.into(), "text/plain".into(), body, Readers::SameOrigin).unwrap();
        }
        let answer = |path, headers| pages.find(path).unwrap().answer(&get(headers));
        let short = answer("/short", "Accept-Encoding: gzip\r\n");
        assert_eq!((short.body(), short.header("Vary")), (&b"hello"[..], None));
        let plain = answer("/long", "");
        assert_eq!(plain.body(), long.as_bytes());
        let gzip = answer("/long", "Accept-Encoding: gzip\r\n");
        assert!(gzip.body().len() < 100 && gzip.body().starts_with(&[0x1f, 0x8b]));
        assert_eq!(plain.header("Content-Encoding"), None);
        assert_eq!(gzip.header("Content-Encoding"), Some("gzip"));
        for response in [plain, gzip] {
            assert_eq!(response.header("Vary"), Some("Accept-Encoding"));
            assert_eq!(response.header("Access-Control-Allow-Origin"), None);
        }
        assert_ne!(plain.header("ETag"), gzip.header("ETag"));
        assert_ne!(plain.header("ETag"), short.header("ETag"));
    }

    #[test]
    fn only_the_same_form_of_a_page_is_unchanged() {
        let mut pages = Pages::default();
        let body = "a page ".repeat(100).into_bytes();
        pages.add("/".into(), "text/plain".into(), body, Readers::Everyone).unwrap();
        let answer = |headers: &str| pages.find("/").unwrap().answer(&get(headers));
        let accepts = "Accept-Encoding: gzip\r\n";
        let tag = |headers| answer(headers).header("ETag").unwrap().to_owned();
        for (headers, other) in [("", accepts), (accepts, "")] {
            let known = format!("If-None-Match: W/\"x\", {}\r\n", tag(headers));
            let unchanged = answer(&format!("{headers}{known}"));
            assert_eq!((unchanged.status(), unchanged.body()), (304, &b""[..]));
            // A browser checks and keeps what it is sent here, too.
            for name in ["ETag", "Vary", "Cache-Control", "Access-Control-Allow-Origin"] {
                assert_eq!(unchanged.header(name), answer(headers).header(name), "{name}");
                assert!(unchanged.header(name).is_some(), "{name}");
            }
            assert_eq!(answer(&format!("{other}{known}")).status(), 200);
        }
        assert_eq!(answer("If-None-Match: *\r\n").status(), 304);
        assert_eq!(answer("If-None-Match: \"x\"\r\n").status(), 200);
    }
}
