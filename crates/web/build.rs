//! Finds the files that this crate serves: in `dist`, which a package has. In a clone, it has them
//! made if they are missing or older than their sources. That takes Node.js; without it, the files
//! say so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

const FILES: [&str; 5] = [
    "client/playfield.js",
    "client/playfield-packed.js",
    "console/index.html",
    "console/console.css",
    "console/console.js",
];

/// The sources of those files, in the clone.
const SOURCES: [&str; 10] = [
    "console/index.html",
    "console/package-lock.json",
    "console/src",
    "console/vite.config.ts",
    "scripts/bundles.mjs",
    "scripts/npm-ci.mjs",
    "sdk/typescript/bundle.mjs",
    "sdk/typescript/package-lock.json",
    "sdk/typescript/served.ts",
    "sdk/typescript/src",
];

fn main() {
    let own = folder("CARGO_MANIFEST_DIR");
    let (root, dist) = (own.join("../.."), own.join("dist"));
    let files = FILES.map(|file| dist.join(file));
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    if !SOURCES.iter().all(|source| root.join(source).exists()) {
        let missing = files.iter().find(|file| !file.exists());
        assert!(missing.is_none(), "the package lacks {missing:?}: make it with `make package`");
        return serve(&dist);
    }
    println!("cargo::rerun-if-env-changed=CI");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let sources = SOURCES.iter().filter_map(|source| newest(&root.join(source))).max();
    let sources = sources.expect("they have a time, as they exist");
    let is_current = |file: &PathBuf| modified(file).is_some_and(|time| time >= sources);
    if files.iter().all(is_current) {
        return serve(&dist);
    }
    match make(&root, &files, sources) {
        Ok(()) => serve(&dist),
        Err(why) => do_without(&why, files.iter().all(|file| file.exists()).then_some(&dist)),
    }
}

/// Makes the files by Node.js, or says why it can't.
fn make(root: &Path, files: &[PathBuf], time: SystemTime) -> Result<(), String> {
    let mut script = Command::new("node");
    let output = script.arg(root.join("scripts/bundles.mjs")).output();
    let output = output.map_err(|error| format!("{script:?} can't be run: {error}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        return Err(format!("{script:?} failed: {}", String::from_utf8_lossy(&text).trim_end()));
    }
    // Cargo runs this again when one of them is newer than the last run.
    for file in files {
        let set = fs::File::options().append(true).open(file);
        let set = set.and_then(|file| file.set_modified(time));
        set.map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// Goes on with older files, or with some that say what is missing; in CI, it is an error.
fn do_without(why: &str, older: Option<&PathBuf>) {
    let advice = "install Node.js 20 or later, with npm, and build again";
    assert!(env::var_os("CI").is_none(), "what browsers load can't be bundled: {why}\n{advice}");
    for line in why.lines() {
        println!("cargo::warning={line}");
    }
    if let Some(older) = older {
        println!("cargo::warning=what browsers load is older than its sources: {advice}");
        return serve(older);
    }
    println!("cargo::warning=this build has no browser client and no console: {advice}");
    let reason = format!(
        "This server has no browser client and no console, since Node.js was missing or failed when \
         it was built. To get them, {advice}."
    );
    let folder = folder("OUT_DIR");
    for file in FILES {
        let text = match Path::new(file).extension().and_then(|kind| kind.to_str()) {
            Some("js") => format!("throw new Error({reason:?});\n"),
            Some("html") => format!("<!doctype html>\n<p>{reason}\n"),
            _ => String::new(),
        };
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("OUT_DIR is writable");
        fs::write(path, text).expect("OUT_DIR is writable");
    }
    serve(&folder);
}

/// Tells the crate where the files are.
fn serve(folder: &Path) {
    println!("cargo::rustc-env=PLAYFIELD_WEB={}", folder.display());
}

/// When a file, or what is in a folder, last changed.
fn newest(path: &Path) -> Option<SystemTime> {
    let inside = fs::read_dir(path).ok().into_iter().flatten().flatten();
    inside.filter_map(|entry| newest(&entry.path())).chain(modified(path)).max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn folder(variable: &str) -> PathBuf {
    PathBuf::from(env::var_os(variable).unwrap_or_else(|| panic!("cargo sets {variable}")))
}
