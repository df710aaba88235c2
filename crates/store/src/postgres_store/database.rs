//! Connections to the database.

use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use playfield_room::{StoreError, StoreErrorKind};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, Socket};

use super::PostgresOptions;
use super::session::Session;
use super::trouble::of_connecting;

/// The time after which a connection is checked if nothing comes, or its packets are not answered.
const SILENCE: Duration = Duration::from_secs(30);

/// The time that a statement waits for a row that another node is writing.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A client, and the work that moves its bytes.
type Connected = Result<(Client, Boxed<()>), Error>;

pub(super) struct Database {
    /// The URL without the password, for the log.
    pub(super) place: Arc<str>,
    pub(super) options: PostgresOptions,
    connect: Box<dyn Fn() -> Boxed<Connected> + Send + Sync>,
    /// Noted in the log.
    is_away: AtomicBool,
}

impl Database {
    pub(super) fn new<T>(url: &str, options: PostgresOptions, tls: T) -> Result<Self, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send + 'static,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let mut config = Config::from_str(url).map_err(|error| {
            let causes = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let text = format!(
                "the URL of the store is invalid: {error}{}: it is such as \
                 postgres://user:password@host:5432/database",
                causes.unwrap_or_default()
            );
            StoreError::new(StoreErrorKind::Other, text)
        })?;
        if config.get_application_name().is_none() {
            config.application_name("playfield");
        }
        config.keepalives_idle(SILENCE);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        let place = place(&config).into();
        let connect = move || -> Boxed<Connected> {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, connection) = config.connect(tls).await?;
                // Statements receive its errors, too.
                let driver: Boxed<()> = Box::pin(async move { drop(connection.await) });
                Ok((client, driver))
            })
        };
        Ok(Self { place, options, connect: Box::new(connect), is_away: AtomicBool::new(false) })
    }

    /// Connects, and prepares the statements.
    pub(super) async fn connect(&self) -> Result<Session, StoreError> {
        self.session(async |_| Ok(())).await
    }

    /// Connects, and makes the tables first.
    pub(super) async fn connect_first(&self) -> Result<Session, StoreError> {
        self.session(async |client| super::migrations::migrate(client, &self.place).await).await
    }

    async fn session(
        &self,
        first: impl AsyncFnOnce(&mut Client) -> Result<(), StoreError>,
    ) -> Result<Session, StoreError> {
        let failed = |error: &Error| of_connecting(&self.place, error);
        let connecting = async {
            let (mut client, driver) = (self.connect)().await.map_err(|error| failed(&error))?;
            let driver = tokio::spawn(driver).abort_handle();
            let settings = self.settings();
            client.batch_execute(&settings).await.map_err(|error| failed(&error))?;
            first(&mut client).await?;
            let (place, options) = (Arc::clone(&self.place), &self.options);
            let session = Session::new(client, driver, place, options.statement_timeout);
            session.await.map_err(|error| failed(&error))
        };
        let limit = self.options.connect_timeout;
        let session = timeout(limit, connecting).await.map_err(|_| {
            let text = format!(
                "can't open the store {}: no answer within {limit:?}: check the host and the port, \
                 and the network to it",
                self.place
            );
            StoreError::new(StoreErrorKind::Away, text)
        })??;
        if self.is_away.swap(false, Ordering::Relaxed) {
            log::info!("the store {} is back", self.place);
        }
        Ok(session)
    }

    /// Notes that the database is away, if it was not.
    pub(super) fn log_away(&self, error: &StoreError) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            log::error!("the store {} is away, and saves wait for it: {error}", self.place);
        }
    }

    /// The settings of a session. A join of rows with what a statement was given is always by
    /// index, also where the database has not counted the rows of a new table yet.
    fn settings(&self) -> String {
        let statement = self.options.statement_timeout.as_millis();
        let lock = LOCK_TIMEOUT.min(self.options.statement_timeout).as_millis();
        format!(
            "set statement_timeout = {statement}; set lock_timeout = {lock}; \
             set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off; \
             set jit = off; set client_min_messages = warning"
        )
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |number: usize| ports.get(number).or(ports.first()).copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().enumerate().map(|(number, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(number)),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<String> = hosts.collect();
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{name}", hosts.join(","))
}
