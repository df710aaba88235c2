//! The pages of the console, which are built in.

use playfield_http::{Request, Response};
use playfield_web::{CONSOLE_PAGE, CONSOLE_SCRIPT, CONSOLE_STYLE};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const PAGES: [(&str, &str, &str); 3] = [
    ("/", HTML, CONSOLE_PAGE),
    ("/console.js", SCRIPT, CONSOLE_SCRIPT),
    ("/console.css", STYLE, CONSOLE_STYLE),
];

pub(crate) fn page(request: &Request) -> Response {
    if !matches!(request.method(), "GET" | "HEAD") {
        return Response::error(405, "pages are only read\n").with_header("allow", "GET, HEAD");
    }
    let found = PAGES.iter().find(|(path, ..)| *path == request.path());
    match found {
        Some((_, content_type, body)) => {
            Response::new(200).with_body(*content_type, body.as_bytes())
        }
        None => Response::error(404, "the console has no such page\n"),
    }
}
