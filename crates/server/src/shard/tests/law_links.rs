//! The law of links: on which shard a session is shows nowhere. The same steps, with all sessions on
//! the shard of their rooms and on another, send each client the same messages in the same order.
//!
//! Two things depend on how many turns something takes. A client that comes back is sent the state
//! of each room in its turn: that it is back may be in it, or in a patch that follows. So the
//! versions of copies may differ. And checks are left out while a client is behind.

use std::collections::BTreeSet;

use playfield_wire::Format;
use playfield_wire::server::{self, ServerMessage};
use proptest::prelude::*;

use super::laws::{Pace, Play, SEATS, Step, config, paces, steps};

/// The rooms of a session that keep it on its shard.
type Lounges = BTreeSet<u32>;

/// The messages that each seat heard, as text.
fn heard(home: usize, pace: Pace, steps: &[Step], forgets: bool) -> Vec<Vec<String>> {
    let mut play = Play::at_home(home, pace, forgets);
    let lounge = play.lounge().map(str::to_owned);
    let mut lounges = vec![Lounges::new(); SEATS.len()];
    let mut heard = vec![Vec::new(); SEATS.len()];
    let mut known = vec![0; SEATS.len()];
    play.run_watched(steps, |play, step| {
        for (number, seat) in play.seats.iter().enumerate() {
            let is_back = matches!(step, Step::Return { seat, .. } if *seat == number);
            let lounges = &mut lounges[number];
            for body in &seat.heard[known[number]..] {
                let (format, lounge) = (SEATS[number].2, lounge.as_deref());
                heard[number].extend(text(format, body, lounge, lounges, is_back));
            }
            known[number] = seat.heard.len();
        }
    });
    heard
}

/// A message as text, without what depends on the shard or on the number of turns.
fn text(
    format: Format,
    body: &[u8],
    lounge: Option<&str>,
    lounges: &mut Lounges,
    is_back: bool,
) -> Option<String> {
    let (room, text) = match ServerMessage::decode(format, body).unwrap() {
        ServerMessage::Welcome(server::Welcome { resumed, .. }) => {
            if resumed.is_none() {
                lounges.clear();
            }
            return Some(format!("welcome, resumed: {}", resumed.is_some()));
        }
        ServerMessage::Joined(joined) => {
            if Some(&*joined.id) == lounge {
                lounges.insert(joined.room.0);
            }
            (joined.room, format!("{joined:?}"))
        }
        ServerMessage::Left(left) => (left.room, format!("{left:?}")),
        ServerMessage::Snapshot(server::Snapshot { room, .. }) if is_back => {
            (room, format!("snapshot of {room}"))
        }
        ServerMessage::Snapshot(server::Snapshot { room, body, .. }) => {
            (room, format!("snapshot of {room}: {body:?}"))
        }
        ServerMessage::Patch(server::Patch { room, body, .. }) if !is_back => {
            (room, format!("patch of {room}: {body:?}"))
        }
        ServerMessage::Patch(_) | ServerMessage::Check(_) => return None,
        ServerMessage::Event(server::Event { room, sequence, payload, .. }) => {
            (room, format!("event {sequence} of {room}: {payload:?}"))
        }
        other => return Some(format!("{other:?}")),
    };
    (!lounges.contains(&room.0)).then_some(text)
}

fn places_of_sessions_show_nowhere(pace: Pace, steps: &[Step], forgets: bool) {
    let is_for_both = |step: &Step| match step {
        // How full a mailbox is only those notice who write to it.
        Step::Mailbox { .. } => false,
        // A return takes more turns, and a room that shows each change may show more of it.
        Step::Cut { .. } | Step::Return { .. } => !pace.is_eager(),
        _ => true,
    };
    let steps: Vec<_> = steps.iter().filter(|step| is_for_both(step)).cloned().collect();
    let [near, far] = [0, 1].map(|home| heard(home, pace, &steps, forgets));
    for (seat, (near, far)) in near.iter().zip(&far).enumerate() {
        let differs = near.iter().zip(far).position(|(near, far)| near != far);
        let at = differs.unwrap_or(near.len().min(far.len()));
        let around = |heard: &[String]| {
            let around = heard[at.saturating_sub(3)..heard.len().min(at + 4)].iter();
            around.map(|text| text.chars().take(90).collect()).collect::<Vec<String>>().join("\n")
        };
        assert!(near == far, "seat {seat}, near:\n{}\nfar:\n{}", around(near), around(far));
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn on_which_shard_a_session_is_shows_nowhere(
        pace in paces(),
        steps in steps(),
        forgets in any::<bool>(),
    ) {
        places_of_sessions_show_nowhere(pace, &steps, forgets);
    }
}

/// It has asked for a snapshot of one room, and is behind in the other, whose patch blocks it again.
#[test]
fn a_slow_reader_hears_its_two_rooms_in_the_same_order() {
    let steps = [
        Step::Join { seat: 3, room: 1 },
        Step::Join { seat: 2, room: 0 },
        Step::Leave { seat: 2, pick: 0 },
        Step::Slow { seat: 3, bytes: 6 },
        Step::Join { seat: 3, room: 0 },
        Step::Join { seat: 2, room: 0 },
        Step::Slow { seat: 3, bytes: 361 },
        Step::Resync { seat: 3, pick: 0 },
        Step::Join { seat: 2, room: 0 },
        Step::Slow { seat: 3, bytes: 193 },
        Step::Join { seat: 0, room: 0 },
    ];
    places_of_sessions_show_nowhere(Pace::RateAndChanges, &steps, false);
}

/// The room that blocks it is on the shard of its session.
#[test]
fn a_slow_reader_hears_a_room_of_its_shard_and_another_in_the_same_order() {
    let steps = [
        Step::Join { seat: 2, room: 0 },
        Step::Slow { seat: 2, bytes: 80 },
        Step::Wait { ms: 10 },
        Step::Join { seat: 3, room: 0 },
        Step::Join { seat: 0, room: 0 },
        Step::Resync { seat: 2, pick: 0 },
        Step::Slow { seat: 2, bytes: 134 },
        Step::Slow { seat: 2, bytes: 164 },
        Step::Wait { ms: 41 },
    ];
    places_of_sessions_show_nowhere(Pace::Rate, &steps, false);
}
