//! Servers in other processes, which are asked for their usage: this program, or one of another
//! project.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::stdio::dup2_stdout;

use crate::machine::{
    SERVER_CORE, cpu_of, delayed, delayed_of, nanoseconds, pin, process_cpu, resident,
};

/// A process that prints lines, and answers lines that it is sent. Dropping it ends the process.
#[derive(Debug)]
pub struct Talker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talker {
    /// Starts a process.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Sends a line, and returns the one that is printed for it.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn ask(&mut self, text: &str) -> io::Result<String> {
        writeln!(self.input, "{text}")?;
        self.line()
    }

    /// The next line that is printed; empty if the process has ended.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server in a process of its own. Dropping it ends the process.
#[derive(Debug)]
pub struct Server {
    process: Talker,
    /// Says whether it is a program of another project, whose usage is read from outside.
    is_foreign: bool,
    first: Vec<String>,
    /// The address of the first port that it named.
    pub address: SocketAddr,
}

/// Resources that a server has used since its start.
#[derive(Debug)]
pub struct Usage {
    /// When it said so.
    pub at: Instant,
    /// CPU time of its process.
    pub cpu: Duration,
    /// Time in which it was runnable but something else ran.
    pub delayed: Duration,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Allocated memory in bytes, if that is counted.
    pub heap: Option<u64>,
    /// Numbers of the server's own.
    pub more: Vec<u64>,
}

impl Server {
    /// Starts this program with these arguments and level of the log, and waits until it serves.
    ///
    /// # Errors
    /// If it can't be started, or ends before it serves.
    pub fn start(arguments: &[String], log: &str) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).env("PLAYFIELD_LOG", log);
        Self::of(Talker::start(&mut command)?, false)
    }

    /// Starts a program of another project on the server's core, and waits until it prints its
    /// port. The program must end when its standard input is closed.
    ///
    /// # Errors
    /// If it can't be started, or ends before it serves.
    pub fn start_foreign(command: &mut Command) -> io::Result<Self> {
        // A process has the cores of the thread that starts it.
        let pinned = thread::scope(|scope| {
            let start = || pin(SERVER_CORE).and_then(|()| Talker::start(command));
            scope.spawn(start).join()
        });
        Self::of(pinned.map_err(|_| io::Error::other("the thread panicked"))??, true)
    }

    fn of(process: Talker, is_foreign: bool) -> io::Result<Self> {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let mut server = Self { process, is_foreign, first: Vec::new(), address };
        loop {
            let line = server.process.line()?;
            server.first = line.split_whitespace().map(str::to_owned).collect();
            if line.is_empty() || server.address(0).is_ok() {
                break;
            }
            // The program's own text, from before it serves. It need not be read.
            let _ = io::stderr().write_all(line.as_bytes());
        }
        server.address = server.address(0)?;
        Ok(server)
    }

    /// A word of the first line, counted from 0.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn word(&self, at: usize) -> io::Result<&str> {
        let printed = || match self.first.is_empty() {
            true => io::Error::other("the server process ended before it served; see above"),
            false => io::Error::other(format!("the server process printed {:?}", self.first)),
        };
        self.first.get(at).map(String::as_str).ok_or_else(printed)
    }

    /// The loopback address with the port that is a word of the first line.
    ///
    /// # Errors
    /// If the word is not a port.
    pub fn address(&self, at: usize) -> io::Result<SocketAddr> {
        let port = self.word(at)?.parse::<u16>().map_err(io::Error::other)?;
        Ok((Ipv4Addr::LOCALHOST, port).into())
    }

    /// Asks for the usage so far.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn usage(&mut self) -> io::Result<Usage> {
        if self.is_foreign {
            let process = self.process.child.id().to_string();
            return Ok(Usage {
                at: Instant::now(),
                cpu: cpu_of(&process),
                delayed: delayed_of(&process, SERVER_CORE),
                resident: resident(&process),
                heap: None,
                more: Vec::new(),
            });
        }
        let line = self.process.ask("")?;
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let Some(([cpu, delayed, resident, heap], more)) = numbers.split_first_chunk() else {
            return Err(io::Error::other(format!("the server process printed {line:?}")));
        };
        Ok(Usage {
            at: Instant::now(),
            cpu: Duration::from_nanos(*cpu),
            delayed: Duration::from_nanos(*delayed),
            resident: *resident,
            heap: (*heap > 0).then_some(*heap),
            more: more.to_vec(),
        })
    }

    /// Returns how the process ended, if it has: it should serve for as long as this lives.
    ///
    /// # Errors
    /// If the system can't tell.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.child.try_wait()
    }

    /// CPU time since the start.
    ///
    /// # Errors
    /// As [`usage`](Self::usage).
    pub fn cpu(&mut self) -> io::Result<Duration> {
        Ok(self.usage()?.cpu)
    }
}

/// The other end of a [`Server`], in its process. It answers on what standard output was when it
/// was made; whatever the program prints from then on goes to standard error.
///
/// The process exits once its standard input is closed, even if a thread of it hangs: nobody asks
/// any more, and no process is left behind.
#[derive(Debug)]
pub struct Answers {
    out: File,
    /// One for each line that was read.
    questions: Receiver<()>,
}

impl Answers {
    /// Takes over standard input and output.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new() -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        dup2_stdout(io::stderr())?;
        let (asks, questions) = sync_channel(1);
        thread::Builder::new().name("questions".into()).spawn(move || {
            for line in io::stdin().lines() {
                if line.is_err() || asks.send(()).is_err() {
                    break;
                }
            }
            exit();
        })?;
        Ok(Self { out, questions })
    }

    /// Prints a line of ports and other words, then the usage and numbers of the server's own for
    /// each line that it reads. `heap` returns the bytes allocated now; 0 if that is not counted.
    ///
    /// # Errors
    /// If the pipe fails.
    pub fn serve(
        mut self,
        first: impl std::fmt::Display,
        heap: impl Fn() -> u64,
        mut more: impl FnMut() -> Vec<u64>,
    ) -> io::Result<()> {
        // In one piece: a file has no buffer.
        self.out.write_all(format!("{first}\n").as_bytes())?;
        for () in &self.questions {
            let [cpu, delayed] = [process_cpu(), delayed(SERVER_CORE)].map(nanoseconds);
            let numbers = [cpu, delayed, resident("self"), heap()].into_iter().chain(more());
            let numbers: Vec<_> = numbers.map(|number| number.to_string()).collect();
            self.out.write_all(format!("{}\n", numbers.join(" ")).as_bytes())?;
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the process that measures is gone, and a room that hangs must not keep this one"
)]
fn exit() -> ! {
    std::process::exit(0)
}

/// Answers [`Server`], in its process: see [`Answers::serve`].
///
/// # Errors
/// If the pipes fail.
pub fn serve(
    first: impl std::fmt::Display,
    heap: impl Fn() -> u64,
    more: impl FnMut() -> Vec<u64>,
) -> io::Result<()> {
    Answers::new()?.serve(first, heap, more)
}
