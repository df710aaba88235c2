//! The outcome of `capacity`: what was measured, proved and compared.

use std::io::{self, Write};
use std::path::Path;

use playfield_measure::{Capacity, Comparison, Proof, Target, report};
use serde_json::Value;

use super::table;

/// All that a command has found, whatever of it has failed.
pub(super) struct Outcome {
    pub(super) capacity: Capacity,
    pub(super) target: Target,
    /// The proof, or why there is none; `None` if none was asked for.
    pub(super) proof: Option<Result<Proof, String>>,
    /// The changes since the baseline, if there is one.
    pub(super) compared: Option<Comparison>,
}

impl Outcome {
    /// All of it, for programs.
    pub(super) fn to_json(&self) -> Value {
        let mut result = self.capacity.to_json();
        result["answer"] = table::answer_json(&self.capacity, &self.target);
        match &self.proof {
            Some(Ok(proof)) => {
                if let Value::Object(members) = proof.to_json(&self.capacity) {
                    members.into_iter().for_each(|(name, value)| result[name] = value);
                }
            }
            Some(Err(why)) => result["error"] = why.as_str().into(),
            None => {}
        }
        if let Some(compared) = &self.compared {
            result["changes"] = compared.texts().into();
            result["worse"] = compared.is_worse().into();
        }
        result
    }

    /// Prints the proof, and the changes since the baseline in `file`.
    pub(super) fn print(&self, file: &Path, out: &mut dyn Write) -> io::Result<()> {
        if let Some(Ok(proof)) = &self.proof {
            table::print_proof(&self.capacity, proof, out)?;
        }
        match &self.compared {
            Some(compared) => table::print_comparison(compared, file, out),
            None => Ok(()),
        }
    }

    /// Replaces the page in a file.
    pub(super) fn report(&self, page: &Path) -> io::Result<()> {
        let mut capacity = self.capacity.clone();
        capacity.warnings.extend(self.unproved());
        let proof = self.proof.as_ref().and_then(|proof| proof.as_ref().ok());
        report::replace(page, &report::capacity(&capacity, &self.target, proof).html())
    }

    /// The reasons for which the command fails, though it has measured.
    pub(super) fn failures(&self, file: &Path) -> Vec<String> {
        let is_worse = self.compared.as_ref().is_some_and(Comparison::is_worse);
        let worse =
            is_worse.then(|| format!("it costs more than in {}: see above", file.display()));
        self.unproved().into_iter().chain(worse).collect()
    }

    fn unproved(&self) -> Option<String> {
        let why = self.proof.as_ref()?.as_ref().err()?;
        Some(format!("the prediction was not proved: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use playfield_measure::machine::Machine;
    use playfield_measure::{
        Calibration, Capacity, CapacityBaseline, Cell, Drive, Plan, Target, compare,
    };

    use super::{Outcome, table};

    fn capacity(bytes_out: f64) -> Capacity {
        let machine = Machine::describe();
        let drive = Drive::Messages { name: None, value: None, rate: 5.0, is_request: false };
        Capacity {
            plan: Plan {
                room_type: "arena".into(),
                players: 30,
                is_default_size: false,
                hz: None,
                drive,
                script: None,
                tls: None,
                time: Duration::from_secs(1),
                is_whole: false,
            },
            cell: Cell {
                players: 30,
                hz: None,
                message_rate: 1.0,
                core: 0.001,
                parts: Vec::new(),
                bytes_out,
                bytes_in: 64.0,
                patches: 20.0,
                messages_out: 25.0,
                syncs: 20.0,
                messages: 150.0,
            },
            others: Vec::new(),
            spread: 0.01,
            bytes_spread: 0.01,
            system_share: None,
            fit: None,
            room_bytes: 30_000.0,
            player_bytes: 3_000.0,
            calibration: Calibration::measure(&machine),
            machine,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_proof_that_fails_loses_nothing_that_was_measured() {
        let capacity = capacity(800.0);
        let before = CapacityBaseline::read(&capacity.to_json(), &capacity.plan).unwrap();
        let outcome = Outcome {
            compared: Some(compare(&before, &capacity)),
            capacity,
            target: Target::default(),
            proof: Some(Err("this process can connect no more than 18000 players".into())),
        };
        let json = outcome.to_json();
        assert_eq!(json["cell"]["core"], 0.001);
        assert_eq!(json["answer"]["players"], 30);
        assert_eq!(json["error"], "this process can connect no more than 18000 players");
        assert_eq!(json["worse"], false);
        assert_eq!(json["changes"].as_array().map(Vec::len), Some(4));
        let page = std::env::temp_dir().join(format!("playfield-outcome-{}", std::process::id()));
        outcome.report(&page).unwrap();
        let html = std::fs::read_to_string(&page).unwrap();
        let _ = std::fs::remove_file(&page);
        assert!(html.contains("Warning: the prediction was not proved: this process can connect"));
        let failures = outcome.failures(Path::new("before.json"));
        assert_eq!(failures.len(), 1, "{failures:?}");
    }

    #[test]
    fn a_room_that_costs_more_fails_after_it_was_printed() {
        let (before, now) = (capacity(800.0), capacity(900.0));
        let before = CapacityBaseline::read(&before.to_json(), &before.plan).unwrap();
        let compared = Some(compare(&before, &now));
        let target = Target::default();
        let outcome = Outcome { capacity: now, target, proof: None, compared };
        let mut out = Vec::new();
        table::print(&outcome.capacity, &target, &mut out).unwrap();
        outcome.print(Path::new("before.json"), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\nplayers: messages, 5 a second\n"), "{text}");
        assert!(text.contains("+12.5 % bytes a second to a player: 800.0000 → 900.0000"), "{text}");
        let failures = outcome.failures(Path::new("before.json"));
        assert_eq!(failures, ["it costs more than in before.json: see above"]);
        assert_eq!(outcome.to_json()["worse"], true);
    }
}
