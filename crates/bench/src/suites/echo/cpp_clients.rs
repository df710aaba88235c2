//! The echo driver of the C++ client (`sdk/cpp`): a program that is started, and reports by itself.

use std::io;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Mode, Options, server};
use crate::harness::Side;
use crate::harness::report::Record;

/// Measures a node with the program, once: it gets the URL, the number of connections, the window,
/// the bytes of a payload, the mode and the seconds, and prints an object of JSON. Adds what it
/// says to the record.
pub(super) fn measure(options: &Options, record: Record) -> io::Result<Record> {
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
    let (Some(messages), Some(compared), Some(seconds)) =
        (count("messages"), count("compared"), report["seconds"].as_f64())
    else {
        return Err(io::Error::other(format!("{program}: {}, printed {printed:?}", output.status)));
    };
    let mut record = record.measured("messages_per_s", messages as f64 / seconds);
    for name in ["rtt_us_p50", "rtt_us_p99", "rtt_us_p999"] {
        record = record.measured(name, report[name].as_f64().unwrap_or(f64::NAN));
    }
    let verified =
        output.status.success() && messages > 0 && compared >= messages && !options.corrupt_one;
    let record = record.with("messages", messages).with("compared", compared);
    Ok(record.with("verified", verified))
}
