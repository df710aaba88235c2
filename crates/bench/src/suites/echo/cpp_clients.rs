//! The echo driver of the C++ client (`sdk/cpp`): a program that is started, and reports by itself.

use std::io;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::bare_client::{self, Round};
use super::{Mode, Options, server};
use crate::harness::Side;
use crate::harness::report::Record;
use crate::harness::stats::Samples;

/// The round trips that the program reports.
const TIMES: [&str; 3] = ["rtt_us_p50", "rtt_us_p99", "rtt_us_p999"];

/// Measures a node with the program, and in turns with the bare client if that can do the same.
/// Adds the medians of the rounds to the record.
pub(super) fn measure(options: &Options, record: Record) -> io::Result<Record> {
    let has_baseline = options.connections == 1 && options.mode != Mode::Send;
    let (mut bare, mut ours, mut times) = (Vec::new(), Vec::new(), [const { Vec::new() }; 3]);
    for _ in 0..options.rounds {
        if has_baseline {
            bare.push(bare_client::measure(options)?);
        }
        ours.push(round(options, &mut times)?);
    }
    let rate = |of: &Round| of.rate;
    let cpu_ns = |of: &Round| of.cpu_ns;
    let mut record = record
        .with("rounds", options.rounds)
        .median("messages_per_s", ours.iter().map(rate))
        .median("client_ns_per_message", ours.iter().map(cpu_ns));
    for (name, times) in TIMES.iter().zip(times) {
        record = record.measured(name, Samples::new(times).percentile(50.0));
    }
    if has_baseline {
        let pairs = || ours.iter().zip(&bare);
        record = record
            .median("bare_messages_per_s", bare.iter().map(rate))
            .median("bare_client_ns_per_message", bare.iter().map(cpu_ns))
            .median("rate_of_bare", pairs().map(|(ours, bare)| ours.rate / bare.rate))
            .median("cpu_of_bare", pairs().map(|(ours, bare)| ours.cpu_ns / bare.cpu_ns));
    }
    let all = || ours.iter().chain(&bare);
    Ok(record
        .with("messages", ours.iter().map(|of| of.messages).sum::<u64>())
        .with("compared", all().map(|of| of.compared).sum::<u64>())
        .with("verified", all().all(|of| of.is_verified) && !options.corrupt_one))
}

/// Runs the program once: it gets the URL, the number of connections, the window, the bytes of a
/// payload, the mode and the seconds, and prints an object of JSON.
fn round(options: &Options, times: &mut [Vec<f64>; 3]) -> io::Result<Round> {
    let server = server::start(options, Side::Node)?;
    let program = options.client_program.display();
    // It has no other way to wait for replies than callbacks.
    let mode = if options.mode == Mode::Send { Mode::Send } else { Mode::Request }.name();
    let output = Command::new(&options.client_program)
        .arg(options.url(&server))
        .args([options.connections, options.window, options.payload].map(|of| of.to_string()))
        .args([mode, &options.time.as_secs_f64().to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| {
            let text = format!("{program}: {error}; `make cpp` builds it");
            io::Error::new(error.kind(), text)
        })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(printed.trim()).unwrap_or_default();
    let count = |name: &str| report[name].as_u64();
    let (Some(messages), Some(compared), Some(seconds), Some(cpu_ns)) = (
        count("messages"),
        count("compared"),
        report["seconds"].as_f64(),
        report["cpu_ns_per_message"].as_f64(),
    ) else {
        return Err(io::Error::other(format!("{program}: {}, printed {printed:?}", output.status)));
    };
    for (name, times) in TIMES.iter().zip(times) {
        times.push(report[name].as_f64().unwrap_or(f64::NAN));
    }
    let is_verified = output.status.success() && messages > 0 && compared >= messages;
    Ok(Round { messages, compared, rate: messages as f64 / seconds, cpu_ns, is_verified })
}
