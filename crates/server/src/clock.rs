//! The node's clock, which a measurement may let run faster than time.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::sys::thread_cpu;

/// The pace of a node that is measured. A node that serves clients has the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The seconds that pass for rooms and clients in one of real time; at least 1. One room at a
    /// speed of 50 costs as much as 50 such rooms, whose input and output come as densely.
    pub speed: u32,
    /// The bytes of memory that each turn reads before it begins, so that the processor's caches
    /// hold as little of a room as if others had run meanwhile; 0 for none.
    pub evict_bytes: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { speed: 1, evict_bytes: 0 }
    }
}

/// The time with which a node's clock begins that goes on for no other. Rooms that were made
/// elsewhere, and may be this old, can go on in it.
pub(crate) const BEGIN: Duration = Duration::from_secs(365 * 86_400);

/// The time since the node started, and what its clock began with, as its rooms and clients know
/// it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// The time that it began with.
    at: Duration,
    speed: u32,
}

impl Clock {
    /// Starts at this time.
    pub(crate) fn start(pace: Pace, at: Duration) -> Self {
        Self { began: Instant::now(), at, speed: pace.speed.max(1) }
    }

    #[inline]
    pub(crate) fn now(&self) -> Duration {
        self.at + self.began.elapsed() * self.speed
    }

    /// Returns the real time that it takes until this much has passed.
    pub(crate) fn real(&self, time: Duration) -> Duration {
        time / self.speed
    }
}

/// Makes the processor's caches as other rooms leave them: they hold none of a room's memory, but
/// the system's code for sockets, since every room runs that.
pub(crate) struct Eviction {
    memory: Box<[u64]>,
    /// Two ends of a connection on loopback.
    ends: [TcpStream; 2],
    next: usize,
    words: usize,
    /// The sum of what was read, so that the reads are not optimized away.
    sum: u64,
}

/// The memory that is read in turn: larger than the last of most processors' caches.
const EVICTION_BYTES: usize = 64 << 20;
/// Words in a cache line. Reading one loads the line.
const LINE_WORDS: usize = 8;

impl Eviction {
    /// Reads this many bytes each time; `None` for 0.
    ///
    /// # Errors
    /// If loopback can't be connected to.
    pub(crate) fn new(bytes: usize) -> io::Result<Option<Self>> {
        let words = bytes.min(EVICTION_BYTES) / size_of::<u64>();
        if words == 0 {
            return Ok(None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let one = TcpStream::connect(listener.local_addr()?)?;
        let (other, _) = listener.accept()?;
        for end in [&one, &other] {
            end.set_nodelay(true)?;
        }
        Ok(Some(Self {
            // Not zero, or the system would back it with a single page.
            memory: vec![1; EVICTION_BYTES / size_of::<u64>()].into_boxed_slice(),
            ends: [one, other],
            next: 0,
            words,
            sum: 0,
        }))
    }

    /// Makes the caches cold. Returns the CPU time that it took, which a wait for a core does not
    /// lengthen.
    pub(crate) fn run(&mut self) -> io::Result<Duration> {
        let began = thread_cpu();
        for _ in 0..self.words / LINE_WORDS {
            self.sum = self.sum.wrapping_add(self.memory[self.next]);
            self.next = (self.next + LINE_WORDS) % self.memory.len();
        }
        std::hint::black_box(self.sum);
        // The reads have evicted the system's code, too.
        let mut bytes = [0; 64];
        for from in 0..2 {
            self.ends[from].write_all(&bytes)?;
            self.ends[1 - from].read_exact(&mut bytes)?;
        }
        Ok(thread_cpu().saturating_sub(began))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Clock, Eviction, Pace};
    use crate::sys::thread_cpu;

    #[test]
    fn a_fast_clock_is_ahead_of_time_and_waits_less() {
        let clock = Clock::start(Pace { speed: 1000, evict_bytes: 0 }, Duration::from_secs(7));
        let before = clock.began.elapsed();
        assert!(clock.now() >= Duration::from_secs(7) + before * 1000);
        assert_eq!(clock.real(Duration::from_secs(5)), Duration::from_millis(5));
    }

    #[test]
    fn eviction_reads_what_it_is_told_and_goes_on_from_there() {
        assert!(Eviction::new(0).unwrap().is_none());
        let mut eviction = Eviction::new(1 << 20).unwrap().unwrap();
        let before = thread_cpu();
        let took: Duration = (0..65).map(|_| eviction.run().unwrap()).sum();
        assert!(took <= thread_cpu().saturating_sub(before), "{took:?}");
        assert_eq!(eviction.sum, 65 * (1 << 20) / 64);
    }
}
