//! Plain HTTP: registered pages only.

use std::collections::HashMap;

/// The pages for browsers, by path.
#[derive(Default)]
pub(crate) struct Pages {
    pages: HashMap<String, Page>,
}

struct Page {
    content_type: String,
    body: Vec<u8>,
}

impl Pages {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Registers a page. It replaces an earlier one at this path.
    pub(crate) fn insert(&mut self, path: String, content_type: String, body: Vec<u8>) {
        self.pages.insert(path, Page { content_type, body });
    }

    /// Appends the response to a `GET`, or to a `HEAD`, which is the same without the body.
    pub(crate) fn respond(&self, out: &mut Vec<u8>, method: &str, target: &str) {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let (status, content_type, body) = match self.pages.get(path) {
            Some(page) => ("200 OK", page.content_type.as_str(), page.body.as_slice()),
            None => (
                "404 Not Found",
                "text/plain; charset=utf-8",
                &b"There is no such page here.\n"[..],
            ),
        };
        let length = body.len();
        out.extend_from_slice(
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
                 Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
                 Connection: close\r\n\r\n"
            )
            .as_bytes(),
        );
        if method != "HEAD" {
            out.extend_from_slice(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn a_page_is_found_by_its_path() {
        let mut pages = Pages::default();
        pages.insert("/".into(), "text/html".into(), b"hello".to_vec());
        let respond = |method: &str, target: &str| {
            let mut out = Vec::new();
            pages.respond(&mut out, method, target);
            String::from_utf8(out).unwrap()
        };
        let page = respond("GET", "/?room=1");
        assert!(
            page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n"),
            "{page}"
        );
        assert!(page.ends_with("\r\nConnection: close\r\n\r\nhello"), "{page}");
        let head = respond("HEAD", "/");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(respond("GET", "/x").starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(respond("GET", "../").starts_with("HTTP/1.1 404 Not Found\r\n"));
    }
}
