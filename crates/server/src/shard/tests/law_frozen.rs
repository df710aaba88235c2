//! The law of freezing: rooms and sessions go on in another process. Steps of a play, with any
//! number of processes one after the other, of one shard or of several: each client that comes back
//! hears each event once and in order, and its copy is what it may see of the room, as without.

use proptest::prelude::*;
use proptest::test_runner::Config;

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
