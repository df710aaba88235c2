//! Names of games, which are names of crates and of folders.

/// The longest name, that Rust's registry takes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Words of the language, reserved ones too.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    pub ref return self Self static struct super trait true try type typeof unsafe unsized use \
    virtual where while yield";

/// The names that cargo, the compiler or a file system uses otherwise.
const TAKEN: &str = "alloc build core deps examples incremental playfield proc-macro proc_macro std \
    test aux com1 com2 com3 com4 com5 com6 com7 com8 com9 con lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 \
    lpt8 lpt9 nul prn";

/// Whether a game may have this name, or one sentence that says why not.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let is_listed = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let why = if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        "it does not begin with a letter from a to z".to_owned()
    } else if let Some(letter) = name.chars().find(|letter| !is_letter(*letter)) {
        format!("{letter:?} is neither a letter from a to z, a digit, - nor _")
    } else if name.len() > NAME_BYTES_MAX {
        format!("it is longer than {NAME_BYTES_MAX} letters")
    } else if is_listed(KEYWORDS, name) {
        "it is a word of the language Rust".to_owned()
    } else if is_listed(TAKEN, &name.to_ascii_lowercase()) {
        "it is reserved".to_owned()
    } else if is_of_playfield(name) {
        "crates of Playfield begin with it, and cargo confuses two of the same name".to_owned()
    } else {
        return Ok(());
    };
    Err(format!("{name:?} can't be the name of a crate: {why}"))
}

/// Whether a crate of Playfield has that name, or may have it one day.
fn is_of_playfield(name: &str) -> bool {
    name.to_ascii_lowercase().replace('_', "-").starts_with("playfield-")
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, check};

    #[test]
    fn names_of_crates_are_names_of_games() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for name in
            ["playfields", "my-playfield-game", "duel", "my-game", "my_game2", "A", &longest]
        {
            assert_eq!(check(name), Ok(()));
        }
    }

    #[test]
    fn others_are_refused_with_one_sentence() {
        let too_long = "a".repeat(NAME_BYTES_MAX + 1);
        for (name, why) in [
            ("", "begin with a letter"),
            ("2048", "begin with a letter"),
            ("-rf", "begin with a letter"),
            ("../up", "begin with a letter"),
            ("/tmp/x", "begin with a letter"),
            ("a/b", "'/' is neither"),
            ("my game", "' ' is neither"),
            ("jeu-d'été", "'\\'' is neither"),
            ("a\nb", "'\\n' is neither"),
            (&too_long, "longer than 64"),
            ("match", "a word of the language"),
            ("test", "reserved"),
            ("Con", "reserved"),
            ("playfield", "reserved"),
            ("playfield-server", "crates of Playfield"),
            ("Playfield_game", "crates of Playfield"),
        ] {
            let error = check(name).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }
}
