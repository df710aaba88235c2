//! Generated chat messages in JSON: the same on every machine, and no two alike.
//!
//! The peers of `make bench-peers` include this file, so it uses nothing from this crate but the
//! dice, which they include, too.

use super::dice::Dice;

/// The length of each message.
pub(crate) const MESSAGE_BYTES: usize = 512;

/// The vocabulary, most frequent words first.
const WORDS: &str = "\
    the i you to a it that and is of in on me we for my this have what not be do your was are \
    but just so like with no can they at get all if go up know now out one there how about here \
    some when time good will more did think who right want then see back look make over yeah \
    really got well need down way would from could as them where why thing come off us tell \
    again too any let still take maybe gonna never before only her him his she he people day \
    night said after because something or oh sure help wait last always game play team match \
    round score win lost point map level boss quest sword shield arrow gold trade offer price \
    market guild raid healer tank ranged melee potion spell cooldown respawn tower bridge castle \
    river forest desert island harbour ship crew captain storm weather cold warm coffee dinner \
    lunch kitchen music guitar drums concert ticket train station airport holiday weekend monday \
    friday meeting project deadline release branch review server client update patch crash bug \
    report screenshot keyboard mouse screen headset microphone volume stream channel mute ping \
    lag packet router signal battery charger backup folder password account profile picture \
    friend brother sister cousin neighbor doctor teacher student exam homework library science \
    physics chemistry history painting camera garden flower winter summer autumn spring mountain \
    valley village city street corner window door table chair blanket lamp candle laughing \
    honestly apparently basically absolutely probably definitely literally seriously whatever \
    anyway somehow somewhere tomorrow yesterday tonight morning afternoon midnight minute second \
    hour hundred thousand double quarter half almost nearly barely hardly strange weird funny \
    gorgeous terrible brilliant broken empty crowded quiet loud bright narrow heavy hidden \
    ancient modern secret";

const NAMES: &str = "\
    mira tobias ada yusuf lena_k oskar99 priya noor wren kestrel juno.b marek zed hollow_fox \
    ines quill dario sunny patch_note old_tom vesna bram kiki ludo";

const ROOMS: &str = "\
    general trading raid-planning off-topic help-context music deutsch level-design \
    announcements newcomers";

/// Message `number`.
pub(crate) fn message(number: u64) -> String {
    let dice = &mut Dice(number);
    let (name, room) = (one_of(NAMES, dice), one_of(ROOMS, dice));
    let (id, from, reply) = (dice.next(), dice.below(90_000) + 10_000, dice.next() >> 32);
    let (hour, minute, second, milli) =
        (dice.below(24), dice.below(60), dice.below(60), dice.below(1_000));
    let head = format!(
        r#"{{"type":"chat","id":"{id:016x}","room":"{room}","from":{{"id":{from},"name":"{name}"}},"at":"2025-06-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z","text":""#,
        day = 1 + dice.below(30),
    );
    let answers = if dice.below(3) == 0 { format!("{reply}") } else { "null".to_owned() };
    let mentioned = one_of(NAMES, dice);
    let tail = format!(r#"","reply_to":{answers},"mentions":["{mentioned}"],"edited":false}}"#);
    let mut message = head;
    while message.len() + tail.len() < MESSAGE_BYTES {
        message.push_str(word(dice));
        message.push_str(match dice.below(14) {
            0 => ", ",
            1 => ". ",
            2 => "? ",
            3 => "!! ",
            _ => " ",
        });
    }
    // All of it is ASCII, so it can be truncated anywhere. A sender would not leave a trailing
    // space.
    message.truncate(MESSAGE_BYTES - tail.len());
    if message.ends_with(' ') {
        message.pop();
        message.push('.');
    }
    message + &tail
}

fn one_of(words: &'static str, dice: &mut Dice) -> &'static str {
    let count = words.split_whitespace().count() as u64;
    words.split_whitespace().nth(dice.below(count) as usize).unwrap_or_default()
}

/// A random word. Its frequency is about inversely proportional to its rank.
fn word(dice: &mut Dice) -> &'static str {
    let count = WORDS.split_whitespace().count() as f64;
    let rank = count.powf(dice.fraction()) as usize - 1;
    WORDS.split_whitespace().nth(rank).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MESSAGE_BYTES, message};

    #[test]
    fn messages_are_distinct_json_of_one_length() {
        let all: BTreeSet<String> = (0..1_000).map(message).collect();
        assert_eq!(all.len(), 1_000);
        for message in &all {
            assert_eq!(message.len(), MESSAGE_BYTES);
            let read: serde_json::Value = serde_json::from_str(message).unwrap();
            assert_eq!(read["type"], "chat");
        }
        assert_eq!(message(7), message(7));
    }
}
