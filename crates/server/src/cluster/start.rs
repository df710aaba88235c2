//! The start and the end of the cluster's thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use playfield_cluster::{Node, Settings};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use super::engine::{ConnectEngine, ConnectedEngine};
use super::host::Host;
use super::lock::Lock;
use super::{Cluster, Order, boot_clock};
use crate::entropy::Entropy;
use crate::handle::NodeHandle;
use crate::{config, program};

/// The time that a node waits for a slot in the cluster.
const SLOT_MAX: Duration = Duration::from_secs(30);

/// The time that the end of a node waits for the cluster's thread.
const END_MAX: Duration = Duration::from_secs(5);

/// A connection to the engine, before the node is a member.
pub(crate) struct Connected {
    thread: JoinHandle<()>,
    join: oneshot::Sender<Joining>,
    /// The secret that signs the tokens of all nodes.
    pub(crate) secret: [u8; 32],
}

/// The facts with which a node joins.
struct Joining {
    settings: Settings,
    cluster: Arc<Cluster>,
    orders: mpsc::UnboundedReceiver<Order>,
    lock: Option<Lock>,
    ready: oneshot::Sender<()>,
    /// Dropped at the end of the thread.
    _ends: SyncSender<()>,
}

/// A member of a cluster. Dropping it leaves the cluster.
pub(crate) struct Member {
    pub(crate) cluster: Arc<Cluster>,
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

impl Connected {
    /// Connects to the engine, if the settings name one.
    ///
    /// # Errors
    /// If none of its servers can be reached, or they can't be used: the text says what to do.
    pub(crate) fn connect(
        config: &config::Cluster,
        connect: Option<ConnectEngine>,
    ) -> io::Result<Option<Self>> {
        if !config.is_on() {
            return Ok(None);
        }
        let Some(connect) = connect else {
            let text = "cluster.engine is set, but this program was built without clusters: add the \
                        feature `cluster` to its dependency `playfield`";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        };
        let (tell, told) = sync_channel(1);
        let (join, joining) = oneshot::channel::<Joining>();
        let connecting = (config.clone(), node_name(config));
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error.to_string()))),
            };
            LocalSet::new().block_on(&runtime, async move {
                match connect(connecting.0, connecting.1).await {
                    Err(error) => drop(tell.send(Err(error))),
                    Ok(engine) => {
                        let _ = tell.send(Ok(engine.secret()));
                        if let Ok(joining) = joining.await {
                            joining.run(engine).await;
                        }
                    }
                }
            });
        };
        let thread = thread::Builder::new().name("playfield-cluster".into()).spawn(run)?;
        let failed = || Err("its thread panicked; see the log".to_owned());
        match told.recv().unwrap_or_else(|_| failed()) {
            Ok(secret) => Ok(Some(Self { thread, join, secret })),
            Err(error) => Err(io::Error::other(format!("cluster.engine: {error}"))),
        }
    }

    /// Joins the cluster, and returns when the node has a slot.
    ///
    /// # Errors
    /// If it gets none in time.
    pub(crate) fn join(
        self,
        config: &config::Cluster,
        addresses: Vec<String>,
        types: Vec<(String, u64)>,
    ) -> io::Result<Member> {
        let failed = |text: String| io::Error::other(format!("cluster: {text}"));
        let lock = Lock::take(&config.lock)?;
        let mut settings =
            Settings::new(config.lease).map_err(|error| failed(error.to_string()))?;
        settings.addresses.clone_from(&addresses);
        settings.name = node_name(config);
        settings.build = program::build_number();
        settings.types = types;
        if let Some(lock) = &lock {
            (settings.lock, settings.slot) = (lock.name().to_owned(), lock.slot());
        }
        let (orders, received) = mpsc::unbounded_channel();
        let cluster = Arc::new(Cluster::new(addresses, config.redirect_wait, orders));
        let (ready, is_ready) = oneshot::channel();
        let (ends, ended) = sync_channel(1);
        let (orders, cluster_of_thread) = (received, Arc::clone(&cluster));
        let joining =
            Joining { settings, cluster: cluster_of_thread, orders, lock, ready, _ends: ends };
        let member = Member { cluster, thread: Some(self.thread), ended };
        self.join.send(joining).map_err(|_| failed("its thread has ended".to_owned()))?;
        wait_until_ready(is_ready).map_err(failed)?;
        Ok(member)
    }
}

impl Joining {
    async fn run(self, engine: Box<dyn ConnectedEngine>) {
        let Self { settings, cluster, orders, lock, ready, _ends } = self;
        let node = Node::new(settings, Entropy::System.number(), boot_clock::now());
        Host::new(cluster, node, lock, ready).run(engine, orders).await;
    }
}

impl Member {
    /// Serves players of other nodes from now on.
    pub(crate) fn serve(&self, handle: NodeHandle) {
        self.cluster.order(Order::Serve(handle));
    }

    /// Leaves the cluster, after its last rooms have ended.
    pub(crate) fn leave(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.cluster.order(Order::Stop);
        match self.ended.recv_timeout(END_MAX) {
            Err(RecvTimeoutError::Timeout) => {
                log::warn!("the cluster's thread does not end, and is left behind");
            }
            // A panic was reported where it happened.
            _ => drop(thread.join()),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

fn wait_until_ready(ready: oneshot::Receiver<()>) -> Result<(), String> {
    let wait = async { tokio::time::timeout(SLOT_MAX, ready).await };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    match runtime.map_err(|error| error.to_string())?.block_on(wait) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err("its thread has ended; see the log".to_owned()),
        Err(_) => Err(format!(
            "no slot within {SLOT_MAX:?}: the engine does not answer, or all slots are taken; see \
             the log"
        )),
    }
}

/// The name of the node for people.
fn node_name(config: &config::Cluster) -> String {
    if !config.node.is_empty() {
        return config.node.clone();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "node".to_owned() } else { name.to_owned() }
}
