//! The command as people run it. This programme is both the command, when it is given arguments that a test gives it, and its test:
//! a benchmark executes itself once more, and so must be the whole programme.

use std::process::{Command, ExitCode, Output};

const TESTS: &[(&str, fn())] = &[
    ("help_names_every_command", help_names_every_command),
    ("an_unknown_option_is_named", an_unknown_option_is_named),
    ("bench_sync_verifies_what_it_counts", bench_sync_verifies_what_it_counts),
    ("bench_sync_notices_one_damaged_message", bench_sync_notices_one_damaged_message),
];

fn main() -> ExitCode {
    if matches!(std::env::args().nth(1).as_deref(), Some("bench" | "help")) {
        return playfield_cli::main();
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&filter)) {
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn playfield(arguments: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this programme has a path");
    Command::new(this).args(arguments).output().expect("this programme can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn help_names_every_command() {
    let output = playfield(&["help"]);
    assert!(output.status.success());
    for command in ["bench", "help"] {
        assert!(text(&output.stdout).contains(&format!("\n  {command} ")), "{command}");
    }
}

fn an_unknown_option_is_named() {
    let output = playfield(&["bench", "sync", "--player", "3"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("--player;") && errors.contains("--players, --cards"), "{errors}");
}

/// Both workloads and formats, few players, few sequences.
const SMALL: &[&[&str]] = &[
    &["--workload=swift", "--scenario=A", "--format=packed"],
    &["--workload=swift", "--scenario=B", "--format=json"],
    &["--workload=swift", "--scenario=B", "--tracking=off"],
    &["--workload=colyseus", "--scenario=A", "--format=json"],
    &["--workload=colyseus", "--scenario=B", "--hands=0.8"],
];

fn small(case: &[&str], more: &[&str]) -> Output {
    let arguments = ["bench", "sync", "--json", "--players=4", "--sequences=2"];
    playfield(&[&arguments, case, more].concat())
}

fn bench_sync_verifies_what_it_counts() {
    for case in SMALL {
        let output = small(case, &[]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{case:?}: {line}{}", text(&output.stderr));
        // Two rooms by the wall clock and eight by the processor's, each with snapshots, 105 syncs, and for the first two snapshots again.
        let messages = 4 * (10 + 10 * 105 + 2);
        assert!(
            line.contains(&format!(r#""messages":{messages},"compared":{messages},"verified":true"#)),
            "{line}"
        );
    }
}

fn bench_sync_notices_one_damaged_message() {
    for case in SMALL {
        let output = small(case, &["--corrupt-one"]);
        let line = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{case:?}: {line}");
        assert!(line.contains(r#""verified":false"#), "{line}");
    }
}
