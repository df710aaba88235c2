//! What a node serves to a browser that doesn't ask for a WebSocket.

use std::collections::BTreeMap;

/// Pages by path.
#[derive(Default)]
pub(crate) struct Pages(BTreeMap<String, Page>);

struct Page {
    content_type: String,
    body: Vec<u8>,
}

impl Pages {
    pub(crate) fn add(&mut self, path: &str, content_type: &str, body: Vec<u8>) {
        self.0.insert(path.to_owned(), Page { content_type: content_type.to_owned(), body });
    }

    /// Appends the one response to a request that is not for a WebSocket. The connection is closed after it.
    pub(crate) fn respond(&self, method: &str, target: &str, out: &mut Vec<u8>) {
        let path = target.split(['?', '#']).next().unwrap_or(target);
        let (status, content_type, body) = match (method, self.0.get(path)) {
            ("GET" | "HEAD", Some(page)) => ("200 OK", page.content_type.as_str(), page.body.as_slice()),
            ("GET" | "HEAD", None) => {
                ("404 Not Found", "text/plain; charset=utf-8", b"There is no such page.\n".as_slice())
            }
            _ => (
                "405 Method Not Allowed",
                "text/plain; charset=utf-8",
                b"Pages are read with GET.\n".as_slice(),
            ),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-cache\r\n\
             X-Content-Type-Options: nosniff\r\n{}Connection: close\r\n\r\n",
            body.len(),
            if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" },
        );
        out.extend_from_slice(head.as_bytes());
        if method != "HEAD" {
            out.extend_from_slice(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(method: &str, target: &str) -> String {
        let mut pages = Pages::default();
        pages.add("/", "text/html", b"<p>hi".to_vec());
        let mut out = Vec::new();
        pages.respond(method, target, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_page_is_served_whatever_its_query() {
        assert!(
            response("GET", "/?x=1")
                .starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n")
        );
        assert!(response("GET", "/").ends_with("\r\n\r\n<p>hi"));
        assert!(response("HEAD", "/").ends_with("\r\n\r\n"));
    }

    #[test]
    fn what_is_not_there_is_said_to_be() {
        assert!(response("GET", "/x").starts_with("HTTP/1.1 404 "));
        assert!(response("POST", "/").starts_with("HTTP/1.1 405 "));
    }
}
