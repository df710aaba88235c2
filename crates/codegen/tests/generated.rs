//! Generated files are those in `sdk/typescript/test/types` and `tests/python`, which the packages'
//! own tools check. `PLAYFIELD_WRITE=1` writes them.

use std::path::PathBuf;

use playfield::prelude::*;
use playfield::schema;
use playfield_codegen::Language;

#[derive(State, Default)]
struct Duel {
    round: u32,
    started_us: u64,
    phase: Phase,
    players: Map<PlayerId, Fighter>,
    #[sync(owner)]
    hands: Map<PlayerId, List<Card>>,
    #[sync(hidden)]
    deck: List<Card>,
    flags: Set<String>,
    board: [u8; 3],
}

#[derive(State, Default)]
struct Fighter {
    name: String,
    #[sync(quantize = 0.01)]
    x: f32,
    last: Option<Card>,
    #[sync(owner)]
    notes: String,
}

#[derive(State, Data, Default, Clone, PartialEq)]
enum Phase {
    #[default]
    Waiting,
    Turn {
        of: PlayerId,
        left_ms: u32,
    },
    Over(Option<PlayerId>),
}

#[derive(State, Data, Default, Clone, PartialEq)]
struct Card {
    suit: u8,
    rank: u8,
}

/// Plays cards. The reply is how many are left.
#[derive(Message)]
#[reply(u32)]
struct Play {
    cards: Vec<Card>,
    face_down: bool,
}

#[derive(Message)]
struct Yield {}

#[derive(Message)]
struct Dealt {
    to: PlayerId,
    count: u32,
}

#[room(messages(Play, Yield), events(Dealt))]
impl Room for Duel {}

impl Handle<Play> for Duel {
    fn handle(&mut self, play: Play, player: &Player, cx: &mut Context<Self>) -> Result<u32> {
        cx.emit(&Dealt { to: player.id(), count: u32::from(play.face_down) });
        Ok(play.cards.len() as u32)
    }
}

impl Handle<Yield> for Duel {
    fn handle(&mut self, _: Yield, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn is_generated(language: Language, folder: &str) {
    let text = language.generate("duel", &schema::<Duel>());
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let path = folder.join(language.file("duel"));
    if std::env::var_os("PLAYFIELD_WRITE").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&path, &text).expect("a file");
    }
    let known = std::fs::read_to_string(&path).expect("a file of this repository");
    assert_eq!(text, known, "{} differs; PLAYFIELD_WRITE=1 writes it", path.display());
}

#[test]
fn the_types_for_typescript_are_those_that_its_compiler_checks() {
    is_generated(Language::TypeScript, "../../sdk/typescript/test/types");
}

#[test]
fn the_types_for_python_are_those_that_python_reads() {
    is_generated(Language::Python, "tests/python");
}

#[test]
fn a_room_types_name_is_made_a_files_name() {
    assert_eq!(Language::TypeScript.file("../my duel"), "___my_duel.ts");
    assert_eq!(Language::from_name("python"), Some(Language::Python));
    assert_eq!(Language::from_name("cobol"), None);
}

#[test]
fn python_reads_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/duel.py");
    let ran = std::process::Command::new("python3").args(["-B", path]).output();
    match ran {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // This bypasses the test harness, which hides the output of passing tests.
            let text = "playfield: python3 is missing, so generated types for Python are not read.";
            std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes())
                .expect("stderr can be written");
        }
        Err(error) => panic!("python3 can't be started: {error}"),
    }
}
