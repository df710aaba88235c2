//! The crate serves what its sources make, without a command before the build.

use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn what_is_served_is_what_the_sources_make() {
    if Command::new("node").arg("--version").output().is_err() {
        assert!(env::var_os("CI").is_none(), "Node.js is missing");
        // This bypasses the test harness, which hides the output of passing tests.
        let text =
            "playfield: Node.js is missing, so the bundles are not compared with their sources.";
        return writeln!(stderr(), "{text}").expect("stderr can be written");
    }
    let check =
        Command::new("node").args(["scripts/bundles.mjs", "--check"]).current_dir(ROOT).output();
    let check = check.expect("Node.js, which was there");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    assert!(playfield_web::CLIENT.contains("playfield-packed.js"));
}

#[test]
fn a_clone_makes_what_it_serves_once_and_a_package_has_it() {
    let clone = Clone::new("clone");

    // Without Node.js, it says so: to who builds, to who loads it, and in CI by an error.
    clone.write("bin/node", "#!/bin/sh\nexit 127\n");
    let build = clone.build(&[]);
    assert!(build.said.contains("this build has no browser client and no console"), "{build:?}");
    assert!(build.serves.contains("throw new Error"), "{build:?}");
    assert!(build.serves.contains("install Node.js 20"), "{build:?}");
    let build = clone.build(&[("CI", "true")]);
    assert!(build.serves.is_empty() && build.said.contains("install Node.js 20"), "{build:?}");

    // With it, the files are made once,
    clone.write("bin/node", BUNDLES);
    let build = clone.build(&[]);
    assert_eq!((&*build.serves, clone.runs()), ("first", 1), "{build:?}");
    assert!(!build.said.contains("warning"), "{build:?}");
    let build = clone.build(&[]);
    assert_eq!((&*build.serves, clone.runs()), ("first", 1), "{build:?}");
    assert!(!build.said.contains("Compiling"), "{build:?}");

    // again when a source has changed or a file is gone,
    clone.write("sdk/typescript/src/new.ts", "");
    clone.write("text", "second");
    assert_eq!((&*clone.build(&[]).serves, clone.runs()), ("second", 2));
    fs::remove_file(clone.path("crates/web/dist/console/console.js")).unwrap();
    clone.write("text", "third");
    assert_eq!((&*clone.build(&[]).serves, clone.runs()), ("third", 3));

    // and older ones are better than none.
    fs::remove_file(clone.path("text")).unwrap();
    clone.write("console/src/new.ts", "");
    let build = clone.build(&[]);
    assert_eq!((&*build.serves, clone.runs()), ("third", 4), "{build:?}");
    assert!(build.said.contains("older than its sources"), "{build:?}");
    assert!(build.said.contains("cat: text"), "the script's own words: {build:?}");

    // A package has no sources.
    fs::remove_dir_all(clone.path("console")).unwrap();
    let build = clone.build(&[("CI", "true")]);
    assert_eq!((&*build.serves, clone.runs()), ("third", 4), "{build:?}");
    fs::remove_file(clone.path("crates/web/dist/client/playfield.js")).unwrap();
    let build = clone.build(&[]);
    assert!(build.said.contains("the package lacks"), "{build:?}");
}

/// In place of Node.js, with the path of `scripts/bundles.mjs`.
const BUNDLES: &str = r#"#!/bin/sh
cd "${1%/scripts/bundles.mjs}" && echo >>runs
mkdir -p crates/web/dist/client crates/web/dist/console
for file in client/playfield.js client/playfield-packed.js \
    console/index.html console/console.css console/console.js; do
    cat text >text.new || exit
    mv text.new crates/web/dist/$file
done
"#;

/// A copy of the crate beside sources that are bundled into the content of `text`.
struct Clone(PathBuf);

#[derive(Debug)]
struct Build {
    said: String,
    serves: String,
}

impl Clone {
    fn new(name: &str) -> Self {
        let clone = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        fs::remove_dir_all(&clone.0).ok();
        for file in ["Cargo.toml", "build.rs", "src/lib.rs"] {
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
            clone.write(&format!("crates/web/{file}"), &text.unwrap());
        }
        let print = "//! Prints the client.\nfn main() { print!(\"{}\", playfield_web::CLIENT) }\n";
        clone.write("crates/web/examples/print.rs", print);
        let workspace = fs::read_to_string(format!("{ROOT}/Cargo.toml")).unwrap();
        let member = workspace.lines().map(|line| match line {
            _ if line.starts_with("members = ") => "members = [\"crates/web\"]",
            // The crates that are not here.
            _ if line.contains("path = \"crates/") => "",
            _ => line,
        });
        clone.write("Cargo.toml", &member.collect::<Vec<_>>().join("\n"));
        for source in ["console", "sdk/typescript"] {
            clone.write(&format!("{source}/src/main.ts"), "");
            clone.write(&format!("{source}/package-lock.json"), "");
        }
        for source in ["console/index.html", "console/vite.config.ts", "scripts/npm-ci.mjs"] {
            clone.write(source, "");
        }
        for source in ["bundle.mjs", "served.ts"] {
            clone.write(&format!("sdk/typescript/{source}"), "");
        }
        clone.write("text", "first");
        clone.write("scripts/bundles.mjs", "");
        clone
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        if path.starts_with("bin/") {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Returns the number of times that the script has run.
    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }

    fn build(&self, variables: &[(&str, &str)]) -> Build {
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.path("bin")].into_iter().chain(env::split_paths(&path)));
        let output = Command::new(env!("CARGO"))
            .args(["run", "--offline", "--example", "print"])
            .current_dir(self.path("crates/web"))
            .env("PATH", path.unwrap())
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env_remove("CI")
            .envs(variables.iter().copied())
            .output()
            .expect("cargo, which runs this test");
        let [serves, said] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        Build { said, serves }
    }
}
