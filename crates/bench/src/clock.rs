//! Processor time, and where a thread runs.

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of this thread so far. A call takes a third of a microsecond on a virtual machine: read it around batches.
pub(crate) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// The processor time of this process so far, all its threads together.
pub(crate) fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// How long threads of this process so far could have run while something else did: another process on the core, most often. Known on
/// Linux alone.
pub(crate) fn delayed() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        times.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Binds this thread, and those that it starts from now on, to one core, where there is more than one.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() <= core) {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    {
        let mut cores = rustix::thread::CpuSet::new();
        cores.set(core);
        rustix::thread::sched_setaffinity(None, &cores)?;
    }
    Ok(())
}

fn read(clock: ClockId) -> Duration {
    // A clock that stands before its own epoch does not exist; were it so, the time would be taken as zero.
    clock_gettime(clock).try_into().unwrap_or_default()
}
