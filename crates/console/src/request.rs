//! A whole request, and answers to it.

use std::borrow::Cow;

use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// A request, with its body.
pub(crate) struct Request {
    parts: Parts,
    query: Vec<(String, String)>,
    body: Bytes,
}

impl Request {
    pub(crate) fn new(parts: Parts, body: Bytes) -> Self {
        // Names and values of forms are valid, whatever they are.
        let query = Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |Query(all)| all);
        Self { parts, query, body }
    }

    pub(crate) fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    /// The path as it was sent, still encoded.
    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// The value of a header; `None` also if it is not text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The first value of a name in the query, decoded.
    pub(crate) fn query_value(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut pairs = self.query.iter();
        pairs.find(|(known, _)| known == name).map(|(_, value)| value.into())
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// An answer that is JSON.
pub(crate) fn json(status: StatusCode, json: String) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, content_type)], Body::from(json)).into_response()
}

/// An answer that is text for people.
pub(crate) fn text(status: u16, text: &str) -> Response {
    (status_of(status), format!("{text}\n")).into_response()
}

/// A status by its number.
pub(crate) fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
