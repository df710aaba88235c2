//! The law of freezing: rooms and sessions go on in another process. Steps of a play, with any
//! number of processes one after the other, of one shard or of several: each client that comes back
//! hears each event once and in order, and its copy is what it may see of the room, as without.
//! If connections are passed on, each client is sent what it would have been sent, byte for byte.

use playfield_wire::Format;
use playfield_wire::server::{self, ServerMessage};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::law_seat::Seat;
use super::laws::{Pace, Play, Step, config, paces, steps};

/// The places in the steps at which another process takes over, with so many shards, and whether
/// connections are passed on.
pub(super) type Replacements = Vec<(usize, usize, bool)>;

pub(super) fn replacements() -> impl Strategy<Value = Replacements> {
    proptest::collection::vec((0..100_usize, 1..4_usize, any::<bool>()), 1..4)
}

pub(super) fn with_replacements(steps: &[Step], replacements: &Replacements) -> Vec<Step> {
    let fits = |step: &Step| !matches!(step, Step::Mailbox { .. });
    let mut all = Vec::new();
    for (number, step) in steps.iter().filter(|step| fits(step)).enumerate() {
        let here = replacements.iter().filter(|(at, ..)| at % steps.len() == number);
        all.extend(
            here.map(|&(_, shards, passes)| Step::Replace { shards: shards.max(2), passes }),
        );
        all.push(step.clone());
    }
    all
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 200, ..config(100) })]

    #[test]
    fn copies_and_events_go_on_in_another_process(
        pace in paces(),
        steps in steps(),
        replacements in replacements(),
        forgets in any::<bool>(),
    ) {
        let steps = with_replacements(&steps, &replacements);
        Play::of(pace, forgets).run_watched(&steps, |_, _| {});
    }
}

/// The messages that each seat hears if processes replace each other, or if each upgrade fails and
/// the first process continues.
fn heard(pace: Pace, forgets: bool, steps: &[Step], stays: bool) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut play = Play::of(pace, forgets);
    play.stays = stays;
    let mut open = Vec::new();
    play.run_watched(steps, |play, step| {
        let is_open = play.seats.iter().map(|seat| seat.client.is_some());
        let is_open: Vec<bool> = is_open.collect();
        if matches!(step, Step::Replace { .. }) {
            assert_eq!(is_open, open, "all connections are passed on");
        }
        open = is_open;
    });
    let of =
        |seat: &Seat| seat.heard.iter().filter_map(|body| comparable(seat.format, body)).collect();
    play.seats.iter().map(of).collect()
}

/// A message for people, and its bytes.
fn comparable(format: Format, body: &[u8]) -> Option<(String, Vec<u8>)> {
    match ServerMessage::decode(format, body).unwrap() {
        // The delay of acknowledgements, and the silence before pings, begin again.
        ServerMessage::Ack(_) | ServerMessage::Ping(_) => None,
        // Each process draws numbers and tokens of new sessions at random.
        ServerMessage::Welcome(welcome) => {
            let resume = (&[][..]).into();
            Some((format!("{:?}", server::Welcome { session: 0, resume, ..welcome }), Vec::new()))
        }
        other => Some((format!("{other:?}"), body.to_vec())),
    }
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 200, ..config(100) })]

    #[test]
    fn another_process_sends_each_client_what_the_first_would_have_sent(
        pace in paces(),
        steps in steps(),
        replacements in replacements(),
        forgets in any::<bool>(),
    ) {
        // The graces of absent clients end with the wheel of timeouts, which each process starts
        // again. A client that comes back needs a snapshot if it missed earlier syncs: the next
        // process knows no older versions. It also measures again how far slow readers are behind.
        let settled = |step| match step {
            Step::Replace { shards, .. } => {
                vec![Step::Gather, Step::Replace { shards, passes: true }]
            }
            Step::Slow { .. } => Vec::new(),
            other => vec![other],
        };
        let steps = with_replacements(&steps, &replacements);
        let steps: Vec<Step> = steps.into_iter().flat_map(settled).collect();
        let [replaced, stayed] = [false, true].map(|stays| heard(pace, forgets, &steps, stays));
        for (seat, (replaced, stayed)) in replaced.iter().zip(&stayed).enumerate() {
            prop_assert!(replaced == stayed, "seat {seat}: {replaced:#?} is not {stayed:#?}");
        }
    }
}

#[test]
fn a_client_that_has_all_gets_patches_from_the_next_process_and_no_snapshot() {
    let steps = [
        Step::Join { seat: 0, room: 0 },
        Step::Join { seat: 1, room: 0 },
        Step::Act { seat: 0, pick: 0, seed: 1 },
        Step::Wait { ms: 120 },
        Step::Act { seat: 1, pick: 0, seed: 5 },
        Step::Replace { shards: 2, passes: false },
        Step::Return { seat: 0, shard: 0 },
        Step::Return { seat: 1, shard: 1 },
        Step::Act { seat: 0, pick: 0, seed: 12 },
        Step::Wait { ms: 120 },
    ];
    let mut play = Play::of(Pace::Rate, false);
    let mut snapshots = 0;
    play.run_watched(&steps, |play, step| {
        let count: usize = play.seats.iter().map(|seat| seat.snapshots).sum();
        if matches!(step, Step::Replace { .. }) {
            snapshots = count;
        } else if snapshots > 0 {
            assert_eq!(count, snapshots, "nobody needs a snapshot after that");
        }
    });
    assert_eq!(snapshots, 2);
}

#[test]
fn a_client_whose_connection_is_passed_on_notices_nothing() {
    let steps = [
        Step::Join { seat: 0, room: 0 },
        Step::Join { seat: 1, room: 0 },
        Step::Act { seat: 0, pick: 0, seed: 1 },
        Step::Wait { ms: 120 },
        Step::Act { seat: 1, pick: 0, seed: 5 },
        Step::Replace { shards: 2, passes: true },
        Step::Act { seat: 0, pick: 0, seed: 12 },
        Step::Wait { ms: 120 },
        Step::Replace { shards: 3, passes: true },
        Step::Act { seat: 1, pick: 0, seed: 13 },
        Step::Wait { ms: 120 },
    ];
    let mut play = Play::of(Pace::Rate, false);
    let mut open = 0;
    play.run_watched(&steps, |play, step| {
        let here = play.seats.iter().filter(|seat| seat.client.is_some()).count();
        if matches!(step, Step::Replace { .. }) {
            assert_eq!(here, open, "all connections are open still");
        }
        open = here;
    });
    assert_eq!(play.seats.iter().map(|seat| seat.snapshots).sum::<usize>(), 2);
}
