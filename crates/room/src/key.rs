//! The keys of rooms, and the characters that names and keys must not have.

use std::borrow::Cow;

use playfield_wire::{ErrorCode, excerpt};

use crate::{Error, Result};

/// The longest key of a room, in bytes.
pub const KEY_BYTES_MAX: usize = 128;

/// Checks that a text can be the key of a room: it has 1 to [`KEY_BYTES_MAX`] bytes, does not begin
/// or end with white space, and each of its characters can be seen.
///
/// # Errors
/// `bad_key`.
pub fn check_key(key: &str) -> Result<()> {
    let refuse = |text: String| Err(Error::new(ErrorCode::BadKey, text));
    if key.len() > KEY_BYTES_MAX {
        let bytes = key.len();
        return refuse(format!(
            "KEY_BYTES_MAX: the key has {bytes} bytes, the limit is {KEY_BYTES_MAX}"
        ));
    }
    if key.is_empty() {
        return refuse("the key is empty; leave it out for a room without a key".into());
    }
    if let Some(character) = invisible(key) {
        return refuse(format!(
            "the key contains the character {character:?}, which is invisible or changes the \
             direction of text; remove it"
        ));
    }
    if key.trim() != key {
        let key = excerpt(key, 64);
        return refuse(format!("the key {key:?} begins or ends with white space; remove it"));
    }
    Ok(())
}

/// The first character of a text that leaves no mark of its own, or changes the direction of text:
/// names and keys that look alike would differ by it.
pub fn invisible(text: &str) -> Option<char> {
    let mut before = ' ';
    text.chars().find(|&character| {
        let before = std::mem::replace(&mut before, character);
        // Keyboards add the emoji style to many symbols. After letters it is only invisible.
        is_unseen(character) || (character == EMOJI_STYLE && before < '\u{2000}')
    })
}

/// A text without the characters that [`invisible`] finds.
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut visible = Cow::Borrowed(text);
    while let Some(character) = invisible(&visible) {
        visible = Cow::Owned(visible.replace(character, ""));
    }
    visible
}

const EMOJI_STYLE: char = '\u{FE0F}';

/// Returns whether a character leaves no mark of its own: control characters, and those that Unicode lists
/// as default-ignorable, line separators or controls of direction.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{2800}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0E}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use playfield_wire::ErrorCode;

    use super::{KEY_BYTES_MAX, check_key};

    #[test]
    fn keys_are_seen_and_bounded() {
        let check = |key: &str| check_key(key).map_err(|error| error.code());
        for key in ["4", "document 42", "é", "\u{2764}\u{FE0F}", &"k".repeat(KEY_BYTES_MAX)] {
            assert_eq!(check(key), Ok(()), "{key:?}");
        }
        assert_eq!(check(&"k".repeat(KEY_BYTES_MAX + 1)), Err(ErrorCode::BadKey));
        for key in ["", " ", "a ", " a", "a\n", "a\u{0}b", "a\u{200B}b", "\u{202E}a", "a\u{FE0F}"] {
            assert_eq!(check(key), Err(ErrorCode::BadKey), "{key:?}");
        }
    }
}
