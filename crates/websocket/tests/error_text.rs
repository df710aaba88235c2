//! What errors tell a person.

use playfield_websocket::Error;

#[test]
fn text_that_is_not_utf_8_is_not_told_to_come_as_binary() {
    // A client that agreed on JSON would be refused for that, too.
    assert_eq!(Error::InvalidText.to_string(), "a text message is not UTF-8");
}
