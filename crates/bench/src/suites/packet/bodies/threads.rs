//! The same operations on all cores at once: the interference between cores that share nothing.

use std::sync::Barrier;
use std::thread;

use super::{many, packets};
use crate::harness::rounds::{Form, Run};

/// The number of cores.
pub(in super::super) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the operation `times` times on each core. All cores start together, and the slowest one
/// counts.
fn on_all(body: fn(Form, u64) -> Run, form: Form, times: u64) -> Run {
    let begin = Barrier::new(count());
    let run = || {
        begin.wait();
        body(form, times)
    };
    let runs: Vec<Run> = thread::scope(|scope| {
        let threads: Vec<_> = (0..count()).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a body doesn't panic")).collect()
    });
    let slowest = runs.iter().max_by_key(|run| run.took).copied().expect("there is a core");
    Run { right: runs.iter().all(|run| run.right), ..slowest }
}

pub(in super::super) fn write(form: Form, times: u64) -> Run {
    on_all(many::write_100, form, times)
}

pub(in super::super) fn read(form: Form, times: u64) -> Run {
    on_all(many::read_100, form, times)
}

pub(in super::super) fn small(form: Form, times: u64) -> Run {
    on_all(packets::small, form, times)
}

pub(in super::super) fn medium(form: Form, times: u64) -> Run {
    on_all(packets::medium, form, times)
}

pub(in super::super) fn large(form: Form, times: u64) -> Run {
    on_all(packets::large, form, times)
}
