//! The pages of the console, which are built in.

use playfield_http::{Request, Response};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Built by `make console` from `console/`.
const PAGES: [(&str, &str, &[u8]); 3] = [
    ("/", HTML, include_bytes!("../web/index.html")),
    ("/console.js", SCRIPT, include_bytes!("../web/console.js")),
    ("/console.css", STYLE, include_bytes!("../web/console.css")),
];

pub(crate) fn page(request: &Request) -> Response {
    if !matches!(request.method(), "GET" | "HEAD") {
        return Response::error(405, "pages are only read\n").with_header("allow", "GET, HEAD");
    }
    let found = PAGES.iter().find(|(path, ..)| *path == request.path());
    match found {
        Some((_, content_type, body)) => Response::new(200).with_body(*content_type, body.to_vec()),
        None => Response::error(404, "the console has no such page\n"),
    }
}
