//! The machine and build that a figure was measured on, its clocks, its cores and its limits.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use serde_json::Value;

use crate::calibration::Calibration;

/// The server's core.
pub const SERVER_CORE: usize = 0;
/// The clients' core.
pub const DRIVER_CORE: usize = 1;

/// Properties of the machine that a figure depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    cores: usize,
    cpu: String,
    kernel: String,
    memory_mb: u64,
}

impl Machine {
    /// Describes this machine. Call it before pinning the process to a core, which would hide the
    /// others.
    #[must_use]
    pub fn describe() -> Self {
        let uname = rustix::system::uname();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: proc_value("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.into()),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            memory_mb: proc_value("/proc/meminfo", "MemTotal")
                .and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes / 1024),
        }
    }

    /// Returns the number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The machine and its calibration, as an object.
    #[must_use]
    pub fn to_json(&self, calibration: &Calibration) -> Value {
        let fields = self.fields().into_iter().chain(calibration.fields());
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The machine, the build profile and the version, by name.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, Value); 6] {
        [
            ("cores", self.cores.into()),
            ("cpu", self.cpu.as_str().into()),
            ("kernel", self.kernel.as_str().into()),
            ("memory_mb", self.memory_mb.into()),
            ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }.into()),
            ("version", env!("CARGO_PKG_VERSION").into()),
        ]
    }
}

/// The fields that CPU time depends on: the machine, its kernel and the kind of build.
pub const CPU_FIELDS: [&str; 5] = ["cores", "cpu", "kernel", "memory_mb", "profile"];

/// Returns whether two results in files are of the same machine, kernel and kind of build. Their
/// calibrations, loads and versions differ from run to run.
#[must_use]
pub fn is_same(one: &Value, other: &Value) -> bool {
    CPU_FIELDS.iter().all(|name| one[*name] == other[*name])
}

/// A value from one of Linux's `name: value` files.
#[must_use]
pub fn proc_value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| (key.trim() == name).then(|| value.trim().to_owned()))
}

/// The CPU time of this thread so far. A call takes a third of a microsecond on a virtual machine,
/// so read it around batches.
#[must_use]
pub fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// The CPU time of this process so far, over all threads.
#[must_use]
pub fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// A time in nanoseconds, as one process prints it for another.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time for which the threads of this process, pinned to `core`, were runnable but
/// waited: for another process on the core, or for another machine on the host. Only known on
/// Linux.
#[must_use]
pub fn delayed(core: usize) -> Duration {
    delayed_of("self", core)
}

/// The same of the process with this name in `/proc`.
#[must_use]
pub fn delayed_of(process: &str, core: usize) -> Duration {
    thread_times(process, 1) + stolen(core)
}

/// The CPU time of the living threads of a process, by its name in `/proc`. Only known on Linux.
#[must_use]
pub fn cpu_of(process: &str) -> Duration {
    thread_times(process, 0)
}

/// The sum over the threads of a process of one of the times in `schedstat`.
fn thread_times(process: &str, column: usize) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        times.split_whitespace().nth(column)?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Returns the time that the host has made a core of this virtual machine wait so far
/// (proc_stat(5): the eighth value, in hundredths of a second).
fn stolen(core: usize) -> Duration {
    Duration::from_millis(10 * core_times(core).get(7).copied().unwrap_or(0))
}

/// Returns the time for which a core of this machine has worked for any process so far, or was held
/// up by the host (proc_stat(5)). Zero where that is not known.
#[must_use]
pub fn busy(core: usize) -> Duration {
    // User, nice, system and stolen; an interrupt counts for the interrupted.
    const COLUMNS: [usize; 4] = [0, 1, 2, 7];
    let times = core_times(core);
    Duration::from_millis(COLUMNS.iter().filter_map(|at| times.get(*at)).map(|of| 10 * of).sum())
}

/// The times of a core, in hundredths of a second.
fn core_times(core: usize) -> Vec<u64> {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{core} ");
    let times = text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_default();
    times.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Pins this thread, and all threads that it starts from now on, to one core if there are several.
///
/// # Errors
/// If the system refuses.
pub fn pin(core: usize) -> io::Result<()> {
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
    // A clock before its own epoch does not exist; it would be read as zero.
    clock_gettime(clock).try_into().unwrap_or_default()
}

/// The hard limit: how many descriptors a process may have open after raising its limit.
#[must_use]
pub fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Raises the soft limit to the hard limit. On failure the process continues with the current
/// limit; opening too many descriptors then reports an error.
pub fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The memory of a process, by its name in `/proc`, in bytes; 0 where that is not known.
#[must_use]
pub fn resident(process: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CPU_FIELDS, Machine, is_same};
    use crate::calibration::Calibration;

    #[test]
    fn a_machine_is_the_same_whatever_its_calibration_load_and_version() {
        let machine = Machine::describe();
        let before = machine.to_json(&Calibration::quiet());
        let mut busy = Calibration::quiet();
        (busy.us, busy.noise, busy.load) = (231.0, 0.3, Some(1.9));
        let mut now = machine.to_json(&busy);
        now["version"] = json!("9.9.9");
        assert!(before != now && is_same(&before, &now));
        for name in CPU_FIELDS {
            let mut other = now.clone();
            other[name] = json!("another");
            assert!(!is_same(&before, &other), "{name}");
        }
    }
}
