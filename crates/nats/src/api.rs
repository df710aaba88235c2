//! The requests and answers of JetStream that are needed, as JSON.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use playfield_cluster::Record;
use serde::{Deserialize, Serialize};

/// The number of the error that no message has the subject.
pub(crate) const NO_MESSAGE: u32 = 10037;
/// The number of the error that the stream does not exist.
pub(crate) const NO_STREAM: u32 = 10059;
/// The number of the error that a stream has this name.
pub(crate) const NAME_TAKEN: u32 = 10058;
/// The numbers of the errors that the last sequence of the subject is another one, or will be.
pub(crate) const WRONG_SEQUENCE: [u32; 2] = [10071, 10164];
/// The number of the error that the server is none of a cluster, so has no replicas.
pub(crate) const NOT_CLUSTERED: u32 = 10074;
/// The number of the error that a cluster has too few servers for the replicas.
pub(crate) const TOO_FEW_SERVERS: u32 = 10005;
/// The numbers of the errors that pass: an election, a server that starts.
pub(crate) const PASSING: [u32; 4] = [10004, 10008, 10009, 10163];
/// The numbers of the errors that JetStream is off.
pub(crate) const NOT_ENABLED: [u32; 2] = [10039, 10076];

/// The header of the condition of a write.
pub(crate) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// The header that makes a message the removal of a record.
pub(crate) const OPERATION: &str = "KV-Operation";
/// The value of [`OPERATION`] of a removal.
pub(crate) const PURGE: &str = "PURGE";
/// The header, with `sub`, that removes the earlier messages of the subject.
pub(crate) const ROLLUP: &str = "Nats-Rollup";
/// The header of the time after which a message goes.
pub(crate) const TTL: &str = "Nats-TTL";

/// An error of JetStream.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Failure {
    #[serde(default)]
    pub(crate) err_code: u32,
    #[serde(default)]
    pub(crate) description: String,
}

/// The answer to a write.
#[derive(Debug, Deserialize)]
pub(crate) struct Written {
    pub(crate) error: Option<Failure>,
    #[serde(default)]
    pub(crate) seq: u64,
}

/// The answer to a read.
#[derive(Debug, Deserialize)]
pub(crate) struct Found {
    pub(crate) error: Option<Failure>,
    message: Option<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    seq: u64,
    hdrs: Option<String>,
    data: Option<String>,
}

impl Found {
    /// The record that was found, unless the answer makes no sense.
    pub(crate) fn record(self) -> Option<Record> {
        let Message { seq, hdrs, data } = self.message?;
        let headers = STANDARD.decode(hdrs.unwrap_or_default()).ok()?;
        // A value has none of these headers: see `OPERATION`; and what the server itself writes in
        // the place of a removed message says `Nats-Marker-Reason`.
        let is_removal = [OPERATION, "Nats-Marker-Reason"]
            .iter()
            .any(|name| headers.windows(name.len()).any(|part| part == name.as_bytes()));
        let value = match is_removal {
            true => None,
            false => Some(STANDARD.decode(data.unwrap_or_default()).ok()?),
        };
        Some(Record { revision: seq, value })
    }
}

/// The request for the last message of a subject.
pub(crate) fn last_by_subject(subject: &str) -> String {
    serde_json::json!({ "last_by_subj": subject }).to_string()
}

/// The request for the names of subjects, some thousand at once.
pub(crate) fn subjects(filter: &str, offset: usize) -> String {
    serde_json::json!({ "subjects_filter": filter, "offset": offset }).to_string()
}

/// The answer to a request about a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamInfo {
    pub(crate) error: Option<Failure>,
    pub(crate) config: Option<StreamConfig>,
    #[serde(default)]
    pub(crate) state: StreamState,
    /// The number of all subjects of the filter.
    #[serde(default)]
    pub(crate) total: usize,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct StreamState {
    #[serde(default)]
    pub(crate) subjects: Option<HashMap<String, u64>>,
}

/// The settings of the stream of records, by which it is made and compared.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct StreamConfig {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: String,
    pub(crate) storage: String,
    pub(crate) discard: String,
    pub(crate) num_replicas: usize,
    pub(crate) max_msgs_per_subject: i64,
    pub(crate) max_bytes: i64,
    /// Reads by any replica, which may be old.
    #[serde(default)]
    pub(crate) allow_direct: bool,
    #[serde(default)]
    pub(crate) allow_rollup_hdrs: bool,
    #[serde(default)]
    pub(crate) allow_msg_ttl: bool,
    #[serde(default)]
    pub(crate) sealed: bool,
}

impl StreamConfig {
    /// The settings that compare-and-set needs.
    pub(crate) fn new(stream: &str, bucket: &str, replicas: usize, max_bytes: i64) -> Self {
        Self {
            name: stream.to_owned(),
            description: "records of a Playfield cluster: don't change them by hand".to_owned(),
            subjects: vec![format!("$KV.{bucket}.>")],
            retention: "limits".to_owned(),
            storage: "file".to_owned(),
            discard: "new".to_owned(),
            num_replicas: replicas,
            max_msgs_per_subject: 1,
            max_bytes,
            allow_direct: false,
            allow_rollup_hdrs: true,
            allow_msg_ttl: true,
            sealed: false,
        }
    }

    /// The first difference from these settings with which the records can't be relied on: the name
    /// of a setting, its value, and the value that it must have.
    pub(crate) fn difference(&self, wanted: &Self) -> Option<(&'static str, String, String)> {
        fn pair<T: std::fmt::Debug + PartialEq>(a: &T, b: &T) -> Option<(String, String)> {
            (a != b).then(|| (format!("{a:?}"), format!("{b:?}")))
        }
        let pairs = [
            ("subjects", pair(&self.subjects, &wanted.subjects)),
            ("retention", pair(&self.retention, &wanted.retention)),
            ("discard", pair(&self.discard, &wanted.discard)),
            (
                "max_msgs_per_subject",
                pair(&self.max_msgs_per_subject, &wanted.max_msgs_per_subject),
            ),
            ("allow_direct", pair(&self.allow_direct, &wanted.allow_direct)),
            ("allow_rollup_hdrs", pair(&self.allow_rollup_hdrs, &wanted.allow_rollup_hdrs)),
            ("allow_msg_ttl", pair(&self.allow_msg_ttl, &wanted.allow_msg_ttl)),
            ("sealed", pair(&self.sealed, &wanted.sealed)),
        ];
        pairs.into_iter().find_map(|(name, pair)| pair.map(|(is, must)| (name, is, must)))
    }
}
