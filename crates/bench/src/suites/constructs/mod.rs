//! `bench constructs`: the cost of one change, in time and bytes, for every construct that a state
//! can consist of.

mod cases;
mod measure;

use playfield_cli::options::Failure;

use crate::harness::options::{Suite, options};
use crate::harness::report::{Column, Record, Report};

options! {
    Options {
        syncs: u32 = 2_000, quick 200
            => "syncs" "N" "syncs per construct (default 2000)", |given| given.within(1..=1_000_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "constructs",
    about: "the cost of one change, in time and bytes, for every construct that a state can
consist of. All in one process.",
    defaults: Options::new,
    run,
};

const COLUMNS: &[Column] = &[
    ("                        construct", "construct"),
    ("changes", "changes"),
    ("ns/change", "ns_per_change"),
    ("bytes/change", "bytes_per_change"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    for case in cases::all() {
        let measured = (case.measure)(options);
        let record = Record::of("constructs")
            .with("construct", case.name)
            .with("changes", measured.changes)
            .measured("ns_per_change", measured.ns_per_change)
            .measured("ns_per_change_min", measured.ns_per_change_min)
            .measured("ns_per_change_max", measured.ns_per_change_max)
            .measured("bytes_per_change", measured.bytes_per_change)
            .with("verified", measured.verified);
        report.add(record)?;
    }
    Ok(())
}
