//! Pages in memory, by path.

use std::collections::HashMap;

use playfield_http::Response;

/// The pages for browsers.
#[derive(Default)]
pub(crate) struct Pages {
    pages: HashMap<String, Response>,
}

impl Pages {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Adds a page, or says why it can't be one.
    pub(crate) fn add(
        &mut self,
        path: String,
        content_type: String,
        body: Vec<u8>,
    ) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("the page {path:?}: {why}"));
        if !path.starts_with('/') {
            return refuse("a path begins with a slash");
        }
        if path.contains(['?', '#', '%']) || path.contains(char::is_control) {
            return refuse("a path has no query and is not encoded; give it as it is when decoded");
        }
        let page = with_caution(Response::new(200).with_body(content_type, body));
        if let Some(defect) = page.defect() {
            return refuse(defect);
        }
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
    pub(crate) fn find(&self, path: &str) -> Option<&Response> {
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
    use super::Pages;

    #[test]
    fn a_page_that_cant_be_is_an_error() {
        let mut pages = Pages::default();
        let mut add = |path: &str, content_type: &str| {
            pages.add(path.into(), content_type.into(), b"hello".to_vec())
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
}
