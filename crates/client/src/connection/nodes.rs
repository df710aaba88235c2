//! The connections of a client to other nodes of a cluster, each for the rooms there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::timeout;

use super::command::Line;
use super::connect::Connect;
use super::status::Status;
use crate::Error;
use crate::ending::Ending;
use crate::session::Url;

/// The connections to other nodes. A task keeps each of them, until it was in no room for a while,
/// or the first connection has ended.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// The settings of all connections.
    settings: Connect,
    /// The first connection.
    first: Arc<Status>,
    open: Mutex<HashMap<Url, Node>>,
    /// The number of connections that are kept, or still on their way to their end.
    kept: Count,
    /// The program closes them all.
    is_closing: watch::Sender<bool>,
}

/// A connection to another node, by the way to it.
#[derive(Clone, Debug)]
struct Node {
    opened: watch::Sender<Option<Result<Line, Error>>>,
    /// The number of rooms, and of joins that may lead to one.
    uses: Count,
}

#[derive(Clone, Debug, Default)]
struct Count(watch::Sender<usize>);

/// One of a [`Count`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Count);

impl Count {
    fn one(&self) -> Counted {
        self.0.send_modify(|count| *count += 1);
        Counted(self.clone())
    }

    fn is_none(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until there is none, or one.
    async fn until(&self, is_none: bool) {
        // It does not fail: there is a sender.
        let _ = self.0.subscribe().wait_for(|count| (*count == 0) == is_none).await;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Nodes {
    /// None yet, beside the first connection, which was made with these settings.
    pub(super) fn new(settings: Connect, first: Arc<Status>) -> Arc<Self> {
        Arc::new(Self {
            settings,
            first,
            open: Mutex::default(),
            kept: Count::default(),
            is_closing: watch::Sender::new(false),
        })
    }

    /// The connection to the node at this address, which is kept at least until what comes with it
    /// is dropped. It is made if there is none.
    ///
    /// # Errors
    /// If it can't be made.
    pub(super) async fn at(self: &Arc<Self>, address: &Url) -> Result<(Line, Counted), Error> {
        let (node, counted) = self.find(address)?;
        let mut opened = node.opened.subscribe();
        let opened = opened.wait_for(Option::is_some).await.map(|opened| opened.clone());
        let line = opened.ok().flatten().unwrap_or_else(|| Err(closed()))?;
        Ok((line, counted))
    }

    fn find(self: &Arc<Self>, address: &Url) -> Result<(Node, Counted), Error> {
        let mut open = self.open();
        if *self.is_closing.borrow() {
            return Err(closed());
        }
        let by_own_word = || open.values().find(|node| node.is_at(address));
        if let Some(node) = open.get(address).or_else(by_own_word) {
            return Ok((node.clone(), node.uses.one()));
        }
        let node = Node { opened: watch::Sender::new(None), uses: Count::default() };
        open.insert(address.clone(), node.clone());
        let (address, counted) = (address.clone(), node.uses.one());
        tokio::spawn(Arc::clone(self).keep(address, node.clone(), self.kept.one()));
        Ok((node, counted))
    }

    /// Makes a connection, and closes it when it is no longer needed.
    async fn keep(self: Arc<Self>, address: Url, node: Node, _kept: Counted) {
        let opened = tokio::select! {
            opened = self.settings.clone().to(&address).line() => opened,
            () = self.until_end() => Err(closed()),
        };
        let line = opened.as_ref().ok().cloned();
        if line.is_none() {
            self.open().remove(&address);
        }
        node.opened.send_replace(Some(opened));
        let Some(line) = line else { return };
        tokio::select! {
            () = self.until_end() => {}
            () = line.status.until_end() => {}
            () = self.until_idle(&address, &node) => {}
        }
        self.open().remove(&address);
        line.close().await;
    }

    /// Waits until the program closes all connections, or the first has ended.
    async fn until_end(&self) {
        let mut is_closing = self.is_closing.subscribe();
        tokio::select! {
            _ = is_closing.wait_for(|is_closing| *is_closing) => {}
            () = self.first.until_end() => {}
        }
    }

    /// Waits until a node was not used for a while, and is no longer found.
    async fn until_idle(&self, address: &Url, node: &Node) {
        loop {
            node.uses.until(true).await;
            if timeout(self.settings.node_idle, node.uses.until(false)).await.is_err() {
                let mut open = self.open();
                // A join may have found it just now.
                if node.uses.is_none() {
                    open.remove(address);
                    return;
                }
            }
        }
    }

    /// Has all connections say goodbye.
    pub(super) fn close(&self) {
        let _open = self.open();
        self.is_closing.send_replace(true);
    }

    /// Waits until all connections have ended.
    pub(super) async fn until_closed(&self) {
        self.kept.until(true).await;
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Url, Node>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Returns whether the connection is to a node that calls itself by this address.
    fn is_at(&self, address: &Url) -> bool {
        matches!(&*self.opened.borrow(), Some(Ok(line)) if line.status.is_at(address))
    }
}

fn closed() -> Error {
    Error::closed(Ending::Here)
}
