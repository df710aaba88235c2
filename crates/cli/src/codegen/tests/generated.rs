//! Generated files are those in `sdk/typescript/test/types` and `python` here, which the packages'
//! own tools check. `PLAYFIELD_WRITE=1` writes them.

use std::path::PathBuf;

use crate::codegen::Language;
use playfield::prelude::*;
use playfield::{RoomSchema, schema};

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

/// A room whose names are keywords of Python.
mod words {
    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(super) struct Words {
        lines: Map<PlayerId, Line>,
        last: Mood,
    }

    #[derive(State, Default)]
    struct Line {
        from: String,
        text: String,
        #[sync(owner)]
        class: String,
    }

    #[derive(State, Data, Default, Clone, PartialEq)]
    enum Mood {
        #[default]
        None,
        True {
            is: u8,
        },
    }

    #[derive(Message)]
    pub(super) struct True {
        r#in: u32,
        in_: u32,
        mood: Mood,
    }

    #[derive(Message)]
    pub(super) struct None {}

    #[derive(Message)]
    pub(super) struct False {
        from: String,
        text: String,
    }

    #[room(messages(True, None), events(False))]
    impl Room for Words {}

    impl Handle<True> for Words {
        fn handle(&mut self, said: True, _: &Player, cx: &mut Context<Self>) -> Result<()> {
            self.last = said.mood;
            let text = format!("{} {}", said.r#in, said.in_);
            cx.emit(&False { from: String::new(), text });
            Ok(())
        }
    }

    impl Handle<None> for Words {
        fn handle(&mut self, _: None, _: &Player, _: &mut Context<Self>) -> Result<()> {
            Ok(())
        }
    }
}

/// A room whose names are those of types of Python, or can't be names there.
mod names {
    use std::collections::BTreeMap;

    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(super) struct Names {
        items: Map<PlayerId, Any>,
        größe: u32,
        place: Place,
        last: Option<Sequence>,
        __proto: u8,
        _typing: u8,
    }

    #[derive(State, Default)]
    struct Place(u32, f32);

    #[derive(State, Default)]
    struct Any {
        int: i64,
        bytes: Bytes,
        count: u8,
        #[sync(owner)]
        straße: String,
    }

    #[derive(State, Data, Default, Clone, PartialEq)]
    enum Sequence {
        #[default]
        Optional,
        Literal {
            any: String,
        },
    }

    #[derive(State, Data, Default, Clone, PartialEq)]
    pub(super) struct Told {
        of: u8,
    }

    #[derive(Data)]
    pub(super) struct Pair(Told, u8);

    #[derive(Message)]
    #[reply(Vec<Told>)]
    pub(super) struct Literal {
        größe: u32,
        told: Vec<Told>,
        by_name: BTreeMap<String, Told>,
        best: Option<Told>,
        pair: Pair,
    }

    #[derive(Message)]
    #[allow(non_camel_case_types)]
    pub(super) struct join_me {
        str: String,
        text: String,
    }

    #[derive(Message)]
    #[allow(non_camel_case_types)]
    pub(super) struct start_now {}

    #[derive(Message)]
    pub(super) struct Mapping {}

    #[room(messages(Literal, join_me, start_now), events(Mapping))]
    impl Room for Names {}

    impl Handle<Literal> for Names {
        fn handle(
            &mut self,
            said: Literal,
            _: &Player,
            cx: &mut Context<Self>,
        ) -> Result<Vec<Told>> {
            self.größe = said.größe + u32::from(said.pair.1);
            cx.emit(&Mapping {});
            Ok(said.told.into_iter().chain(said.by_name.into_values()).chain(said.best).collect())
        }
    }

    impl Handle<join_me> for Names {
        fn handle(&mut self, said: join_me, _: &Player, _: &mut Context<Self>) -> Result<()> {
            let any = said.str + &said.text;
            self.last = Some(Sequence::Literal { any });
            Ok(())
        }
    }

    impl Handle<start_now> for Names {
        fn handle(&mut self, _: start_now, _: &Player, _: &mut Context<Self>) -> Result<()> {
            Ok(())
        }
    }
}

/// The part of the guide's game that clients see, whose page `docs/typescript.md` makes.
mod guide {
    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(super) struct Duel {
        round: u32,
        players: Map<PlayerId, Seat>,
        #[sync(owner)]
        hands: Map<PlayerId, List<u8>>,
    }

    #[derive(State, Default)]
    pub(super) struct Seat {
        name: String,
        won: u32,
        ready: bool,
    }

    #[derive(Message)]
    #[reply(u8)]
    pub(super) struct Choose {
        index: u32,
    }

    #[derive(Message)]
    pub(super) struct Shown {
        winner: PlayerId,
        numbers: Vec<u8>,
    }

    #[room(messages(Choose), events(Shown))]
    impl Room for Duel {}

    impl Handle<Choose> for Duel {
        fn handle(&mut self, _: Choose, of: &Player, cx: &mut Context<Self>) -> Result<u8> {
            cx.emit(&Shown { winner: of.id(), numbers: Vec::new() });
            Ok(0)
        }
    }
}

fn is_generated(language: Language, folder: &str) {
    is_room_generated(language, folder, "duel", &schema::<Duel>());
}

fn is_room_generated(language: Language, folder: &str, room_type: &str, schema: &RoomSchema) {
    let text = language.generate(room_type, schema);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let path = folder.join(language.file(room_type));
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
fn the_types_of_the_guide_are_those_that_its_page_is_compiled_with() {
    let schema = schema::<guide::Duel>();
    let folder = "../../sdk/typescript/test/documents";
    is_room_generated(Language::TypeScript, folder, "duel", &schema);
}

#[test]
fn the_types_for_python_are_those_that_python_reads() {
    is_generated(Language::Python, "src/codegen/tests/python");
}

#[test]
fn names_that_are_keywords_of_python_get_an_underscore() {
    is_room_generated(
        Language::Python,
        "src/codegen/tests/python",
        "words",
        &schema::<words::Words>(),
    );
}

#[test]
fn names_of_types_of_python_and_what_can_be_no_name_there_have_names() {
    is_room_generated(
        Language::Python,
        "src/codegen/tests/python",
        "names",
        &schema::<names::Names>(),
    );
}

#[test]
fn a_room_types_name_is_made_a_files_name() {
    assert_eq!(Language::TypeScript.file("../my duel"), "___my_duel.ts");
    assert_eq!(Language::from_name("python"), Some(Language::Python));
    assert_eq!(Language::from_name("cobol"), None);
}

#[test]
fn python_reads_the_types() {
    for file in ["duel.py", "names.py", "words.py"] {
        is_read_by_python(&format!(
            "{}/src/codegen/tests/python/{file}",
            env!("CARGO_MANIFEST_DIR")
        ));
    }
}

fn is_read_by_python(path: &str) {
    python_ends_well(&["-B", path]);
}

/// Runs a program, if there is Python.
pub(crate) fn python_runs(text: &str) {
    python_ends_well(&["-c", text]);
}

fn python_ends_well(arguments: &[&str]) {
    let ran = std::process::Command::new("python3").args(arguments).output();
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
