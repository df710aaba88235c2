//! The measurement of a run, whatever its server and its clients are.

use std::io;
use std::time::{Duration, Instant};

use super::Options;
use super::window::{Failure, Window};
use crate::harness::fleet::{Fleet, Script};
use crate::harness::machine::{DRIVER_CORE, delayed, process_cpu};
use crate::harness::process::Server;

/// The delay between reading the server's clock and starting the measurement. It lets this loop
/// recover from the pause that the reading causes.
pub(in crate::suites) const CALM: Duration = Duration::from_millis(200);

/// Clients whose patches are counted.
pub(super) trait Audience: Script {
    /// Starts counting.
    fn open(&mut self, case: &Options);

    /// Stops counting. Returns the number of patches of the client that received the fewest.
    fn close(&mut self, case: &Options) -> u64;
}

/// Times and resources of a run.
pub(super) struct Timed {
    seconds: f64,
    least: u64,
    server_core: f64,
    driver_core: f64,
    server_delayed: f64,
    driver_delayed: f64,
    rss_mb: f64,
}

/// The result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) clients: usize,
    pub(super) seconds: f64,
    /// Messages per second of the slowest client.
    pub(super) hz_slowest: f64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) compared: u64,
    pub(super) interval_ms_p50: f64,
    pub(super) interval_ms_p99: f64,
    /// The server's share of one core.
    pub(super) server_core: f64,
    pub(super) driver_core: f64,
    /// The share of time in which the server was runnable but something else ran.
    pub(super) server_delayed: f64,
    pub(super) driver_delayed: f64,
    pub(super) rss_mb: f64,
    pub(super) inputs_sent: u64,
    /// The number of them that the rooms report as handled.
    pub(super) inputs_handled: u64,
    /// Connections that ended early or were refused.
    pub(super) lost: u64,
    pub(super) failure: Option<Failure>,
}

/// Measures clients who have all joined.
pub(super) fn timed<S: Audience>(
    fleet: &mut Fleet<S>,
    server: &mut Server,
    case: &Options,
) -> io::Result<Timed> {
    fleet.run(case.warm_up);
    let before = (server.usage()?, process_cpu(), delayed(DRIVER_CORE));
    fleet.run(CALM);
    fleet.script.open(case);
    let begin = Instant::now();
    fleet.run(Duration::from_secs(case.seconds.into()));
    let least = fleet.script.close(case);
    let seconds = begin.elapsed().as_secs_f64();
    let after = (server.usage()?, process_cpu(), delayed(DRIVER_CORE));
    let elapsed = (after.0.at - before.0.at).as_secs_f64();
    let share = |spent: Duration| spent.as_secs_f64() / elapsed;
    Ok(Timed {
        seconds,
        least,
        server_core: share(after.0.cpu.saturating_sub(before.0.cpu)),
        driver_core: share(after.1 - before.1),
        server_delayed: share(after.0.delayed.saturating_sub(before.0.delayed)),
        driver_delayed: share(after.2.saturating_sub(before.2)),
        rss_mb: after.0.resident as f64 / f64::from(1 << 20),
    })
}

impl Timed {
    /// The result of a run without inputs.
    pub(super) fn outcome(
        self,
        case: &Options,
        window: Window,
        lost: u64,
        fault: Option<String>,
    ) -> Outcome {
        let intervals = window.intervals_ms();
        Outcome {
            clients: case.clients(),
            seconds: self.seconds,
            hz_slowest: self.least as f64 / self.seconds,
            messages: window.messages,
            bytes: window.bytes,
            compared: window.compared,
            interval_ms_p50: intervals.percentile(50.0),
            interval_ms_p99: intervals.percentile(99.0),
            server_core: self.server_core,
            driver_core: self.driver_core,
            server_delayed: self.server_delayed,
            driver_delayed: self.driver_delayed,
            rss_mb: self.rss_mb,
            inputs_sent: 0,
            inputs_handled: 0,
            lost,
            failure: window.failure.or(fault.map(Failure::Overload)),
        }
    }
}
