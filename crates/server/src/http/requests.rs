//! Requests under way, of the node and of each address.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::addresses::{Address, BytesHeld, RequestUnderWay};
use crate::config::Config;
use crate::counted::Counted;

/// Requests that wait for a handler or a file, or whose answer is being sent.
pub(crate) struct Requests {
    load: Arc<AtomicUsize>,
    requests_max: usize,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// `http.requests.total` requests are under way.
    Node,
    /// `http.requests.per_address` requests of the client's address are.
    Address,
}

/// Counts one request, and holds the bytes of its body.
pub(crate) struct UnderWay {
    _of_node: Counted,
    _of_address: RequestUnderWay,
    _body: BytesHeld,
}

impl Requests {
    pub(crate) fn new(config: &Config) -> Self {
        Self { load: Arc::default(), requests_max: config.http.requests.total }
    }

    /// The number of requests under way.
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Counts a request from this address, which has sent this body.
    pub(crate) fn admit(&self, address: Arc<Address>, body: BytesHeld) -> Result<UnderWay, Full> {
        let of_address = address.admit_request()?;
        let of_node = Counted::new(&self.load, self.requests_max).ok_or(Full::Node)?;
        Ok(UnderWay { _of_node: of_node, _of_address: of_address, _body: body })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::{Full, Requests};
    use crate::addresses::{Addresses, BytesHeld};
    use crate::config::{Config, Quota};
    use crate::proxy::Client;

    fn client(text: &str) -> Client {
        Client::named(SocketAddr::new(text.parse().unwrap(), 1))
    }

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let mut config = Config::default();
        config.http.requests = Quota { total: 5, per_address: 2 };
        let (requests, addresses) = (Requests::new(&config), Addresses::new(&config));
        let admit = |text| {
            let address = addresses.of(client(text), Duration::ZERO);
            requests.admit(address.clone(), BytesHeld::new(address))
        };
        let mut held = Vec::new();
        for (one, same) in [("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8::1", "2001:db8::ffff:1")] {
            held.push(admit(one).ok().unwrap());
            held.push(admit(same).ok().unwrap());
            assert_eq!(admit(one).err(), Some(Full::Address));
        }
        held.push(admit("2001:db8:0:1::1").ok().unwrap());
        assert_eq!(admit("10.0.0.2").err(), Some(Full::Node));
        held.remove(0);
        held.push(admit("10.0.0.1").ok().unwrap());
        held.clear();
        assert_eq!(requests.load(), 0);
    }

    #[test]
    fn bodies_count_against_the_memory_of_their_address() {
        let mut config = Config::default();
        config.limits.memory.per_address = 100;
        let addresses = Addresses::new(&config);
        let held = || BytesHeld::new(addresses.of(client("10.0.0.1"), Duration::ZERO));
        let (mut one, mut two) = (held(), held());
        assert!(one.adds(60) && two.adds(40));
        assert!(!two.adds(1));
        drop(one);
        assert!(two.adds(1));
    }
}
