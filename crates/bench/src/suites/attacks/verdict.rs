//! Whether a row is right, wrong, or can't be measured because the machine is busy.

use std::io;
use std::time::{Duration, Instant};

use super::server::{Hosted, Stats};
use crate::harness::machine::{DRIVER_CORE, SERVER_CORE, busy, process_cpu};
use crate::harness::report::Report;

/// If others take more than this of one of the cores, the machine is busy.
const OTHERS_MAX: f64 = 0.1;

/// The verdict on a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    /// The faults that were found.
    Wrong(Vec<String>),
    /// Why nothing can be said.
    Unmeasured(String),
}

/// The use of the two cores by others than the node and its clients.
pub(super) struct Others {
    began: Instant,
    /// Of each core: how long it was busy, and how long with this benchmark.
    cores: [(Duration, Duration); 2],
}

impl Others {
    pub(super) fn begin(node: &mut Hosted) -> io::Result<Self> {
        let server = node.stats()?.cpu;
        let cores = [(busy(SERVER_CORE), server), (busy(DRIVER_CORE), process_cpu())];
        Ok(Self { began: Instant::now(), cores })
    }

    /// The larger of the two shares, from 0 to 1; without the node's count, that of the clients.
    pub(super) fn end(&self, node: Option<&Stats>) -> f64 {
        let [of_server, of_driver] = self.cores;
        let taken = |core, (was_busy, was_own): (Duration, Duration), own: Duration| {
            let own = own.saturating_sub(was_own);
            busy(core).saturating_sub(was_busy).saturating_sub(own)
        };
        let driver = taken(DRIVER_CORE, of_driver, process_cpu());
        let server = node.map_or(Duration::ZERO, |node| taken(SERVER_CORE, of_server, node.cpu));
        driver.max(server).as_secs_f64() / self.began.elapsed().as_secs_f64()
    }
}

impl Verdict {
    /// By what was wrong, what may be due to the machine, and how much of a core others have taken.
    pub(super) fn of(mut faults: Vec<String>, mut doubts: Vec<String>, others: f64) -> Self {
        if faults.is_empty() && doubts.is_empty() {
            return Self::Right;
        }
        if faults.is_empty() && others > OTHERS_MAX {
            let percent = (others * 100.0).round();
            let doubts = doubts.join(", and ");
            return Self::Unmeasured(format!(
                "other processes took {percent} % of a core, and {doubts}"
            ));
        }
        faults.append(&mut doubts);
        Self::Wrong(faults)
    }

    /// `None` if nothing can be said.
    pub(super) fn is_verified(&self) -> Option<bool> {
        match self {
            Self::Right => Some(true),
            Self::Wrong(_) => Some(false),
            Self::Unmeasured(_) => None,
        }
    }
}

/// Says what was wrong with a row on standard error, or why it was not measured.
pub(super) fn note(row: &str, verdict: Verdict, report: &mut Report<'_>) {
    match verdict {
        Verdict::Right => {}
        Verdict::Wrong(faults) => {
            report.wrong(true);
            faults.iter().for_each(|fault| eprintln!("{row}: {fault}"));
        }
        Verdict::Unmeasured(why) => {
            eprintln!("{row}: not measured: {why}");
            report.unmeasured(format!("{row} ({why})"));
        }
    }
}

#[cfg(test)]
mod tests {
    use playfield_cli::options::Failure;

    use super::{Verdict, note};
    use crate::harness::report::Report;
    use crate::harness::reports::Reports;

    #[test]
    fn a_weak_attack_on_a_busy_machine_is_not_measured_and_a_wrong_copy_is_wrong() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let of = |faults: &[&str], doubts: &[&str], others| {
            Verdict::of(texts(faults), texts(doubts), others)
        };
        assert_eq!(of(&[], &[], 0.9), Verdict::Right);
        assert_eq!(of(&[], &["weak"], 0.05), Verdict::Wrong(texts(&["weak"])));
        assert_eq!(of(&["bad"], &["weak"], 0.9), Verdict::Wrong(texts(&["bad", "weak"])));
        let busy = of(&[], &["weak"], 0.625);
        let why = "other processes took 63 % of a core, and weak";
        assert_eq!((busy.is_verified(), &busy), (None, &Verdict::Unmeasured(why.into())));

        let mut out = Vec::new();
        let reports = &mut Reports::begin();
        let mut report = Report::new(true, reports, &mut out);
        note("pings", busy, &mut report);
        let unmeasured = format!("pings ({why})");
        assert!(matches!(report.end(), Err(Failure::Unmeasured(text)) if text == unmeasured));
        let mut report = Report::new(true, reports, &mut out);
        note("pings", of(&[], &["weak"], 0.625), &mut report);
        note("json", of(&["bad"], &[], 0.0), &mut report);
        assert!(matches!(report.end(), Err(Failure::Unverified)));
    }
}
