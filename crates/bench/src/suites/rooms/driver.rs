//! A run: a server, and all clients in this process on one core.

use std::io;
use std::time::Duration;

use super::clients::Clients;
use super::measure::{Outcome, timed};
use super::pacer::Pacer;
use super::window::Failure;
use super::{Options, ROLE, Setup, Side};
use crate::harness::fleet::Fleet;
use crate::harness::machine::{DRIVER_CORE, delayed, pin, process_cpu, raise_descriptors};
use crate::harness::process::{Server, Usage};
use crate::harness::tls::tls;

/// The number of connections in progress at once: fewer than any server's backlog.
pub(super) const CONNECTING_MAX: usize = 128;
/// The number of times, and the interval, at which rooms are asked how many inputs they handled
/// before missing ones count as lost.
const COUNTS: u32 = 20;
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// A server and its clients.
pub(in crate::suites) struct Run {
    server: Server,
    pub(in crate::suites) fleet: Fleet<Clients>,
}

/// Resources that both processes have used so far.
pub(in crate::suites) struct Used {
    pub(in crate::suites) server: Usage,
    driver_cpu: Duration,
    driver_delayed: Duration,
}

/// Shares of one core, of a time.
pub(in crate::suites) struct Shares {
    pub(in crate::suites) server: f64,
    pub(in crate::suites) driver: f64,
    /// The share of time in which the server was runnable but something else ran.
    pub(in crate::suites) server_delayed: f64,
    pub(in crate::suites) driver_delayed: f64,
}

/// Starts a server and runs a case against it.
pub(super) fn run(case: &Options, side: Side) -> Result<Outcome, Failure> {
    let mut run = Run::start(Setup::of(case), side)?;
    let outcome = run.begin().and_then(|()| measure(&mut run, case, side));
    run.end()?;
    outcome
}

impl Run {
    /// Starts a server, without connecting anyone.
    pub(in crate::suites) fn start(setup: Setup, side: Side) -> io::Result<Self> {
        pin(DRIVER_CORE)?;
        raise_descriptors();
        let Setup { case, is_limited, source, .. } = &setup;
        let Options { rooms, players, hz, inputs_hz, transport, bytes, .. } = case;
        let server =
            ROLE.start(&[&side, rooms, players, hz, inputs_hz, transport, bytes, is_limited])?;
        let source = *source;
        let is_secure = transport.is_secure() && side == Side::Node;
        let tls = is_secure.then(tls).transpose()?;
        let clients = Clients::new(setup, side);
        let fleet = Fleet::new(clients, server.address, source, tls)?;
        Ok(Self { server, fleet })
    }

    /// Connects all clients, and waits until those of the rooms that are asked for at once have
    /// joined. From then on they send pings.
    pub(in crate::suites) fn begin(&mut self) -> Result<(), Failure> {
        let Self { fleet, .. } = self;
        let Clients { setup, side, .. } = &fleet.script;
        let clients = setup.case.clients();
        let expected = setup.rooms_at_once * setup.case.players as usize;
        // The baseline receives nothing but inputs, since it does not time out idle clients.
        if *side == Side::Node {
            fleet.script.pacers = vec![Pacer::pings(clients)];
        }
        fleet.connect(0..clients, CONNECTING_MAX);
        fleet.until(|clients, _| clients.seated >= expected || clients.window.failure.is_some());
        let overload =
            fleet.fault.take().map(|fault| Failure::Overload(format!("can't join: {fault}")));
        fleet.script.window.failure.take().or(overload).map_or(Ok(()), Err)
    }

    /// A fault if the server's process has ended: it lost all its clients, but not to overload.
    pub(in crate::suites) fn end(&mut self) -> Result<(), Failure> {
        match self.server.ended()? {
            Some(status) => Err(Failure::Fault(format!("the server's process ended: {status}"))),
            None => Ok(()),
        }
    }

    pub(in crate::suites) fn used(&mut self) -> io::Result<Used> {
        Ok(Used {
            server: self.server.usage()?,
            driver_cpu: process_cpu(),
            driver_delayed: delayed(DRIVER_CORE),
        })
    }

    /// Asks the rooms how many inputs they handled, until the number equals the inputs sent or
    /// stops growing.
    pub(in crate::suites) fn inputs_handled(&mut self, sent: u64) -> u64 {
        let fleet = &mut self.fleet;
        let mut handled = 0;
        for _ in 0..COUNTS {
            if handled == sent {
                break;
            }
            fleet.script.ask_for_counts(&mut fleet.links);
            fleet.run(COUNT_EVERY);
            handled = fleet.script.inputs_reported();
        }
        handled
    }
}

impl Used {
    /// The shares of a core between then and now.
    pub(in crate::suites) fn until(&self, now: &Self) -> Shares {
        let elapsed = (now.server.at - self.server.at).as_secs_f64();
        let share =
            |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / elapsed;
        Shares {
            server: share(now.server.cpu, self.server.cpu),
            driver: share(now.driver_cpu, self.driver_cpu),
            server_delayed: share(now.server.delayed, self.server.delayed),
            driver_delayed: share(now.driver_delayed, self.driver_delayed),
        }
    }

    /// The server's memory, in MB.
    pub(in crate::suites) fn rss_mb(&self) -> f64 {
        self.server.resident as f64 / f64::from(1 << 20)
    }
}

fn measure(run: &mut Run, case: &Options, side: Side) -> Result<Outcome, Failure> {
    if case.inputs_hz > 0 {
        let per_second = case.clients() as f64 * f64::from(case.inputs_hz);
        run.fleet.script.pacers = vec![Pacer::inputs(per_second, 0)];
    }
    let timed = timed(&mut run.fleet, &mut run.server, case)?;
    let pacers = std::mem::take(&mut run.fleet.script.pacers);
    let inputs_sent =
        pacers.iter().filter(|pacer| pacer.has_inputs()).map(|pacer| pacer.sent).sum();
    let inputs_handled = match side {
        Side::Node => run.inputs_handled(inputs_sent),
        Side::Bare => 0,
    };
    let Fleet { script: Clients { window, lost, .. }, fault, .. } = &mut run.fleet;
    let outcome = timed.outcome(case, std::mem::take(window), *lost, fault.take());
    Ok(Outcome { inputs_sent, inputs_handled, ..outcome })
}
