//! A proxy that cuts connections at random bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Numbers that look random, from a seed (SplitMix64: G. L. Steele and others, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// How many cuts are left, of all proxies of a test.
#[derive(Debug)]
pub(crate) struct Cuts {
    left: AtomicUsize,
}

impl Cuts {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(count) })
    }

    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes one.
    fn take(&self) -> bool {
        let take = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// Starts a proxy before a node, which cuts connections at random.
pub(crate) async fn start(node: SocketAddr, seed: u64, cuts: Arc<Cuts>) -> SocketAddr {
    // From within the hello to after much of the game: every size is as likely.
    start_with(node, seed, cuts, |random| {
        let bits = 4 + random.below(12);
        usize::try_from(random.below(1 << bits)).unwrap()
    })
    .await
}

/// Starts a proxy that cuts each connection when so many bytes have passed in a direction.
pub(crate) async fn start_with(
    node: SocketAddr,
    seed: u64,
    cuts: Arc<Cuts>,
    bytes: fn(&mut Random) -> usize,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut random = Random(seed);
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let random = Random(random.next());
            tokio::spawn(pass(client, node, random, Arc::clone(&cuts), bytes));
        }
    });
    address
}

/// Passes bytes in both directions, until one of them is cut: what was read before it is passed on,
/// and the rest is lost.
async fn pass(
    mut client: TcpStream,
    node: SocketAddr,
    mut random: Random,
    cuts: Arc<Cuts>,
    bytes: fn(&mut Random) -> usize,
) {
    let Ok(mut node) = TcpStream::connect(node).await else { return };
    client.set_nodelay(true).unwrap();
    node.set_nodelay(true).unwrap();
    let limits = [bytes(&mut random), bytes(&mut random)];
    let resets = random.below(2) == 0;
    {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_node, mut to_node) = node.split();
        tokio::select! {
            () = pump(&mut from_client, &mut to_node, limits[0], &cuts) => {}
            () = pump(&mut from_node, &mut to_client, limits[1], &cuts) => {}
        }
    }
    if resets {
        // The other end gets an error in place of an end.
        let _ = client.set_zero_linger();
        let _ = node.set_zero_linger();
    }
}

/// Passes bytes one way until the end, or until `limit` bytes have passed and there is a cut left.
async fn pump(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    mut limit: usize,
    cuts: &Cuts,
) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else { return };
        let passes = read.min(limit);
        if to.write_all(&bytes[..passes]).await.is_err() {
            return;
        }
        limit -= passes;
        if passes < read {
            if cuts.take() {
                return;
            }
            if to.write_all(&bytes[passes..read]).await.is_err() {
                return;
            }
            limit = usize::MAX;
        }
    }
}
