//! The programs in `peers/`, which no other test builds: what they are made of exists.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands before the path of a file, and what ends it. Paths are relative to the file that has
/// them.
const NAMED: &[(&str, &str, &str)] = &[
    ("rs", "#[path = \"", "\""),
    ("rs", "include_str!(\"", "\""),
    ("toml", "path = \"", "\""),
    ("mjs", "from \"./", "\""),
    ("cpp", "#include \"./", "\""),
];

#[test]
fn every_file_that_a_peer_includes_exists() {
    let mut files = Vec::new();
    add_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("peers"), &mut files);
    let mut named = 0;
    for file in files {
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (_, begin, end) in NAMED.iter().filter(|(of, ..)| *of == extension) {
            for part in text.split(begin).skip(1) {
                let (path, _) = part.split_once(end).expect("a path ends");
                let path = file.parent().expect("a file is in a folder").join(path);
                assert!(path.exists(), "{} includes {}", file.display(), path.display());
                named += 1;
            }
        }
    }
    assert!(named > 1, "the peers include files of the benchmarks");
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { add_files(&path, files) } else { files.push(path) }
    }
}
