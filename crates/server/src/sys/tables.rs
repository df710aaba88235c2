//! Descriptor tables: one for each shard, so that the limit of open files holds for a shard and not
//! for the process.
//!
//! A descriptor is a number in a table. What threads with different tables use together is opened
//! before the tables part and has the same number in each: the wakers, and the passages through
//! which sockets travel. Everything else is opened by the thread that uses it.

use std::cell::Cell;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use nix::sys::socket::{AddressFamily, SockaddrLike, SockaddrStorage, getsockname};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily as Family, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use rustix::process::{Resource, getrlimit};

/// The number of descriptors of a table that are left to the program, beside those that are open
/// when it is made.
const DESCRIPTORS_RESERVED: usize = 128;

thread_local! {
    /// The id of the node whose table this thread has; 0 for the table of the process.
    static TABLE_OF: Cell<u64> = const { Cell::new(0) };
}

/// The tables of a node's shards, and that of the process, whose number follows theirs: the control
/// thread serves HTTP with it.
pub(crate) struct Tables {
    /// Differs from that of every other node in the process.
    id: u64,
    /// Wake the shards.
    wakers: Vec<OwnedFd>,
    /// Through which sockets reach the shards and the control thread.
    passages: Vec<Passage>,
    /// The number of connections of each table.
    connections: Vec<AtomicUsize>,
    connections_max: usize,
}

/// Each message is a byte, and a socket.
struct Passage {
    entrance: OwnedFd,
    exit: OwnedFd,
}

impl Tables {
    /// Opens what the tables share. They part when each shard [leaves](Self::leave).
    pub(crate) fn new(shards: usize) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if TABLE_OF.get() != 0 {
            let text = "a node can't be started by a shard that has a descriptor table of its own";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        relay();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wakers = (0..shards).map(|_| Ok(eventfd(0, flags)?)).collect::<io::Result<_>>()?;
        let passages = (0..=shards).map(|_| Passage::new()).collect::<io::Result<_>>()?;
        let open = fs::read_dir("/proc/thread-self/fd").map_or(0, Iterator::count);
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            wakers,
            passages,
            connections: (0..=shards).map(|_| AtomicUsize::new(0)).collect(),
            connections_max: most.saturating_sub(open + DESCRIPTORS_RESERVED),
        })
    }

    /// Gives the calling thread, a shard's, a table of its own.
    ///
    /// It is a copy. TCP sockets in it are closed: their peers would not learn that the program has
    /// closed them. The thread takes no signals, since their handlers may write to a pipe that is
    /// not in this table.
    pub(crate) fn leave(&self) -> io::Result<()> {
        SigSet::all().thread_block()?;
        unshare(CloneFlags::CLONE_FILES)?;
        TABLE_OF.set(self.id);
        for descriptor in descriptors()? {
            let is_tcp = getsockname::<SockaddrStorage>(descriptor).is_ok_and(|address| {
                matches!(address.family(), Some(AddressFamily::Inet | AddressFamily::Inet6))
            });
            if is_tcp {
                // Nothing in this thread knows it.
                let _ = nix::unistd::close(descriptor);
            }
        }
        Ok(())
    }

    /// Lets a poll of a shard return when the shard is woken.
    pub(crate) fn register(
        &self,
        shard: usize,
        registry: &Registry,
        token: Token,
    ) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.wakers[shard].as_raw_fd()), token, Interest::READABLE)
    }

    /// Wakes a shard. The calling thread has the process's table, or one of these.
    pub(crate) fn wake(&self, shard: usize) -> io::Result<()> {
        let waker = &self.wakers[shard];
        loop {
            match rustix::io::write(waker, &1_u64.to_ne_bytes()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // Its counter is full after 2^64 times: then it begins again.
                Err(Errno::AGAIN) => drop(rustix::io::read(waker, &mut [0; 8])),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether the calling thread's table has what these share.
    pub(crate) fn knows_this_thread(&self) -> bool {
        TABLE_OF.get() == self.id
    }

    /// Counts a connection in a shard's table, if there is space.
    pub(crate) fn takes(&self, shard: usize) -> bool {
        crate::counted::add_below(&self.connections[shard], self.connections_max)
    }

    /// A connection of a shard's table was closed, or has left.
    pub(crate) fn gives_back(&self, shard: usize) {
        self.connections[shard].fetch_sub(1, Ordering::Relaxed);
    }

    /// Sends a copy of a socket to a shard.
    pub(crate) fn send(&self, shard: usize, socket: &impl AsFd) -> io::Result<()> {
        let sockets = [socket.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
        let bytes = [IoSlice::new(&[0])];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.passages[shard].entrance, &bytes, &mut ancillary, flags)?;
        Ok(())
    }

    /// The next socket that was sent to this shard, whose thread calls this.
    pub(crate) fn receive(&self, shard: usize) -> io::Result<TcpStream> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        recvmsg(&self.passages[shard].exit, &mut bytes, &mut ancillary, flags)?;
        let mut sockets = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        });
        let socket = sockets.next().and_then(|mut sockets| sockets.next());
        // The system drops what a table has no space for.
        let none = || io::Error::other("the shard's descriptor table is full");
        Ok(TcpStream::from(socket.ok_or_else(none)?))
    }
}

impl Passage {
    fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (entrance, exit) = socketpair(Family::UNIX, SocketType::STREAM, flags, None)?;
        Ok(Self { entrance, exit })
    }
}

/// The descriptors that are open in the calling thread's table.
fn descriptors() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/thread-self/fd")?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

/// Returns whether the calling thread has the table of the process.
pub(crate) fn in_process_table() -> bool {
    TABLE_OF.get() == 0
}

type Work = Box<dyn FnOnce() + Send>;

/// Runs this in a thread with the table of the process: in this one, if it has that.
///
/// For work that may write to a descriptor that was opened after the tables parted, as the waker of
/// another runtime does.
pub(crate) fn with_process_table(work: impl FnOnce() + Send + 'static) {
    if in_process_table() {
        return work();
    }
    let relay = relay().lock().unwrap_or_else(PoisonError::into_inner);
    // The relay ends with the process.
    drop(relay.send(Box::new(work)));
}

/// The thread for such work. A thread has the table of the thread that started it.
fn relay() -> &'static Mutex<Sender<Work>> {
    static RELAY: OnceLock<Mutex<Sender<Work>>> = OnceLock::new();
    RELAY.get_or_init(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "it holds an answer for each request at most, which limits.queues.asks bounds, and a \
                      shard must not wait for it"
        )]
        let (sender, receiver) = channel::<Work>();
        let run = move || receiver.into_iter().for_each(|work| work());
        if let Err(error) = thread::Builder::new().name("playfield-relay".into()).spawn(run) {
            log::error!("the thread can't be started that wakes other runtimes: {error}");
        }
        Mutex::new(sender)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use mio::{Events, Poll, Token};

    use super::{Tables, in_process_table, with_process_table};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_socket_travels_to_another_table_and_its_shard_is_woken() {
        let tables = Arc::new(Tables::new(1).unwrap());
        let (mut client, accepted) = pair();
        let (is_ready, ready) = sync_channel(1);
        let of_shard = Arc::clone(&tables);
        let shard = thread::spawn(move || {
            let mut poll = Poll::new().unwrap();
            of_shard.leave().unwrap();
            of_shard.register(0, poll.registry(), Token(0)).unwrap();
            is_ready.send(()).unwrap();
            poll.poll(&mut Events::with_capacity(1), None).unwrap();
            let mut socket = of_shard.receive(0).unwrap();
            socket.write_all(b"hello").unwrap();
            assert!(of_shard.receive(0).is_err(), "nothing else was sent");
        });
        ready.recv().unwrap();
        tables.send(0, &accepted).unwrap();
        drop(accepted);
        tables.wake(0).unwrap();
        // It ends only when no table has the other end any more.
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        shard.join().unwrap();
    }

    #[test]
    fn a_table_has_no_sockets_that_were_open_before() {
        let tables = Tables::new(1).unwrap();
        let (mut client, accepted) = pair();
        let (leaves, left) = sync_channel(1);
        let (ends, end) = sync_channel::<()>(1);
        let shard = thread::spawn(move || {
            tables.leave().unwrap();
            leaves.send(()).unwrap();
            let _ = end.recv();
        });
        left.recv().unwrap();
        drop(accepted);
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "no other table keeps it open");
        drop(ends);
        shard.join().unwrap();
    }

    #[test]
    fn connections_max_is_all_that_a_table_takes() {
        let mut tables = Tables::new(2).unwrap();
        tables.connections_max = 2;
        tables.connections = (0..2).map(|_| AtomicUsize::new(0)).collect();
        assert_eq!([tables.takes(0), tables.takes(0), tables.takes(0)], [true, true, false]);
        assert!(tables.takes(1), "each has its own limit");
        tables.gives_back(0);
        assert!(tables.takes(0));
    }

    #[test]
    fn what_wakes_other_runtimes_runs_with_the_table_of_the_process() {
        let tables = Arc::new(Tables::new(1).unwrap());
        let (tells, told) = sync_channel(1);
        let of_shard = Arc::clone(&tables);
        let shard = thread::spawn(move || {
            of_shard.leave().unwrap();
            assert!(!in_process_table() && of_shard.knows_this_thread());
            assert!(Tables::new(1).is_err(), "a shard starts no such node");
            with_process_table(move || tells.send(in_process_table()).unwrap());
        });
        assert!(told.recv().unwrap());
        shard.join().unwrap();
        assert!(!tables.knows_this_thread());
    }
}
