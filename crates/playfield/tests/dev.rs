//! `playfield dev`, as people run it, with a script in place of cargo: it makes the server, which is a
//! script as well, of `src/main.rs`. With cargo and a game it runs in `make test-new`.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Fails if the source has the word `wrong`; makes nothing if it is the same as before.
const CARGO: &str = r#"#!/bin/sh
if grep -q wrong src/main.rs; then echo "error: src/main.rs is wrong" >&2; exit 101; fi
fresh=false
if cmp -s src/main.rs made; then fresh=true; else rm -f made; cp src/main.rs made; fi
echo "{\"target\":{\"name\":\"game\"},\"fresh\":$fresh,\"executable\":\"$PWD/made\"}"
"#;

/// A server that says who it is.
fn server(port: u16) -> String {
    format!(
        "#!/bin/sh\nif [ $# = 4 ]; then echo types >>$4; exit; fi\necho process $$\n\
         echo pages $PLAYFIELD_PAGES, arguments $*\necho listening on 127.0.0.1:{port}\n\
         exec sleep 600\n"
    )
}

/// A game, and `dev`, which serves it.
struct Dev {
    folder: PathBuf,
    child: Child,
    out: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Dev {
    fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_in(name, arguments, |_, command| _ = command.env("PLAYFIELD_CONSOLE", ""))
    }

    /// The same, once `prepare` has changed its folder and its command.
    fn start_in(name: &str, arguments: &[&str], prepare: impl FnOnce(&Path, &mut Command)) -> Self {
        let folder = std::env::temp_dir().join(format!("playfield-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::create_dir_all(folder.join("web")).unwrap();
        fs::write(folder.join("Cargo.toml"), "").unwrap();
        fs::write(folder.join("src/main.rs"), server(1)).unwrap();
        let cargo = folder.join("cargo");
        fs::write(&cargo, CARGO).unwrap();
        for program in [&cargo, &folder.join("src/main.rs")] {
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_playfield"));
        command.arg("dev").args(arguments).current_dir(&folder).env("CARGO", cargo);
        prepare(&folder, &mut command);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { folder, child, out, errors }
    }

    /// Saves as editors do, at once: half of a script would be a server, too.
    fn save(&self, source: &str) {
        let new = self.folder.join("new");
        fs::write(&new, source).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.folder.join("src/main.rs")).unwrap();
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for a server. Returns its process.
    fn served(&mut self, port: u16) -> Pid {
        let line = self.line();
        let process = line.strip_prefix("process ").unwrap_or_else(|| panic!("{line}"));
        let process = Pid::from_raw(process.parse().unwrap()).unwrap();
        assert!(self.line().starts_with("pages "));
        let line = self.line();
        let begins = format!("playfield: http://127.0.0.1:{port}/, ");
        assert!(line.starts_with(&begins) && line.contains(" after the save: build "), "{line}");
        process
    }

    /// Interrupts it, and waits for its end. Returns what else it has printed.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        fs::remove_dir_all(&self.folder).unwrap();
        rest
    }
}

fn is_running(process: Pid) -> bool {
    test_kill_process(process).is_ok()
}

#[test]
fn a_save_replaces_the_server_and_the_end_ends_all() {
    let mut dev = Dev::start("dev", &[]);
    let first = dev.served(1);
    assert!(is_running(first));
    dev.save(&server(2));
    let second = dev.served(2);
    assert!(is_running(second) && !is_running(first));
    assert_eq!(dev.end(), "");
    assert!(!is_running(second));
}

#[test]
fn a_port_that_the_system_has_chosen_stays_and_a_server_with_tls_is_announced_as_such() {
    let server = |port, note| {
        format!(
            "#!/bin/sh\nif [ $# = 4 ]; then exit; fi\necho $* $PLAYFIELD_LISTEN\n\
             echo listening on 127.0.0.1:{port} with TLS\nexec sleep 600\n# {note}\n"
        )
    };
    let listens = ["--", "--listen", "127.0.0.1:0", "--listen=0.0.0.0:0"];
    let mut dev = Dev::start_in("dev-port", &listens, |folder, command| {
        fs::write(folder.join("src/main.rs"), server(4321, "first")).unwrap();
        command.env("PLAYFIELD_CONSOLE", "").env("PLAYFIELD_LISTEN", "[::]:0");
    });
    assert_eq!(dev.line(), "--listen 127.0.0.1:0 --listen=0.0.0.0:0 [::]:0");
    let line = dev.line();
    assert!(line.starts_with("playfield: https://127.0.0.1:4321/, "), "{line}");
    dev.save(&server(4321, "second"));
    let chosen = "127.0.0.1:4321";
    assert_eq!(dev.line(), format!("--listen {chosen} --listen={chosen} {chosen}"));
    dev.end();
}

#[test]
fn a_build_that_fails_leaves_the_old_server() {
    let mut dev = Dev::start("dev-wrong", &[]);
    let first = dev.served(1);
    dev.save("wrong");
    let mut error = String::new();
    dev.errors.read_line(&mut error).unwrap();
    assert_eq!(error, "error: src/main.rs is wrong\n");
    assert_eq!(
        dev.line(),
        "playfield: the build has failed; the server that was built before runs on"
    );
    assert!(is_running(first));
    dev.save(&server(3));
    dev.served(3);
    assert!(!is_running(first));
    dev.end();
}

#[test]
fn a_page_that_is_saved_needs_no_build() {
    let mut dev = Dev::start("dev-pages", &["--types", "types", "--", "--shards", "1"]);
    let line = dev.line();
    let process: i32 = line.strip_prefix("process ").unwrap().parse().unwrap();
    let pages = format!("pages {}, arguments --shards 1", dev.folder.join("web").display());
    assert_eq!(dev.line(), pages);
    assert!(dev.line().starts_with("playfield: http://127.0.0.1:1/, "));
    fs::write(dev.folder.join("web/index.html"), "new").unwrap();
    fs::write(dev.folder.join("saves"), "new").unwrap();
    // The same source builds nothing new; another one does, after all that came before it.
    dev.save(&server(1));
    dev.save(&server(2));
    assert!(dev.line().starts_with("process "));
    assert!(!is_running(Pid::from_raw(process).unwrap()));
    assert!(dev.line().starts_with("pages "));
    assert!(dev.line().starts_with("playfield: http://127.0.0.1:2/, "));
    let types = fs::read_to_string(dev.folder.join("types")).unwrap();
    assert_eq!(types, "types\ntypes\n");
    dev.end();
}

/// An editor runs cargo, too: that of `dev` then finds everything fresh.
#[test]
fn a_program_that_another_cargo_has_built_is_served() {
    let mut dev = Dev::start("dev-fresh", &[]);
    let first = dev.served(1);
    let made = dev.folder.join("made");
    fs::remove_file(&made).unwrap();
    fs::write(&made, server(2)).unwrap();
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
    dev.save(&server(2));
    dev.served(2);
    assert!(!is_running(first));
    dev.end();
}

#[test]
fn a_server_may_print_what_is_no_text() {
    let mut dev = Dev::start("dev-bytes", &[]);
    dev.served(1);
    let listens = "echo listening";
    dev.save(&server(2).replace(listens, &format!("printf '\\377\\n'\n{listens}")));
    assert!(dev.line().starts_with("process "));
    assert!(dev.line().starts_with("pages "));
    assert_eq!(dev.line(), "\u{fffd}");
    assert!(dev.line().starts_with("playfield: http://127.0.0.1:2/, "));
    dev.end();
}

#[test]
fn a_program_that_writes_types_for_ever_holds_nothing_up() {
    let mut dev = Dev::start("dev-no-types", &["--types", "types"]);
    dev.served(1);
    let types = dev.folder.join("types");
    let begins = || while fs::read_to_string(&types).unwrap() != "begins\n" {};
    let hanging =
        |port| server(port).replace("echo types >>$4; exit", "echo begins >$4; sleep 600");
    dev.save(&hanging(2));
    begins();
    // A save replaces it.
    dev.save(&server(3));
    dev.served(3);
    // So does the end.
    fs::write(&types, "").unwrap();
    dev.save(&hanging(4));
    begins();
    assert_eq!(dev.end(), "");
}

#[test]
fn what_dev_has_started_ends_with_it_however_it_ends() {
    let mut dev = Dev::start("dev-killed", &[]);
    dev.served(1);
    dev.child.kill().unwrap();
    dev.child.wait().unwrap();
    // All that it has started have its standard error.
    dev.errors.read_to_string(&mut String::new()).unwrap();
    fs::remove_dir_all(&dev.folder).unwrap();
}

#[test]
fn a_server_that_ends_is_started_by_the_next_save() {
    let mut dev = Dev::start("dev-ends", &[]);
    let first = dev.served(1);
    kill_process(first, Signal::KILL).unwrap();
    assert_eq!(
        dev.line(),
        "playfield: the server has ended; save a file to build and start it again"
    );
    dev.save(&server(2));
    dev.served(2);
    dev.end();
}

#[test]
fn types_are_written_though_the_server_ends_at_once() {
    let mut dev = Dev::start("dev-types-first", &["--types", "web/types"]);
    dev.served(1);
    let types = dev.folder.join("web/types");
    fs::remove_file(&types).unwrap();
    dev.save("#!/bin/sh\nif [ $# = 4 ]; then echo types >>$4; fi\necho over\n");
    assert_eq!(dev.line(), "over");
    assert!(dev.line().contains("the server has ended"));
    assert_eq!(fs::read_to_string(&types).unwrap(), "types\n");
    dev.end();
}

/// `npm`, which serves a page that is on another port than the node.
const NPM: &str = "#!/bin/sh
echo npm $*, port $VITE_PLAYFIELD_PORT
case $* in *dev) echo '  Local:   http://localhost:5173/'; exec sleep 600;; esac
";

#[test]
fn an_app_is_announced_where_its_page_is_and_what_it_needs_is_built() {
    let mut dev = Dev::start_in("dev-app", &[], |folder, command| {
        fs::create_dir_all(folder.join("web/src")).unwrap();
        fs::create_dir_all(folder.join("sdk")).unwrap();
        fs::write(folder.join("sdk/package.json"), "{}").unwrap();
        let package = r#"{"dependencies": {"playfield": "file:../sdk"}}"#;
        fs::write(folder.join("web/package.json"), package).unwrap();
        let npm = folder.join("npm");
        fs::write(&npm, NPM).unwrap();
        fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", folder.display())).env("PLAYFIELD_CONSOLE", "");
    });
    assert!(dev.line().starts_with("process "));
    assert!(dev.line().starts_with("pages "));
    let line = dev.line();
    assert!(line.starts_with("playfield: the server listens on 127.0.0.1:1, "), "{line}");
    let sdk = dev.folder.join("web/../sdk");
    for arguments in [
        &format!("--prefix {} ci", sdk.display()),
        &format!("--prefix {} run build", sdk.display()),
        "install",
        "run dev",
    ] {
        assert_eq!(dev.line(), format!("npm {arguments}, port 1"));
    }
    assert_eq!(dev.line(), "  Local:   http://localhost:5173/");
    assert_eq!(dev.line(), "playfield: http://localhost:5173/, the page");
    dev.save(&server(2));
    assert!(dev.line().starts_with("process "));
    assert!(dev.line().starts_with("pages "));
    let line = dev.line();
    assert!(line.starts_with("playfield: http://localhost:5173/, "), "{line}");
    assert_eq!(dev.end(), "");
}

#[test]
fn a_console_that_the_servers_arguments_name_is_not_announced_elsewhere() {
    for arguments in [&["--", "--console", "127.0.0.1:9"][..], &["--", "--console=127.0.0.1:9"]] {
        let mut dev = Dev::start_in("dev-console", arguments, |_, command| {
            command.env_remove("PLAYFIELD_CONSOLE");
        });
        dev.served(1);
        assert_eq!(dev.end(), "");
    }
    let mut dev = Dev::start_in("dev-console", &["--console", "127.0.0.1:9"], |_, _| {});
    dev.served(1);
    assert_eq!(dev.line(), "playfield: console at http://127.0.0.1:9/");
    dev.end();
}

#[test]
fn a_folder_without_a_game_is_named() {
    let folder = std::env::temp_dir();
    let output = Command::new(env!("CARGO_BIN_EXE_playfield"))
        .arg("dev")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("has no Cargo.toml: run `playfield dev` in the folder of a game"),
        "{said}"
    );
}
