//! The engine of a cluster, as its thread drives it.

use std::pin::Pin;

use playfield_cluster::{Command, Engine, EngineEvent};

use crate::config;

/// An engine of a cluster that is connected, and runs on the Tokio runtime of one thread.
pub trait ConnectedEngine: Engine {
    /// Waits until there is an event.
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;

    /// Returns 32 random bytes that all nodes of the cluster have, and nobody else.
    fn secret(&self) -> [u8; 32];
}

/// Connects to the engine that the settings name, for a node of this name. It is called on the
/// thread of the cluster. An error says what to do.
pub type ConnectEngine = Box<dyn FnOnce(config::Cluster, String) -> Connecting + Send>;

/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Box<dyn ConnectedEngine>, String>>>>;

impl Engine for Box<dyn ConnectedEngine> {
    fn begin(&mut self, command: Command) {
        (**self).begin(command);
    }

    fn next(&mut self) -> Option<EngineEvent> {
        (**self).next()
    }
}
