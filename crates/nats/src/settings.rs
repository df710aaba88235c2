//! The settings of the connection to the engine.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::ServerAddr;

use crate::ConnectError;
use crate::names::is_valid_cluster;

/// Settings of the connection to the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The URLs of servers, separated by commas: `nats://host:4222`, `tls://host:4222`, with
    /// `user:password@` or `token@` before the host where that is needed.
    pub servers: String,
    /// The name of the cluster: 1 to 32 of `a` to `z`, `0` to `9` and `_`. Clusters of different
    /// names can share an engine.
    pub cluster: String,
    /// The name of this connection in the lists of the server.
    pub name: String,
    /// A file of credentials, as `nsc` and `nats` write it.
    pub credentials: Option<PathBuf>,
    /// The number of servers that keep each record, 1 to 5. 0: three if the engine is a cluster,
    /// else one.
    pub replicas: usize,
    /// The most bytes that the records take in each server.
    pub bytes_max: u64,
    /// The time for which the first connection is tried.
    pub patience: Duration,
}

impl Settings {
    /// The settings for these servers and this cluster, with the defaults.
    #[must_use]
    pub fn new(servers: impl Into<String>, cluster: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            cluster: cluster.into(),
            name: "playfield".to_owned(),
            credentials: None,
            replicas: 0,
            bytes_max: 256 << 20,
            patience: Duration::from_secs(10),
        }
    }

    /// The addresses of the servers.
    pub(crate) fn addresses(&self) -> Result<Vec<ServerAddr>, ConnectError> {
        if !is_valid_cluster(&self.cluster) {
            return Err(ConnectError::Cluster(self.cluster.clone()));
        }
        if self.replicas > 5 {
            return Err(ConnectError::Replicas { wanted: self.replicas, reason: None });
        }
        let urls = self.servers.split(',').map(str::trim).filter(|url| !url.is_empty());
        let addresses = urls.map(address).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() {
            return Err(ConnectError::Url {
                url: self.servers.clone(),
                reason: "it names no server".to_owned(),
            });
        }
        Ok(addresses)
    }
}

fn address(url: &str) -> Result<ServerAddr, ConnectError> {
    let wrong = |reason: String| ConnectError::Url { url: without_secrets(url), reason };
    let address: ServerAddr = url.parse().map_err(|error| wrong(format!("{error}")))?;
    if address.is_websocket() {
        return Err(wrong("WebSocket is not supported here".to_owned()));
    }
    if address.host().is_empty() || address.port() == 0 {
        return Err(wrong("it has no host, or the port 0".to_owned()));
    }
    Ok(address)
}

/// A URL without its user and password, for texts.
pub(crate) fn without_secrets(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => {
            format!("{}…{}", &url[..scheme + 3], &url[at..])
        }
        (None, Some(at)) => format!("…{}", &url[at..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_one_by_one() {
        let settings = |servers: &str| Settings::new(servers, "game").addresses();
        let hosts = |servers: &str| -> Vec<String> {
            let addresses = settings(servers).unwrap();
            addresses.iter().map(|a| format!("{}:{}", a.host(), a.port())).collect()
        };
        assert_eq!(hosts("nats://a:1, tls://[::1] ,b"), ["a:1", "::1:4222", "b:4222"]);
        for (servers, text) in [
            ("", "the engine's URL  can't be used: it names no server; name servers like"),
            ("http://a", "the engine's URL http://a can't be used: invalid scheme"),
            ("ws://a", "WebSocket is not supported here"),
            ("nats://a:99999", "can't be used: "),
            (
                "nats://me:secret@a:0",
                "URL nats://…@a:0 can't be used: it has no host, or the port 0",
            ),
        ] {
            let error = settings(servers).unwrap_err().to_string();
            assert!(error.contains(text), "{servers}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let error = Settings::new("nats://a", "My.Game").addresses().unwrap_err().to_string();
        assert!(error.contains("My.Game"), "{error}");
    }
}
