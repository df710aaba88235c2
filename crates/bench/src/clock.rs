//! Processor time, and where a thread runs.

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of this thread so far. A call takes a third of a microsecond on a virtual
/// machine: read it around batches.
pub(crate) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// The processor time of this process so far, all its threads together.
pub(crate) fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// How long threads of this process, bound to `core`, so far could have run while something else
/// did: another process on the core, or another machine on the host. Known on Linux alone.
pub(crate) fn delayed(core: usize) -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        times.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum()) + stolen(core)
}

/// How long the host let a core of this virtual machine wait so far (proc_stat(5): the eighth time,
/// in hundredths of a second).
fn stolen(core: usize) -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{core} ");
    let times = text.lines().find_map(|line| line.strip_prefix(&name));
    let hundredths = times.and_then(|times| times.split_whitespace().nth(7)?.parse().ok());
    Duration::from_millis(10 * hundredths.unwrap_or(0))
}

/// Binds this thread, and those that it starts from now on, to one core, where there is more than
/// one.
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
    // A clock that stands before its own epoch does not exist; were it so, the time would be taken
    // as zero.
    clock_gettime(clock).try_into().unwrap_or_default()
}
