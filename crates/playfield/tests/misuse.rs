//! A type that can't be synced doesn't compile, and the error names the field and how to fix it.
//!
//! Each file in `tests/misuse` is given to the compiler, with the libraries that this test was
//! built with, and must fail with the text beside it. `PLAYFIELD_BLESS=1` writes these texts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, thread};

#[test]
fn misuse_errors_name_the_field_and_the_fix() {
    let cases = sources();
    assert!(cases.len() >= 120, "only {} cases", cases.len());
    let (cases, failures) = (Mutex::new(cases.into_iter()), Mutex::new(Vec::new()));
    let compiler = Compiler::new();
    let next = || cases.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = next() {
                    if let Err(failure) = compiler.check(&case) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn sources() -> Vec<PathBuf> {
    let folder = fs::read_dir("tests/misuse").expect("tests run in the crate's folder");
    let files = folder.map(|entry| entry.expect("the folder is readable").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

struct Compiler {
    /// The folder of this test and of all libraries that it is made from.
    libraries: PathBuf,
    playfield: PathBuf,
    workspace: PathBuf,
}

impl Compiler {
    fn new() -> Self {
        let test = env::current_exe().expect("the test has a path");
        let libraries = test.parent().expect("it lies in a folder").to_path_buf();
        // Other sets of features leave their own libraries there. The newest is up to date.
        let built = fs::read_dir(&libraries).expect("the folder is readable");
        let names = built.map(|entry| entry.expect("the folder is readable").path());
        let is_playfield = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libplayfield-") && name.ends_with(".rlib")
        };
        let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
        let playfield = names.filter(is_playfield).max_by_key(written).expect("cargo has built it");
        let workspace = Path::new("../..").canonicalize().expect("the workspace");
        Self { libraries, playfield, workspace }
    }

    /// Compiles `source`, and compares the errors with the text beside it.
    fn check(&self, source: &Path) -> Result<(), String> {
        let output = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
            .args(["--edition=2024", "--crate-name=misuse", "--emit=metadata", "-o", "/dev/null"])
            .args(["--color=never", "--diagnostic-width=140"])
            .arg(format!("--extern=playfield={}", self.playfield.display()))
            .arg(format!("-Ldependency={}", self.libraries.display()))
            .arg(source)
            .output()
            .expect("the compiler starts");
        let name = source.display();
        if output.status.success() {
            return Err(format!("{name} compiles, but must not"));
        }
        let errors = self.normalized(&String::from_utf8_lossy(&output.stderr));
        let beside = source.with_extension("stderr");
        if env::var_os("PLAYFIELD_BLESS").is_some() {
            fs::write(&beside, &errors).expect("the folder is writable");
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        if errors == expected {
            return Ok(());
        }
        Err(format!(
            "{name}: the errors differ; if they are better now, run this with PLAYFIELD_BLESS=1\n\
             ---- expected\n{expected}\n---- got\n{errors}"
        ))
    }

    /// Removes what depends on the machine, the compiler's release, and where our sources say it.
    fn normalized(&self, errors: &str) -> String {
        let workspace = format!("{}/", self.workspace.display());
        let (mut lines, mut is_elsewhere) = (Vec::new(), false);
        for line in errors.lines().map(|line| line.replace(&workspace, "")) {
            if ENDS.iter().any(|end| line.starts_with(end)) {
                break;
            }
            if let Some(place) = elsewhere(&line) {
                lines.push(place);
                is_elsewhere = true;
            } else if !is_elsewhere || !is_excerpt(&line) {
                lines.push(line);
                is_elsewhere = false;
            }
        }
        format!("{}\n", lines.join("\n").trim_end())
    }
}

/// Beginnings of what the compiler says after the errors.
const ENDS: [&str; 3] = ["error: aborting due to", "For more information", "Some errors have"];

/// Whether a line is of an excerpt from a source: a number or none, and a bar.
fn is_excerpt(line: &str) -> bool {
    line.trim_start_matches([' ', '.'])
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start()
        .starts_with('|')
}

/// A place in a source of the workspace or of the standard library, without the line.
fn elsewhere(line: &str) -> Option<String> {
    let sign = ["--> ", "::: "].into_iter().find(|sign| line.trim_start().starts_with(sign))?;
    let file = line.trim_start().strip_prefix(sign)?.split(':').next()?;
    if file.starts_with("crates/") {
        Some(format!(" {sign}$WORKSPACE/{file}"))
    } else {
        file.split_once("/library/").map(|(_, core)| format!(" {sign}$RUST/{core}"))
    }
}
