//! The pages of the console, which are built in.

use axum::http::HeaderValue;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use playfield_web::{CONSOLE_PAGE, CONSOLE_SCRIPT, CONSOLE_STYLE};

use crate::request::{self, Request};

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
        let mut response = request::text(405, "pages are only read");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let found = PAGES.iter().find(|(path, ..)| *path == request.path());
    match found {
        Some((_, content_type, body)) => ([(CONTENT_TYPE, *content_type)], *body).into_response(),
        None => request::text(404, "the console has no such page"),
    }
}
