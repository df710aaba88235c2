//! A build with other logic runs the recording and the journal of a room: it reports where it
//! behaves differently, and never continues from a state that did not exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use playfield::prelude::*;

use super::{Folder, Node, text};

/// The variable with the file of the store: with it the program has rooms of [`Tally`].
pub(super) const STORE: &str = "TALLY_STORE";
/// The variable that makes the program count differently.
const OTHER: &str = "TALLY_OTHER";

/// The number that the other build counts twice.
const TWICE: u64 = 700;

/// More numbers than inputs from one hash to the next.
const NUMBERS: u64 = 1_200;

/// Adds up.
#[derive(State, Default)]
pub(super) struct Tally {
    sum: u64,
}

#[derive(Message, Clone)]
#[reply(u64)]
struct Add {
    number: u64,
}

#[room(messages(Add), record = always, persist = 60, durability = journal, empty_ms = 60_000)]
impl Room for Tally {}

impl Handle<Add> for Tally {
    fn handle(&mut self, Add { number }: Add, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        let twice = number == TWICE && std::env::var(OTHER).is_ok();
        self.sum += if twice { 2 * number } else { number };
        Ok(self.sum)
    }
}

/// The two builds, and the files of their nodes.
struct Builds {
    folder: Folder,
    other: PathBuf,
}

impl Builds {
    fn new() -> Self {
        let folder = Folder::new("other-build");
        fs::create_dir_all(&folder.0).expect("a folder");
        let other = folder.0.join("other");
        // The same program with an additional byte, which counts differently because of its
        // variable.
        let mut bytes = fs::read(std::env::current_exe().expect("it has a path")).expect("a file");
        bytes.push(0);
        fs::write(&other, bytes).expect("there is space");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).expect("it is ours");
        }
        Self { folder, other }
    }

    fn command(&self, is_other: bool, arguments: &[&str]) -> Command {
        let own = std::env::current_exe().expect("it has a path");
        let mut command = Command::new(if is_other { &self.other } else { &own });
        command.args(arguments).env(STORE, self.folder.path("tally.redb"));
        if is_other {
            command.env(OTHER, "1");
        }
        command
    }

    fn start(&self, is_other: bool) -> Node {
        let recordings = format!("--recordings.folder={}", self.folder.path("recordings"));
        let command = self.command(is_other, &["serve", &recordings]);
        let stderr = if is_other { Stdio::piped() } else { Stdio::null() };
        Node::start_as(command, stderr, "warn")
    }

    fn replay(&self, is_other: bool, file: &Path, more: &[&str]) -> Output {
        let file = file.to_str().expect("a path in UTF-8");
        let arguments = [&["replay", file], more].concat();
        self.command(is_other, &arguments).output().expect("it can be run")
    }

    /// The only file in a folder with this ending.
    fn file(&self, folder: &str, ending: &str) -> PathBuf {
        let entries = fs::read_dir(self.folder.0.join(folder)).expect("a folder");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        files.retain(|path| path.extension().is_some_and(|of| of == ending));
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }
}

/// Adds numbers, and returns the last sum that was answered.
fn add(node: &Node, numbers: impl IntoIterator<Item = u64>) -> u64 {
    let added = node.connect(async |connection| {
        let room = connection.join_or_create_by_key::<Tally>("tally", "k", &()).await?;
        for number in numbers {
            room.send(Add { number }).await?;
        }
        room.request(Add { number: 0 }).await
    });
    added.expect("it is answered")
}

fn is_there(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
}

pub(super) fn a_build_with_other_logic_says_where_it_does_otherwise() {
    let builds = Builds::new();
    let mut node = builds.start(false);
    let first = add(&node, 1..=NUMBERS);
    assert_eq!(node.stop(), Some(0));

    // The recording, which is whole.
    let file = builds.file("recordings", "rec");
    let name = file.file_name().expect("a name").to_str().expect("text");
    let own = builds.replay(false, &file, &["--verify"]);
    assert!(own.status.success(), "{}{}", text(&own.stdout), text(&own.stderr));
    let other = builds.replay(true, &file, &["--verify"]);
    assert_eq!(other.status.code(), Some(1), "{}", text(&other.stdout));
    let said = text(&other.stderr);
    is_there(&said, &[name, "differs from its recording at input ", "so one of the inputs 1 to "]);
    fs::remove_file(&file).expect("it is ours");

    // The journal of a node that is killed.
    let mut node = builds.start(false);
    let second = add(&node, 1..=NUMBERS);
    node.kill();
    assert_eq!(second, 2 * first);
    let file = builds.file("tally.redb.journal", "journal");
    let name = file.file_name().expect("a name").to_str().expect("text").to_owned();
    let of = ["--room", "k", "--verify"];
    let own = builds.replay(false, &file, &of);
    assert!(own.status.success(), "{}{}", text(&own.stdout), text(&own.stderr));
    let other = builds.replay(true, &file, &of);
    assert_eq!(other.status.code(), Some(1), "{}", text(&other.stdout));
    is_there(&text(&other.stderr), &[&name, "differs from its recording at input "]);

    // Continues where both agree, and keeps the files for the build that wrote them.
    let mut node = builds.start(true);
    let said = node.until_logged("behaves differently in this build than when it was journaled");
    is_there(&said, &["(\"tally\" \"k\")", "goes on at input ", &name, "its journal is kept in"]);
    let sum = add(&node, []);
    let known = (0..TWICE).map(|number| first + number * (number + 1) / 2);
    assert!(known.clone().any(|known| known == sum), "{sum} was never there");
    node.kill();
    let kept = builds.file("tally.redb.journal/kept", "journal");
    let state = builds.replay(false, &kept, &["--room", "k"]);
    is_there(&text(&state.stdout), &[&format!("\"sum\": {second}")]);

    // Inputs after the last hash can't be compared.
    let mut node = builds.start(false);
    let sum = add(&node, 1..=20);
    node.kill();
    let file = builds.file("tally.redb.journal", "journal");
    let name = file.file_name().expect("a name").to_str().expect("text").to_owned();
    let mut node = builds.start(true);
    let said = node.until_logged("in another build than");
    is_there(&said, &["(\"tally\" \"k\")", "goes on at input ", &name, "is at input "]);
    assert_eq!(add(&node, []), sum);
    node.kill();

    // A folder has all files of a room.
    let folder = builds.folder.0.join("tally.redb.journal");
    let state = builds.replay(true, &folder, &["--room", "k"]);
    is_there(&text(&state.stdout), &[&format!("\"sum\": {sum}")]);
    let none = builds.replay(true, &folder, &["--room", "main"]);
    is_there(&text(&none.stderr), &["the journal has no room \"main\": give one of its rooms: k"]);
    let none = builds.replay(true, &builds.folder.0.join("recordings"), &[]);
    is_there(&text(&none.stderr), &["it is a folder without a journal: give the file of a"]);
    // A file that was cut after its first block has no rooms.
    let file = builds.file("tally.redb.journal", "journal");
    let bytes = fs::read(&file).expect("it is ours");
    let mut blocks = bytes.windows(7).enumerate().filter(|(_, window)| **window == *b"PFBLOCK");
    let (second, _) = blocks.nth(1).expect("a block with the room");
    fs::write(&file, &bytes[..second]).expect("it is ours");
    let none = builds.replay(true, &file, &["--room", "main"]);
    is_there(&text(&none.stderr), &["it is a journal, and no room is whole in it"]);
}
