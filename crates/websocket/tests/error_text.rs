//! Error texts.

use playfield_websocket::Error;

#[test]
fn the_error_for_invalid_utf_8_does_not_suggest_binary() {
    // A client that agreed on JSON would be rejected for sending binary, too.
    assert_eq!(Error::InvalidText.to_string(), "a text message is not valid UTF-8");
}
