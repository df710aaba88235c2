//! The engine over NATS, as its host sees it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, fs};

use async_nats::{Client, ConnectOptions};
use playfield_cluster::{Command, Engine, EngineEvent};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::driver::Driver;
use crate::names::Names;
use crate::setup::Secret;
use crate::state::State;
use crate::{ConnectError, Settings};

/// The time that [`NatsEngine::close`] waits for the last messages to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The engine of a cluster over NATS.
///
/// The engine belongs to the tokio runtime in which it was connected, and drives its connection
/// there. Its host takes events when [`ready`](Self::ready) says so. After a loss, the engine
/// connects again by itself, for ever.
pub struct NatsEngine {
    shared: Arc<Shared>,
    secret: Secret,
    driver: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Notified when there are events.
    pub(crate) news: Notify,
}

/// Locks what is whole after every statement, so that a panic elsewhere changes nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NatsEngine {
    /// Connects to the engine, checks it, and makes the bucket of the cluster if it is missing.
    ///
    /// # Errors
    /// If the settings or the engine can't be used, or if it can't be reached for the time that
    /// the settings allow.
    pub async fn connect(settings: Settings) -> Result<Self, ConnectError> {
        let addresses = settings.addresses()?;
        let credentials = settings.credentials.as_deref().map(credentials).transpose()?;
        let names = Arc::new(Names::new(&settings.cluster));
        let driver = Driver { settings, addresses, credentials, names: names.clone() };
        let live = driver.first().await?;
        let secret = live.secret;
        log::info!("connected to the engine, {}", live.connection.server);

        let mut state = State::new(names);
        state.connected(live.outlet(), true);
        let shared = Arc::new(Shared { state: Mutex::new(state), news: Notify::new() });
        let driver = tokio::spawn(driver.run(shared.clone(), live));
        Ok(Self { shared, secret, driver })
    }

    /// Returns 32 random bytes that all nodes of the cluster have, and no one else.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Waits until there is an event.
    pub async fn ready(&self) {
        while !lock(&self.shared.state).has_events() {
            self.shared.news.notified().await;
        }
    }

    /// Writes what waits, for a second at most, and closes the connection.
    pub async fn close(self) {
        let client: Option<Client> = lock(&self.shared.state).client();
        if let Some(client) = client {
            let _ = timeout(CLOSE_TIMEOUT, client.flush()).await;
        }
    }
}

impl Engine for NatsEngine {
    fn begin(&mut self, command: Command) {
        lock(&self.shared.state).begin(command);
    }

    fn next(&mut self) -> Option<EngineEvent> {
        lock(&self.shared.state).next()
    }
}

impl Drop for NatsEngine {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Without the secret.
impl fmt::Debug for NatsEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsEngine").field("driver", &self.driver).finish_non_exhaustive()
    }
}

/// Reads and checks a file of credentials.
fn credentials(file: &Path) -> Result<String, ConnectError> {
    let wrong = |reason: String| ConnectError::Credentials { file: file.to_owned(), reason };
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    ConnectOptions::with_credentials(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(text)
}
