//! Files of a folder on disk. Every function here may block.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use playfield_http::{Request, Response, http_date};

use super::media_type::media_type;
use super::pages::with_caution;
use super::range::{self, Asked};
use super::routes::decoded;
use super::validator;

/// How much of a file is read at once.
const PIECE_BYTES: u64 = 64 << 10;

/// The first bytes of a file in gzip: its magic number, and the one method (RFC 1952, 2.3.1).
const GZIP: [u8; 3] = [0x1F, 0x8B, 8];

/// The file that is sent for a path that ends with a slash.
const INDEX: &str = "index.html";

/// A folder whose files are served under a path.
pub(crate) struct Folder {
    /// The path's segments; none for `/`.
    path: Vec<String>,
    /// Without links, so that a file that lies elsewhere is known by its path.
    root: PathBuf,
    /// The checksums of files that lie beside a form in gzip.
    checksums: Mutex<HashMap<PathBuf, Checksum>>,
}

/// The checksum of a file with this time and length (CRC-32, as in RFC 1952).
#[derive(Clone, Copy)]
struct Checksum {
    modified: SystemTime,
    length: u64,
    crc32: u32,
}

/// The answer for a file: its head, and what follows it.
pub(crate) struct Reply {
    pub(crate) response: Response,
    /// How many bytes follow the head; `None` for a status without a body.
    pub(crate) body_bytes: Option<u64>,
    /// The source of these bytes, unless they are the response's own.
    pub(crate) pieces: Option<Pieces>,
}

/// The rest of a file that is being sent.
pub(crate) struct Pieces {
    file: File,
    left: u64,
}

enum Opened {
    File(File, Metadata),
    Folder,
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
        Ok(Self { path, root, checksums: Mutex::default() })
    }

    /// The segments of the path that it is served under.
    pub(crate) fn path(&self) -> &[String] {
        &self.path
    }

    /// Whether a path lies under its own.
    pub(crate) fn holds(&self, path: &[Cow<'_, str>]) -> bool {
        path.get(..self.path.len()).is_some_and(|start| start == self.path)
    }

    /// Whether it has a file now for a decoded path below its own.
    pub(crate) fn has_file(&self, path: &str) -> bool {
        let segments: Vec<_> = path.split('/').skip(1).map(Cow::from).collect();
        let place = segments.get(self.path.len()..).and_then(place);
        place.is_some_and(|place| matches!(self.open(&place), Ok(Some(Opened::File(..)))))
    }

    /// The answer to a `GET` or `HEAD`.
    pub(crate) fn answer(&self, request: &Request) -> Reply {
        let not_found = || plain(404, "there is no such file here");
        let Some(place) = decoded(request.path()).and_then(|path| place(&path[self.path.len()..]))
        else {
            return not_found();
        };
        match self.open(&place) {
            Ok(Some(Opened::File(mut file, metadata))) => {
                let accepts = request.head().accepts_gzip();
                let gzip = accepts.then(|| self.gzip(&place, &mut file, &metadata));
                let (file, metadata, coding) = match gzip.flatten() {
                    Some((file, metadata)) => (file, metadata, Some("gzip")),
                    None => (file, metadata, None),
                };
                reply(request, &place, file, &metadata, coding)
                    .unwrap_or_else(|error| failed(&place, &error))
            }
            // Links in its page are relative to its path, which therefore ends with a slash.
            Ok(Some(Opened::Folder)) if !request.path().ends_with('/') => {
                let query = request.head().query();
                let mark = if query.is_empty() { "" } else { "?" };
                let to = format!("{}/{mark}{query}", request.path());
                Reply::of(Response::new(308).with_header("Location", to))
            }
            Ok(_) => not_found(),
            Err(error) => failed(&place, &error),
        }
    }

    /// The form in gzip of the file at a place, if it lies beside it: it has the name with `.gz`, and
    /// holds a file of the same length and checksum. Times prove nothing: a deploy may set any.
    fn gzip(&self, place: &Path, plain: &mut File, of: &Metadata) -> Option<(File, Metadata)> {
        let mut name = place.to_owned().into_os_string();
        name.push(".gz");
        let Ok(Some(Opened::File(mut file, metadata))) = self.open(Path::new(&name)) else {
            return None;
        };
        let (crc32, length) = gzip_trailer(&mut file).ok()??;
        let is_same = length == of.len() as u32 && crc32 == self.checksum(place, plain, of).ok()?;
        is_same.then_some((file, metadata))
    }

    /// The checksum of the file at a place, which is read if it has changed.
    fn checksum(&self, place: &Path, file: &mut File, of: &Metadata) -> io::Result<u32> {
        let (modified, length) = (of.modified()?, of.len());
        let known = self.checksums().get(place).copied();
        if let Some(known) = known.filter(|of| (of.modified, of.length) == (modified, length)) {
            return Ok(known.crc32);
        }
        let mut hasher = crc32fast::Hasher::new();
        let mut piece = vec![0; PIECE_BYTES as usize];
        loop {
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(bytes) => hasher.update(&piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        file.rewind()?;
        let crc32 = hasher.finalize();
        self.checksums().insert(place.to_owned(), Checksum { modified, length, crc32 });
        Ok(crc32)
    }

    fn checksums(&self) -> MutexGuard<'_, HashMap<PathBuf, Checksum>> {
        self.checksums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens what lies at a place in the folder; `None` if there is nothing that may be served.
    fn open(&self, place: &Path) -> io::Result<Option<Opened>> {
        // A name that no file can have is as good as one that none has.
        let Ok(path) = self.root.join(place).canonicalize() else { return Ok(None) };
        // Where links lead is looked at as well.
        let Ok(inside) = path.strip_prefix(&self.root) else { return Ok(None) };
        if inside.components().any(|part| is_hidden(&part)) {
            return Ok(None);
        }
        // Before it is opened: opening a pipe would wait for its writer.
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            return Ok(Some(Opened::Folder));
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        match File::open(&path) {
            Ok(file) => {
                let metadata = file.metadata()?;
                Ok(Some(Opened::File(file, metadata)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                log::warn!("{} can't be served: {error}", path.display());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// The checksum and the length of what a file in gzip holds, as its last 8 bytes say; `None` if it is
/// not a file in gzip. It is at its beginning again then.
fn gzip_trailer(file: &mut File) -> io::Result<Option<(u32, u32)>> {
    let mut magic = [0; GZIP.len()];
    file.read_exact(&mut magic)?;
    if magic != GZIP {
        return Ok(None);
    }
    let mut trailer = [0; 8];
    file.seek(SeekFrom::End(-(trailer.len() as i64)))?;
    file.read_exact(&mut trailer)?;
    file.rewind()?;
    let [a, b, c, d, e, f, g, h] = trailer;
    Ok(Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))))
}

fn is_hidden(part: &Component<'_>) -> bool {
    part.as_os_str().as_encoded_bytes().starts_with(b".")
}

/// The place in a folder that the segments of a path mean; `None` if they may mean one outside.
fn place(segments: &[Cow<'_, str>]) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        // Separators, drives and streams of any system: what is a name on one may be more on another.
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

/// The answer with a file, or with what a client that has it already needs to know.
fn reply(
    request: &Request,
    place: &Path,
    mut file: File,
    metadata: &Metadata,
    coding: Option<&'static str>,
) -> io::Result<Reply> {
    let length = metadata.len();
    let modified = metadata.modified()?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let suffix = coding.map_or(String::new(), |coding| format!("-{coding}"));
    let tag = format!("\"{:x}-{length:x}{suffix}\"", since.as_nanos());
    let date = http_date(modified);

    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let mut response = with_caution(Response::new(200))
        .with_header("Content-Type", media_type(&name))
        .with_header("ETag", tag.clone())
        .with_header("Last-Modified", date.clone())
        .with_header("Vary", "Accept-Encoding")
        .with_header("Accept-Ranges", "bytes");
    if let Some(coding) = coding {
        response = response.with_header("Content-Encoding", coding);
    }
    // Dates are compared as text: clients send what they were sent.
    let is_unchanged = validator::is_known(request, &tag)
        .unwrap_or_else(|| request.header("If-Modified-Since") == Some(&*date));
    if is_unchanged {
        return Ok(Reply::of(response.with_status(304)));
    }
    let is_same = |known: &str| known == tag || known == date;
    let header = request
        .header("Range")
        .filter(|_| request.method() == "GET" && request.header("If-Range").is_none_or(is_same));
    let (response, part) = match range::asked(header, length) {
        Asked::Whole => (response, 0..length),
        Asked::Part(part) => {
            let text = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            (response.with_status(206).with_header("Content-Range", text), part)
        }
        Asked::Beyond => {
            let reply = plain(416, "the file has no such part");
            let text = format!("bytes */{length}");
            return Ok(Reply {
                response: reply.response.with_header("Content-Range", text),
                ..reply
            });
        }
    };
    let body_bytes = part.end - part.start;
    let pieces = if request.method() == "HEAD" || body_bytes == 0 {
        None
    } else {
        file.seek(SeekFrom::Start(part.start))?;
        Some(Pieces { file, left: body_bytes })
    };
    Ok(Reply { response, body_bytes: Some(body_bytes), pieces })
}

/// An error with text for people.
fn plain(status: u16, text: &str) -> Reply {
    Reply::of(Response::error(status, format!("{text}\n")))
}

fn failed(place: &Path, error: &io::Error) -> Reply {
    log::warn!("{} can't be served: {error}", place.display());
    plain(503, "the file can't be read now; try again")
}

impl Reply {
    fn of(response: Response) -> Self {
        let has_body = !matches!(response.status(), 204 | 304);
        let body_bytes = has_body.then_some(response.body().len() as u64);
        Self { response, body_bytes, pieces: None }
    }
}

impl Pieces {
    /// Appends the next piece, and says whether it was the last.
    ///
    /// # Errors
    /// If the file can't be read, or has become shorter.
    pub(crate) fn read(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let bytes = self.left.min(PIECE_BYTES);
        let read = (&mut self.file).take(bytes).read_to_end(out)? as u64;
        if read < bytes {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left -= bytes;
        Ok(self.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::path::Path;

    use super::super::routes::decoded;
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
