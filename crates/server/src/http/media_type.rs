//! The types of files, by the end of their names.

/// Types of files that browsers load, and that games and tools send. Text is UTF-8.
const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bin", "application/octet-stream"),
    ("bmp", "image/bmp"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("glb", "model/gltf-binary"),
    ("gltf", "model/gltf+json"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("m4a", "audio/mp4"),
    ("map", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("obj", "model/obj"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The type of a file with this name. A browser saves what it does not know.
pub(crate) fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::{TYPES, media_type};

    #[test]
    fn the_end_of_the_name_decides() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("A.B.JS", "text/javascript; charset=utf-8"),
            ("sound.opus", "audio/ogg"),
            ("html", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.exe", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name), expected, "{name}");
        }
        assert!(TYPES.is_sorted_by_key(|(extension, _)| extension));
    }
}
