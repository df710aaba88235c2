//! The machine and build that a figure was measured on.

use std::fs;

use crate::Record;

/// What a figure depends on besides the code.
#[derive(Clone, Debug)]
pub struct Machine {
    cores: usize,
    cpu: String,
    kernel: String,
    memory_mb: u64,
}

impl Machine {
    /// Describes this machine. Call it before pinning the process to a core, which would hide the
    /// others.
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

    /// Adds the machine, the build profile and the version to a record.
    pub fn add_to(&self, record: Record) -> Record {
        record
            .with("cores", self.cores)
            .with("cpu", self.cpu.as_str())
            .with("kernel", self.kernel.as_str())
            .with("memory_mb", self.memory_mb)
            .with("profile", if cfg!(debug_assertions) { "debug" } else { "release" })
            .with("version", env!("CARGO_PKG_VERSION"))
    }
}

/// A value from one of Linux's `name: value` files.
pub(crate) fn proc_value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| (key.trim() == name).then(|| value.trim().to_owned()))
}
