//! The reasons why the engine can't be used.

use std::fmt;
use std::path::PathBuf;

/// The reason why the engine can't be used, with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// A name that no cluster can have.
    Cluster(String),
    /// A URL that can't be used.
    Url {
        /// The URL, without a password.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A file of credentials that can't be used.
    Credentials {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// No server could be reached.
    Unreachable {
        /// The servers that were tried, with the reasons.
        tried: String,
    },
    /// A server whose certificate can't be trusted.
    Certificate {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// A server that refused the credentials.
    Unauthorized {
        /// The server.
        server: String,
    },
    /// A server of a version that is too old.
    TooOld {
        /// Its version.
        version: String,
    },
    /// A server without JetStream.
    NoJetStream {
        /// The server.
        server: String,
        /// The server's own words.
        reason: String,
    },
    /// A server that takes only small messages.
    SmallMessages {
        /// Its limit, in bytes.
        max: usize,
    },
    /// More replicas than the engine has servers.
    Replicas {
        /// The replicas that were wanted.
        wanted: usize,
        /// The engine's own words.
        reason: Option<String>,
    },
    /// A bucket whose settings don't keep records as they must be.
    Bucket {
        /// The bucket.
        bucket: String,
        /// The setting, what it is, and what it must be.
        difference: (&'static str, String, String),
    },
    /// Records of another layout.
    Layout {
        /// The bucket.
        bucket: String,
        /// The number of the layout that was found.
        found: String,
        /// The number of the layout that this build has.
        ours: u32,
    },
    /// A request that the engine refused.
    Refused {
        /// The thing that was refused.
        what: String,
        /// The engine's own words.
        reason: String,
    },
    /// An engine that is not ready: it starts, or elects a leader.
    NotReady {
        /// The thing that was asked for.
        what: String,
        /// The engine's own words, or those of the connection.
        reason: String,
    },
}

impl ConnectError {
    /// Returns whether another attempt can't change it.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Unreachable { .. } | Self::NotReady { .. })
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(name) => write!(
                f,
                "a cluster can't be named {name:?}: use 1 to 32 of `a` to `z`, `0` to `9` and `_`"
            ),
            Self::Url { url, reason } => write!(
                f,
                "the engine's URL {url} can't be used: {reason}; name servers like \
                 nats://nats-1:4222,nats://nats-2:4222"
            ),
            Self::Credentials { file, reason } => write!(
                f,
                "the file of credentials {} can't be used: {reason}; name one that \
                 `nsc generate creds` has written",
                file.display()
            ),
            Self::Unreachable { tried } => write!(
                f,
                "no server of the engine can be reached ({tried}): check that nats-server runs \
                 there, and that no firewall is between"
            ),
            Self::Certificate { server, reason } => write!(
                f,
                "the certificate of {server} can't be trusted ({reason}): use the host name that \
                 is in it, and add its issuer's certificate to those of this system, or name a file \
                 with it in the environment variable SSL_CERT_FILE"
            ),
            Self::Unauthorized { server } => write!(
                f,
                "{server} refused the credentials: check the user and password in the URL, or the \
                 file of credentials, and that the account is the one of the nodes"
            ),
            Self::TooOld { version } => write!(
                f,
                "this is nats-server {version}, and Playfield needs 2.11 or later, because earlier \
                 ones could let two conditional writes of one record through: update it, 2.15 is \
                 what is tested"
            ),
            Self::NoJetStream { server, reason } => write!(
                f,
                "{server} has no JetStream ({reason}): start nats-server with `--jetstream` and \
                 `--store_dir`, and enable JetStream for the account of the nodes"
            ),
            Self::SmallMessages { max } => write!(
                f,
                "the engine takes messages of {max} bytes at most, and nodes send up to \
                 {}: raise `max_payload` of nats-server, whose default is 1 MB",
                crate::MESSAGE_MAX
            ),
            Self::Replicas { wanted, reason } => {
                write!(f, "the records can't be kept by {wanted} servers")?;
                if let Some(reason) = reason {
                    write!(f, " ({reason})")?;
                }
                f.write_str(
                    ": start as many servers in the engine's cluster, or set the replicas to 1 \
                     for one server, and to 3 or 5 for more",
                )
            }
            Self::Bucket { bucket, difference: (name, is, must) } => write!(
                f,
                "the bucket {bucket} of the engine was not made by Playfield, or was changed: \
                 {name} is {is} and must be {must}; change that by `nats stream edit KV_{bucket}`, \
                 or name the cluster otherwise"
            ),
            Self::Layout { bucket, found, ours } => write!(
                f,
                "the records in the bucket {bucket} are of layout {found}, and this build has \
                 layout {ours}: use a build of that layout, or name the cluster otherwise"
            ),
            Self::Refused { what, reason } => write!(
                f,
                "the engine refuses {what}: {reason}; check the space and the limits of JetStream, \
                 and the permissions of the nodes' account"
            ),
            Self::NotReady { what, reason } => write!(
                f,
                "the engine is not ready for {what}: {reason}; check that more than half of its \
                 servers run and reach each other, and that the nodes' account may do it"
            ),
        }
    }
}

impl std::error::Error for ConnectError {}
