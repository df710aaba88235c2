//! A child process with all that it has started.

use std::io;
#[cfg(unix)]
use std::process::Stdio;
use std::process::{Child, Command, ExitStatus};

/// A child and its process group: what it starts ends with it, and a Ctrl-C in the terminal reaches
/// `dev` alone, which ends its children in order.
pub(super) struct Group {
    child: Child,
    has_ended: bool,
    /// Ends the group if `dev` is killed; `None` if there is no shell.
    #[cfg(unix)]
    guard: Option<Child>,
}

/// Waits until its standard input ends, which is when `dev` has ended, however that came.
#[cfg(unix)]
const GUARD: &str = "read -r line; kill -s TERM -- \"-$0\"";

impl Group {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            io::Error::new(error.kind(), format!("{program} can't be started: {error}"))
        })?;
        Ok(Self {
            #[cfg(unix)]
            guard: guard(&child),
            child,
            has_ended: false,
        })
    }

    /// The id of the child's process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, once, if that is a pipe.
    pub(super) fn stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Asks it to end.
    pub(super) fn stop(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
        #[cfg(not(unix))]
        self.kill();
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        // If it can't be killed, it has ended.
        #[cfg(not(unix))]
        let _ = self.child.kill();
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.has_ended = true;
        Ok(status)
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if !self.has_ended {
            // It fails if all of them have ended.
            let group = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = self.wait();
        #[cfg(unix)]
        if let Some(guard) = &mut self.guard {
            // Before its input ends: the number of the group is free for others now.
            let _ = guard.kill();
            let _ = guard.wait();
        }
    }
}

/// Starts what ends the group of a child after `dev`.
#[cfg(unix)]
fn guard(child: &Child) -> Option<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", GUARD]).arg(child.id().to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().ok()
}
