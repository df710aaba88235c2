use std::fs;
use std::path::PathBuf;

use playfield_measure::Finding;
use serde_json::{Value, json};

use super::{Compared, compare};

/// A file of printed rows, which is removed in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, rows: &[Value]) -> Self {
        let name = format!("playfield-compare-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(&path, lines).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn row(players: u32) -> Value {
    json!({
        "suite": "sync", "players": players, "us": 100.0, "us_min": 98.0, "us_max": 103.0,
        "messages_per_s": 1000.0, "bytes_per_sync": 256.0, "rss_mb": 20.0, "floor_ratio": 0.9, "messages": 77,
        "verified": true, "cores": 2, "cpu": "a", "kernel": "b", "profile": "release",
        "calibration_us": 200.0, "noise": 0.03, "load": 0.2, "steal": 0.0, "quiet": true,
    })
}

/// Compares two rows with the same, where these members of one are other ones.
fn changed(name: &str, members: &[(&str, Value)]) -> Compared {
    let mut other = row(40);
    members.iter().for_each(|(name, value)| other[*name] = value.clone());
    let old = File::new(&format!("{name}-old"), &[row(30), row(40)]);
    let new = File::new(&format!("{name}-new"), &[other, row(30)]);
    compare(&old.0, &new.0).unwrap()
}

fn findings(compared: &Compared) -> Vec<(&str, Finding)> {
    let real = compared.changes.iter().filter(|(_, change)| change.finding() != Finding::Equal);
    real.map(|(_, change)| (change.name.as_str(), change.finding())).collect()
}

#[test]
fn equal_runs_are_equal() {
    let compared = changed("equal", &[("messages", json!(99)), ("us", json!(102.0))]);
    assert_eq!((compared.rows, compared.alone, findings(&compared).len()), (2, [0, 0], 0));
    assert!(compared.notes.is_empty(), "{:?}", compared.notes);
    assert!(compared.text().ends_with("worse: 0, too noisy to say: 0, better: 0, equal: 10\n"));
}

#[test]
fn a_change_is_real_if_the_ranges_of_the_rounds_lie_apart() {
    let us = |least: f64, us: f64, most: f64| {
        [("us_min", json!(least)), ("us", json!(us)), ("us_max", json!(most))]
    };
    let near = changed("near", &us(102.0, 107.0, 112.0));
    assert_eq!(findings(&near), [], "103 and 102 overlap");
    let far = changed("far", &us(106.0, 108.0, 110.0));
    assert_eq!(findings(&far), [("us", Finding::Worse)]);
    assert!(
        far.text().contains("worse: sync players=40: +8.0 % us: 100.0000 → 108.0000 (noise 5 %)")
    );
    let less = changed("less", &us(90.0, 92.0, 94.0));
    assert_eq!(findings(&less), [("us", Finding::Better)]);
    assert!(!less.is_worse());
}

#[test]
fn a_time_without_a_range_varies_as_the_rates_of_its_row_do() {
    // Measured twice with one program: clients that wait for a saturated node.
    let row = |rate: [f64; 3], rtt: f64| {
        let mut row = row(30);
        let [low, median, high] = rate;
        row["messages_per_s"] = json!(median);
        row["messages_per_s_min"] = json!(low);
        row["messages_per_s_max"] = json!(high);
        row["rtt_us_p50"] = json!(rtt);
        row
    };
    let compared = |name: &str, later: Value| {
        let old = row([3.2e6, 3.8e6, 5e6], 48_038.0);
        let old = File::new(&format!("{name}-old"), &[old]);
        let new = File::new(&format!("{name}-new"), &[later]);
        compare(&old.0, &new.0).unwrap()
    };
    let same = compared("saturated", row([3.3e6, 3.3e6, 4.1e6], 60_162.0));
    assert_eq!(findings(&same), [], "{}", same.text());
    let worse = compared("slower", row([1.4e6, 1.5e6, 1.6e6], 130_000.0));
    let expected = [("messages_per_s", Finding::Worse), ("rtt_us_p50", Finding::Worse)];
    assert_eq!(findings(&worse), expected, "{}", worse.text());
}

#[test]
fn a_change_of_the_speed_of_a_machine_is_noise_of_times_and_rates() {
    let slower = [
        ("calibration_us", json!(260.0)),
        ("us", json!(125.0)),
        ("us_min", json!(122.0)),
        ("us_max", json!(127.0)),
        ("messages_per_s", json!(800.0)),
    ];
    assert_eq!(findings(&changed("drift", &slower)), []);
    let more = [&slower[..], &[("messages_per_s", json!(600.0)), ("floor_ratio", json!(0.8))]];
    let expected = [("floor_ratio", Finding::Worse), ("messages_per_s", Finding::Worse)];
    assert_eq!(findings(&changed("drift-more", &more.concat())), expected);
}

#[test]
fn rates_bytes_and_ratios_have_their_own_directions_and_noise() {
    let worse = [
        ("messages_per_s", json!(940.0)),
        ("bytes_per_sync", json!(262.0)),
        ("floor_ratio", json!(0.8)),
    ];
    let compared = changed("kinds", &worse);
    assert_eq!(compared.count(Finding::Worse), 3, "{}", compared.text());
    // A calibration with more noise hides the first and the last.
    let noisy = [&worse[..], &[("noise", json!(0.14))]].concat();
    assert_eq!(findings(&changed("noise", &noisy)), [("bytes_per_sync", Finding::Worse)]);
}

#[test]
fn a_noisy_machine_is_not_slower() {
    let members = [
        ("quiet", json!(false)),
        ("messages_per_s", json!(500.0)),
        ("bytes_per_sync", json!(300.0)),
        ("rss_mb", json!(30.0)),
    ];
    let compared = changed("noisy", &members);
    let expected = [
        ("bytes_per_sync", Finding::Worse),
        ("messages_per_s", Finding::TooNoisy),
        ("rss_mb", Finding::TooNoisy),
    ];
    assert_eq!(findings(&compared), expected);
    let text = compared.text();
    assert!(text.contains("too noisy to say: sync players=40: -50.0 % messages_per_s"), "{text}");
}

#[test]
fn machines_of_different_speed_are_compared_by_their_calibrations() {
    let slower = |us: f64, rate: f64| {
        let mut slow = [row(30)];
        slow[0]["calibration_us"] = json!(400.0);
        slow[0]["cpu"] = json!("an older one");
        for name in ["us", "us_min", "us_max"] {
            slow[0][name] = json!(slow[0][name].as_f64().unwrap() * us);
        }
        slow[0]["messages_per_s"] = json!(1000.0 * rate);
        slow
    };
    let old = File::new("speed-old", &[row(30)]);
    let new = File::new("speed-new", &slower(2.0, 0.5));
    let compared = compare(&old.0, &new.0).unwrap();
    assert_eq!(findings(&compared), [], "{}", compared.text());
    assert!(compared.text().contains("a core is 0.50 times as fast (200 → 400 µs)"));
    let new = File::new("slower-new", &slower(2.4, 0.4));
    let compared = compare(&old.0, &new.0).unwrap();
    assert_eq!(compared.count(Finding::Worse), 2, "{}", compared.text());

    // Without a calibration, only what does not depend on the machine.
    let mut unknown = slower(9.0, 0.1);
    unknown[0]["calibration_us"] = Value::Null;
    let new = File::new("unknown-new", &unknown);
    let compared = compare(&old.0, &new.0).unwrap();
    assert_eq!(findings(&compared), []);
    assert!(compared.text().contains("times and rates are not compared"), "{}", compared.text());
}

#[test]
fn calibrations_of_one_machine_scale_nothing() {
    let members = [("calibration_us", json!(188.0)), ("load", json!(0.6))];
    let compared = changed("calibration", &members);
    assert_eq!(findings(&compared), [], "{}", compared.text());
    assert!(compared.changes.iter().all(|(_, change)| change.before == change.now));
    assert!(compared.notes.is_empty(), "{:?}", compared.notes);
}

#[test]
fn files_without_a_row_in_common_are_refused_in_a_sentence() {
    let old = File::new("common-old", &[row(30)]);
    let new = File::new("common-new", &[row(50)]);
    let why = compare(&old.0, &new.0).unwrap_err();
    assert!(why.starts_with(&new.0.display().to_string()), "{why}");
    assert!(why.contains("no row has the parameters of one in"), "{why}");
    let empty = File::new("empty", &[]);
    assert!(compare(&old.0, &empty.0).unwrap_err().ends_with("the file is empty"));
}
