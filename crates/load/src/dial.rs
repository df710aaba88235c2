//! The node's address, and those that connections come from.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use playfield_client::Error;
use playfield_client::poll::{self, Dialer};
use playfield_client::session::{Patience, Url};

use crate::name::{player_name_of, token_of};
use crate::settings::{LoadError, Settings};

/// The number of connections that share a source address. Linux assigns about 28,000 ports to one,
/// and looks for a free one slowly once half of them are taken.
pub(crate) const PER_SOURCE: usize = 12_000;

/// The node, and the addresses to connect from.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) dialer: Arc<Dialer>,
    /// Other nodes, to which joins were redirected.
    others: Mutex<HashMap<Url, Arc<Dialer>>>,
    sources: Vec<IpAddr>,
}

impl Dial {
    pub(crate) fn new(settings: &Settings) -> Result<Self, LoadError> {
        let (url, root) = (&settings.url, settings.root.as_deref());
        let refuse = |why: String| match root {
            Some(path) => LoadError::Usage(format!("--root-certificate {}: {why}", path.display())),
            None => LoadError::Usage(why),
        };
        let roots = root.filter(|_| url.is_secure).map(std::fs::read).transpose();
        let roots = Vec::from_iter(roots.map_err(|error| refuse(error.to_string()))?);
        let dialer = Dialer::to(url.clone(), &roots);
        let mut dialer = dialer.map_err(|error| refuse(error.to_string()))?;
        let address = dialer.resolve();
        let address = address.map_err(|error| LoadError::unreachable(&url.authority, &error))?;
        let sources = match &settings.sources[..] {
            [] => sources_for(address, settings.connections),
            given => given.to_vec(),
        };
        Ok(Self { dialer: Arc::new(dialer), others: Mutex::default(), sources })
    }

    /// The dialer of another node.
    pub(crate) fn another(&self, url: &Url) -> Result<Arc<Dialer>, String> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dialer) = others.get(url) {
            return Ok(Arc::clone(dialer));
        }
        let mut dialer = self.dialer.another(url.clone()).map_err(|error| explain(&error))?;
        dialer.resolve().map_err(|error| error.to_string())?;
        let dialer = Arc::new(dialer);
        others.insert(url.clone(), Arc::clone(&dialer));
        Ok(dialer)
    }

    /// The settings of the connection with this number, whose script has this token.
    pub(crate) fn settings(
        &self,
        settings: &Settings,
        number: usize,
        token: Option<&str>,
    ) -> poll::Settings {
        poll::Settings {
            name: player_name_of(&settings.name, number),
            token: token_of(token.map_or(&*settings.token, str::as_bytes), number),
            deflate: settings.deflate,
            is_resumable: settings.resumable,
            redirects: true,
            patience: Patience { timeout: settings.timeout, ..Patience::default() },
            source: self.source(number),
            ..poll::Settings::default()
        }
    }

    /// The source address of the connection with this number, if it matters.
    fn source(&self, number: usize) -> Option<IpAddr> {
        let index = (number / PER_SOURCE).checked_rem(self.sources.len())?;
        Some(self.sources[index])
    }
}

/// An error with its cause.
pub(crate) fn explain(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// On loopback every address of 127.0.0.0/8 is this machine's; elsewhere the system chooses.
fn sources_for(address: SocketAddr, connections: usize) -> Vec<IpAddr> {
    let is_many = connections > PER_SOURCE;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_loopback() && is_many => {
            (0..connections.div_ceil(PER_SOURCE)).map(loopback).collect()
        }
        _ => Vec::new(),
    }
}

/// 127.0.0.1 and those after it, without those that end in 0 or 255.
fn loopback(number: usize) -> IpAddr {
    Ipv4Addr::new(127, 0, (number / 254) as u8, (number % 254 + 1) as u8).into()
}

#[cfg(test)]
mod tests {
    use super::{PER_SOURCE, sources_for};

    #[test]
    fn each_loopback_address_is_the_source_of_so_many_connections() {
        let node = "127.0.0.1:1".parse().unwrap();
        assert_eq!(sources_for(node, PER_SOURCE).len(), 0);
        let sources = sources_for(node, 254 * PER_SOURCE + 1);
        assert_eq!(sources.len(), 255);
        assert_eq!(sources[0].to_string(), "127.0.0.1");
        assert_eq!(sources[254].to_string(), "127.0.1.1");
        assert!(sources_for("10.0.0.1:1".parse().unwrap(), 10 * PER_SOURCE).is_empty());
    }
}
