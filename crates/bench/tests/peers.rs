//! The programs in `peers/`, which no other test builds: what they are made of exists. And `bench
//! peers` without any of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The text before the path of a file, and the text that ends it. Paths are relative to the file
/// that has them.
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

fn bench_peers(folder: &Path, peers: &str) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_playfield-bench"));
    bench.args(["bench", "peers", "--quick", "--json", "--peers", peers, "--folder"]).arg(folder);
    bench.output().expect("the program starts")
}

#[test]
fn peers_that_are_not_installed_are_named_and_left_out() {
    let output = bench_peers(Path::new("nowhere"), "mpacket colyseus");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(output.stdout.is_empty());
    for named in ["mpacket is left out", "colyseus is left out", "make bench-peers"] {
        assert!(errors.contains(named), "{errors}");
    }
    let output = bench_peers(Path::new("nowhere"), "mpackets");
    assert_eq!(output.status.code(), Some(2));
}
