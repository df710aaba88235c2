//! The laws of a cluster, over many seeds, and the mistakes that must break them.
//!
//! `PLAYFIELD_SEEDS` sets the number of seeds, for a longer run, and `PLAYFIELD_SEED` runs one.

use std::time::Instant;

use playfield_cluster::sim::{Counts, Mutation, Options, check, run};

const FAULTS: usize = 200;

/// The number of seeds within which a mistake must break a law.
const CAUGHT_WITHIN: u64 = 2000;

#[test]
fn laws_hold_whatever_fails() {
    let options = Options { faults: FAULTS, mutation: None };
    let seeds = match number("PLAYFIELD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PLAYFIELD_SEEDS").unwrap_or(60),
    };
    let (began, count) = (Instant::now(), seeds.end - seeds.start);
    let mut all = Counts::default();
    for seed in seeds {
        let counts = check(seed, &options).unwrap_or_else(|failure| panic!("{failure}"));
        all += counts;
    }
    println!("{count} seeds of {FAULTS} faults in {:.1?}: {all:?}", began.elapsed());
    // A simulation in which nothing happens breaks no law.
    for (what, seen) in [
        ("joins", all.joined),
        ("appends", all.appended),
        ("refused saves", all.fenced),
        ("rooms that went on", all.thawed),
        ("rooms that ended", all.ended),
        ("answers between nodes", all.answered),
        ("messages between nodes", all.told),
        ("rooms that were placed", all.entered),
        ("resets of links", all.resets),
    ] {
        assert!(seen > 0 || count < 10, "{count} seeds without {what}");
    }
}

#[test]
fn each_mistake_breaks_a_law() {
    for mutation in Mutation::ALL {
        let options = Options { faults: FAULTS, mutation: Some(mutation) };
        let caught = (0..CAUGHT_WITHIN).find_map(|seed| Some((seed, run(seed, &options).err()?)));
        let (seed, breach) = caught.unwrap_or_else(|| panic!("{mutation:?} breaks no law"));
        println!("{mutation:?}: seed {seed}: {breach}");
    }
}

#[test]
fn a_seed_is_one_run() {
    let options = Options { faults: FAULTS, mutation: None };
    assert_eq!(check(1, &options).unwrap(), check(1, &options).unwrap());
}

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}: set a number")))
}
