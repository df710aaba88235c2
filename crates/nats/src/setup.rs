//! Checks of the engine, and making what is missing, before it is used.

use async_nats::{Client, HeaderMap, Request, RequestErrorKind};
use playfield_cluster::Record;
use serde::de::DeserializeOwned;

use crate::api::{self, Failure, Found, StreamConfig, StreamInfo, Written};
use crate::connection::Connection;
use crate::names::Names;
use crate::{ConnectError, MESSAGE_MAX, Settings};

/// The number of the layout of records.
const LAYOUT: u32 = 1;
/// The record with the number of the layout.
const FORMAT: &str = "meta.format";
/// The record with the cluster's secret.
const SECRET: &str = "meta.secret";
/// The first version whose conditional writes are sound across changes of the leader.
const VERSION_MIN: (u32, u32) = (2, 11);

/// Random bytes that all nodes of a cluster share, and no one else.
pub(crate) type Secret = [u8; 32];

/// Checks the server, makes what is missing, and returns the cluster's secret. An engine that was
/// wiped gets the secret that is known.
pub(crate) async fn check(
    connection: &Connection,
    names: &Names,
    settings: &Settings,
    known: Option<&Secret>,
) -> Result<Secret, ConnectError> {
    check_server(connection)?;
    let setup = Setup { connection, names };
    let is_clustered = connection.client.server_info().cluster.is_some();
    setup.check_jetstream().await?;
    let replicas = match (settings.replicas, is_clustered) {
        (0, true) => 3,
        (0, false) => 1,
        (replicas, _) => replicas,
    };
    if replicas == 1 && known.is_none() {
        log::warn!(
            "one server of the engine keeps the records of the cluster: while it is away, rooms by \
             key pause; with three servers, they don't"
        );
    }
    let bytes_max = i64::try_from(settings.bytes_max).unwrap_or(i64::MAX);
    let wanted = StreamConfig::new(&names.stream, names.bucket(), replicas, bytes_max);
    setup.check_stream(&wanted).await?;
    setup.check_layout().await?;
    setup.secret(known).await
}

/// Checks what a server says of itself.
pub(crate) fn check_server(connection: &Connection) -> Result<(), ConnectError> {
    let info = connection.client.server_info();
    if !is_recent(&info.version) {
        return Err(ConnectError::TooOld { version: info.version });
    }
    if info.max_payload < MESSAGE_MAX {
        return Err(ConnectError::SmallMessages { max: info.max_payload });
    }
    Ok(())
}

/// Returns whether a version is [`VERSION_MIN`] or later.
fn is_recent(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= VERSION_MIN)
}

struct Setup<'a> {
    connection: &'a Connection,
    names: &'a Names,
}

impl Setup<'_> {
    async fn check_jetstream(&self) -> Result<(), ConnectError> {
        let what = "the state of JetStream";
        let no_jetstream = |reason: String| ConnectError::NoJetStream {
            server: self.connection.server.clone(),
            reason,
        };
        let request = Request::new();
        match self.send(what, "$JS.API.INFO".to_owned(), request).await? {
            None => Err(no_jetstream("nothing answers for it".to_owned())),
            Some(StreamInfo { error: Some(error), .. })
                if api::NOT_ENABLED.contains(&error.err_code) =>
            {
                Err(no_jetstream(error.description))
            }
            Some(StreamInfo { error: Some(error), .. }) => Err(refused(what, error)),
            Some(_) => Ok(()),
        }
    }

    async fn check_stream(&self, wanted: &StreamConfig) -> Result<(), ConnectError> {
        let stream = &self.names.stream;
        let mut found = self.stream("INFO", String::new()).await?;
        if found.error.as_ref().is_some_and(|error| error.err_code == api::NO_STREAM) {
            let config = serde_json::to_string(wanted).expect("settings are JSON");
            found = self.stream("CREATE", config).await?;
            match &found.error {
                None => log::info!(
                    "made the bucket {} of the engine, with {} replicas",
                    self.names.bucket(),
                    wanted.num_replicas
                ),
                // Another node made it, with other limits.
                Some(error) if error.err_code == api::NAME_TAKEN => {
                    found = self.stream("INFO", String::new()).await?;
                }
                Some(_) => {}
            }
        }
        let what = format!("the stream {stream}");
        let wanted_replicas = wanted.num_replicas;
        match (found.error, found.config) {
            (Some(error), _) if error.err_code == api::NOT_CLUSTERED => {
                let reason = Some(error.description);
                Err(ConnectError::Replicas { wanted: wanted_replicas, reason })
            }
            (Some(error), _) if error.err_code == api::TOO_FEW_SERVERS => {
                Err(ConnectError::NotReady {
                    what,
                    reason: format!(
                        "{}; it needs {wanted_replicas} servers with JetStream, or set other \
                         replicas",
                        error.description
                    ),
                })
            }
            (Some(error), _) => Err(refused(&what, error)),
            (None, None) => Err(nonsense(&what)),
            (None, Some(config)) => {
                if config.num_replicas < wanted.num_replicas {
                    log::warn!(
                        "{} servers keep each record of the cluster, and {} were asked for: \
                         `nats stream edit {stream} --replicas {}` changes it",
                        config.num_replicas,
                        wanted.num_replicas,
                        wanted.num_replicas
                    );
                }
                match config.difference(wanted) {
                    None => Ok(()),
                    Some(difference) => {
                        let bucket = self.names.bucket().to_owned();
                        Err(ConnectError::Bucket { bucket, difference })
                    }
                }
            }
        }
    }

    async fn check_layout(&self) -> Result<(), ConnectError> {
        let ours = LAYOUT.to_string();
        let found = self.read_or_create(FORMAT, ours.as_bytes()).await?;
        if found == ours.as_bytes() {
            return Ok(());
        }
        Err(ConnectError::Layout {
            bucket: self.names.bucket().to_owned(),
            found: String::from_utf8_lossy(&found[..found.len().min(32)]).into_owned(),
            ours: LAYOUT,
        })
    }

    async fn secret(&self, known: Option<&Secret>) -> Result<Secret, ConnectError> {
        let mut secret = Secret::default();
        match known {
            Some(known) => secret = *known,
            None => getrandom::fill(&mut secret).map_err(|error| ConnectError::Refused {
                what: format!("the record {SECRET}"),
                reason: format!("this system gives no random numbers: {error}"),
            })?,
        }
        let found = self.read_or_create(SECRET, &secret).await?;
        found.as_slice().try_into().map_err(|_| ConnectError::Refused {
            what: format!("the record {SECRET}"),
            reason: format!("it has {} bytes, and must have 32: purge it", found.len()),
        })
    }

    /// The value of a record, which is written if it has none.
    async fn read_or_create(&self, key: &str, value: &[u8]) -> Result<Vec<u8>, ConnectError> {
        let what = format!("the record {key}");
        // The second read finds what another node has written meanwhile.
        for _ in 0..3 {
            let record = self.read(&what, key).await?;
            if let Some(value) = record.value {
                return Ok(value);
            }
            let mut headers = HeaderMap::new();
            headers.insert(api::EXPECTED, record.revision.to_string());
            let request = Request::new().headers(headers).payload(value.to_vec().into());
            let written: Option<Written> =
                self.send(&what, self.names.record(key), request).await?;
            match written {
                Some(Written { error: None, .. }) => return Ok(value.to_vec()),
                Some(Written { error: Some(error), .. })
                    if !api::WRONG_SEQUENCE.contains(&error.err_code) =>
                {
                    return Err(refused(&what, error));
                }
                _ => {}
            }
        }
        Err(ConnectError::NotReady { what, reason: "nothing takes writes".to_owned() })
    }

    async fn read(&self, what: &str, key: &str) -> Result<Record, ConnectError> {
        let subject = format!("$JS.API.STREAM.MSG.GET.{}", self.names.stream);
        let payload = api::last_by_subject(&self.names.record(key));
        match self.send::<Found>(what, subject, Request::new().payload(payload.into())).await? {
            Some(Found { error: Some(error), .. }) if error.err_code == api::NO_MESSAGE => {
                Ok(Record::default())
            }
            Some(Found { error: Some(error), .. }) => Err(refused(what, error)),
            Some(found) => found.record().ok_or_else(|| nonsense(what)),
            None => Err(not_ready(what)),
        }
    }

    async fn stream(&self, operation: &str, payload: String) -> Result<StreamInfo, ConnectError> {
        let what = format!("the stream {}", self.names.stream);
        let subject = format!("$JS.API.STREAM.{operation}.{}", self.names.stream);
        let request = Request::new().payload(payload.into());
        self.send(&what, subject, request).await?.ok_or_else(|| not_ready(&what))
    }

    /// Sends a request. `None` if nothing takes it.
    async fn send<T: DeserializeOwned>(
        &self,
        what: &str,
        subject: String,
        request: Request,
    ) -> Result<Option<T>, ConnectError> {
        let client: &Client = &self.connection.client;
        let message = match client.send_request(subject, request).await {
            Ok(message) => message,
            Err(error) if error.kind() == RequestErrorKind::NoResponders => return Ok(None),
            Err(error) => {
                let what = what.to_owned();
                return Err(match self.connection.reports.refusal() {
                    Some(reason) => ConnectError::Refused { what, reason },
                    None => ConnectError::NotReady { what, reason: error.to_string() },
                });
            }
        };
        serde_json::from_slice(&message.payload).map(Some).map_err(|_| nonsense(what))
    }
}

fn refused(what: &str, error: Failure) -> ConnectError {
    let (what, reason) = (what.to_owned(), error.description);
    match api::PASSING.contains(&error.err_code) {
        true => ConnectError::NotReady { what, reason },
        false => ConnectError::Refused { what, reason },
    }
}

fn not_ready(what: &str) -> ConnectError {
    ConnectError::NotReady { what: what.to_owned(), reason: "nothing answers for it".to_owned() }
}

fn nonsense(what: &str) -> ConnectError {
    let reason = "its answer can't be read; a server of another kind, or version?".to_owned();
    ConnectError::Refused { what: what.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::is_recent;

    #[test]
    fn versions_are_compared_by_number() {
        for version in ["2.11.0", "2.15.2", "3.0.0", "2.12.0-RC.1", "2.11"] {
            assert!(is_recent(version), "{version}");
        }
        for version in ["2.9.10", "2.10.29", "1.4.1", "", "2", "beta", "2.x"] {
            assert!(!is_recent(version), "{version}");
        }
    }
}
