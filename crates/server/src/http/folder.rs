//! Files of a folder on disk: which of them may be served, and as which version. The rest is
//! `tower-http`'s: types, parts of files, forms in gzip.

use std::borrow::Cow;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, LAST_MODIFIED, LOCATION, RANGE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::fs;
use tower_http::services::ServeDir;

use super::pages::{is_known, value, with_caution};
use super::path::{decoded, encoded};

/// The file that is sent for a path that ends with a slash.
const INDEX: &str = "index.html";

/// A folder whose files are served under a path.
pub(crate) struct Folder {
    /// The path's segments; none for `/`.
    path: Vec<String>,
    /// Without links, so that a file that lies elsewhere is known by its path.
    root: PathBuf,
    files: ServeDir,
}

/// The result of a lookup in a folder.
enum Found {
    /// A file, at this path from the root and with this tag.
    File(String, String),
    Folder,
    /// Nothing that may be served.
    Nothing,
}

impl Folder {
    /// The files of `folder` under a path, or why they can't be served there.
    pub(crate) fn new(path: &str, folder: &Path) -> Result<Self, String> {
        let refuse = |why: String| format!("the folder {} at {path:?}: {why}", folder.display());
        let segments =
            path.strip_prefix('/').ok_or_else(|| refuse("a path begins with a slash".into()))?;
        if path.contains(['?', '#', '%']) {
            return Err(refuse("a path has no query and is not encoded".into()));
        }
        let root = folder.canonicalize().map_err(|error| refuse(error.to_string()))?;
        if !root.is_dir() {
            return Err(refuse("it is not a folder".into()));
        }
        let segments = segments.strip_suffix('/').unwrap_or(segments).split('/');
        let path = segments.filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        let files =
            ServeDir::new(&root).append_index_html_on_directories(false).precompressed_gzip();
        Ok(Self { path, root, files })
    }

    /// The segments of the path that it is served under.
    pub(crate) fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns whether a path lies under its own.
    fn holds(&self, path: &[Cow<'_, str>]) -> bool {
        path.get(..self.path.len()).is_some_and(|start| start == self.path)
    }

    /// Returns whether it has a file now for a decoded path below its own. May block.
    pub(crate) fn has_file(&self, path: &str) -> bool {
        let segments: Vec<_> = path.split('/').skip(1).map(Cow::from).collect();
        let place = segments.get(self.path.len()..).and_then(place);
        place.is_some_and(|place| {
            let path = self.root.join(place).canonicalize();
            path.is_ok_and(|path| self.may_serve(&path) && path.is_file())
        })
    }

    /// Returns whether a path without links lies in the folder, and is not hidden.
    fn may_serve(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.root);
        inside.is_ok_and(|inside| !inside.components().any(|part| is_hidden(&part)))
    }

    /// Returns whether there is a form in gzip beside the file at a place, which may be served.
    async fn has_gzip(&self, place: &str) -> bool {
        let found = self.find(Path::new(&format!("{place}.gz"))).await;
        matches!(found, Ok(Found::File(..)))
    }

    /// Looks up a place in the folder. Where links lead is looked at as well.
    async fn find(&self, place: &Path) -> io::Result<Found> {
        // A name that no file can have is as good as one that none has.
        let Ok(path) = fs::canonicalize(self.root.join(place)).await else {
            return Ok(Found::Nothing);
        };
        if !self.may_serve(&path) {
            return Ok(Found::Nothing);
        }
        // Before it is opened: opening a pipe would wait for its writer.
        let metadata = fs::metadata(&path).await?;
        if metadata.is_dir() {
            return Ok(Found::Folder);
        }
        if !metadata.is_file() {
            return Ok(Found::Nothing);
        }
        let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let tag = format!("{:x}-{:x}", since.as_nanos(), metadata.len());
        Ok(place.to_str().map_or(Found::Nothing, |place| Found::File(place.into(), tag)))
    }

    /// The answer to a `GET` or `HEAD` for a path below its own.
    async fn answer(&self, path: &[Cow<'_, str>], request: Request) -> Response {
        let Some(place) = place(&path[self.path.len()..]) else { return not_found() };
        match self.find(&place).await {
            Ok(Found::File(place, tag)) => self.send(&place, &tag, request).await,
            // Links in its page are relative to its path, which therefore ends with a slash.
            Ok(Found::Folder) if !request.uri().path().ends_with('/') => {
                let query =
                    request.uri().query().map_or(String::new(), |query| format!("?{query}"));
                let to = value(&format!("{}/{query}", request.uri().path()));
                (StatusCode::PERMANENT_REDIRECT, [(LOCATION, to)]).into_response()
            }
            Ok(_) => not_found(),
            Err(error) => failed(&place, &error),
        }
    }

    /// Sends a file, or a part of it, or says that the client has it already.
    async fn send(&self, place: &str, tag: &str, mut request: Request) -> Response {
        let is_get = request.method() == Method::GET;
        let has_gzip =
            request.headers().contains_key(ACCEPT_ENCODING) && self.has_gzip(place).await;
        let headers = request.headers_mut();
        if !has_gzip {
            headers.remove(ACCEPT_ENCODING);
        }
        if !is_get || !asks_for_one_range(headers) {
            headers.remove(RANGE);
        }
        let known: Vec<_> = headers.get_all(IF_NONE_MATCH).iter().cloned().collect();
        let since = headers.remove(IF_MODIFIED_SINCE);
        let same = headers.remove(IF_RANGE);
        let range = if same.is_some() { headers.remove(RANGE) } else { None };
        let separators = std::path::MAIN_SEPARATOR_STR;
        let path = format!("/{}", encoded(&place.replace(separators, "/")));
        let Ok(uri) = path.parse::<Uri>() else { return not_found() };
        *request.uri_mut() = uri;
        // A part is sent only of the version and the form that the client has the rest of.
        let tags = [format!("\"{tag}\""), format!("\"{tag}-gzip\"")];
        let same = same.and_then(|same| tags.iter().position(|tag| same == tag.as_str()));
        let form = match same {
            Some(0) => Some("identity"),
            Some(_) if has_gzip => Some("gzip"),
            _ => None,
        };
        if let (Some(form), Some(range)) = (form, range) {
            let headers = request.headers_mut();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(form));
            headers.insert(RANGE, range);
        }
        let response = match self.files.clone().try_call(request).await {
            Ok(response) => response.map(Body::new),
            Err(error) => return failed(Path::new(place), &error),
        };
        if !response.status().is_success() {
            return if response.status() == StatusCode::NOT_FOUND { not_found() } else { response };
        }
        let mut response = response;
        let headers = response.headers_mut();
        let is_gzip = headers.contains_key(CONTENT_ENCODING);
        headers.insert(ETAG, value(&tags[usize::from(is_gzip)]));
        if let Some(text) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
            && text.starts_with("text/")
            && !text.contains("charset")
        {
            let text = value(&format!("{text}; charset=utf-8"));
            headers.insert(CONTENT_TYPE, text);
        }
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        with_caution(headers);
        // Dates are compared as text: clients send what they were sent.
        let is_unchanged = is_known(&known, &headers[ETAG]).unwrap_or_else(|| {
            since.is_some_and(|since| headers.get(LAST_MODIFIED) == Some(&since))
        });
        if is_unchanged {
            headers.remove(axum::http::header::CONTENT_LENGTH);
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = Body::empty();
        }
        response
    }
}

/// The answer of the first of these folders that a path lies under.
pub(super) async fn answer(folders: &[Folder], request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let Some(segments) = decoded(&path) else {
        return (StatusCode::BAD_REQUEST, "the path is not validly encoded\n").into_response();
    };
    let Some(folder) = folders.iter().find(|folder| folder.holds(&segments)) else {
        return not_found();
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let allow = [("allow", "GET, HEAD")];
        let text = "this path takes GET and HEAD only\n";
        return (StatusCode::METHOD_NOT_ALLOWED, allow, text).into_response();
    }
    folder.answer(&segments, request).await
}

/// Returns whether a request may be answered with a part: one that asks for several parts, or in
/// other units than bytes, gets the whole file.
fn asks_for_one_range(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(RANGE).iter();
    let range = values.next().map_or(&b""[..], HeaderValue::as_bytes);
    let is_bytes = range.get(..6).is_some_and(|unit| unit.eq_ignore_ascii_case(b"bytes="));
    is_bytes && !range.contains(&b',') && values.next().is_none()
}

pub(super) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "nothing is served at this path\n").into_response()
}

fn failed(place: &Path, error: &io::Error) -> Response {
    log::warn!("{} can't be served: {error}", place.display());
    (StatusCode::SERVICE_UNAVAILABLE, "the file can't be read now; try again\n").into_response()
}

fn is_hidden(part: &Component<'_>) -> bool {
    part.as_os_str().as_encoded_bytes().starts_with(b".")
}

/// The place in a folder that the segments of a path mean; `None` if they may mean one outside.
fn place(segments: &[Cow<'_, str>]) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        // Separators, drives and streams of any system: what is a name on one may be more on
        // another.
        let is_name = !segment.is_empty()
            && !segment.starts_with('.')
            && !segment.contains(['/', '\\', ':'])
            && !segment.contains(char::is_control);
        match &**segment {
            "" if is_last => place.push(INDEX),
            name if is_name => place.push(name),
            _ => return None,
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::path::Path;

    use super::super::path::decoded;
    use super::place;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        for (path, expected) in [
            ("/", Some("index.html")),
            ("/a", Some("a")),
            ("/a/", Some("a/index.html")),
            ("/a%20b/c.d..e", Some("a b/c.d..e")),
            ("/..", None),
            ("/../etc/passwd", None),
            ("/a/../../b", None),
            ("/a/../b", None),
            ("/%2e%2e/b", None),
            ("/%2E%2E%2fb", None),
            ("/a%2Fb", None),
            ("/..%5cb", None),
            ("/a\\b", None),
            ("/C:/b", None),
            ("/a:stream", None),
            ("//etc/passwd", None),
            ("/a//b", None),
            ("/%2Fetc", None),
            ("/.", None),
            ("/.git/config", None),
            ("/a/.hidden", None),
            ("/a%00.html", None),
            ("/a%0Ab", None),
        ] {
            let segments: Vec<Cow<'_, str>> = decoded(path).unwrap();
            assert_eq!(place(&segments).as_deref(), expected.map(Path::new), "{path}");
        }
    }
}
