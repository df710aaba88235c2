//! The node to dial: the one that a redirect has named, the one that has the session, or the one
//! that the session began with.

use std::sync::Arc;

use super::redirects::REDIRECTS_MAX;
use super::{Reach, Session, Url};

/// The addresses at which a session may go on.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The connection that the session began with; `None` if this client follows no redirects.
    first: Option<Reach>,
    /// The node that was dialed last; `None`: by the URL that the session began with.
    dialed: Option<Url>,
    /// The node that has the session, in its own words, and which of these this client takes.
    node: Arc<[Url]>,
    chosen: Option<Url>,
    /// The node that a redirect has named, which is dialed next.
    redirect: Option<Url>,
    /// The number of redirects in a row.
    redirects: u32,
    /// The number of attempts since the last welcome.
    attempts: u32,
}

impl Addresses {
    pub(super) fn new(first: Option<Reach>) -> Self {
        Self {
            first,
            dialed: None,
            node: Arc::new([]),
            chosen: None,
            redirect: None,
            redirects: 0,
            attempts: 0,
        }
    }

    /// The present connection, or the last.
    fn reach(&self) -> Option<Reach> {
        let first = self.first?;
        Some(self.dialed.as_ref().map_or(first, |url| Reach::by(url, first.has_tls)))
    }

    /// A node with these addresses has the session.
    pub(super) fn welcomed(&mut self, addresses: &[String]) {
        self.node = addresses.iter().filter_map(|address| address.parse().ok()).collect();
        self.chosen = self.reach().and_then(|reach| reach.choose(addresses));
        (self.redirects, self.attempts) = (0, 0);
    }

    /// The hello was answered by a redirect. Returns whether it is followed.
    pub(super) fn redirected(&mut self, addresses: &[String]) -> bool {
        if self.redirects < REDIRECTS_MAX {
            self.redirects += 1;
            self.redirect = self.reach().and_then(|reach| reach.choose(addresses));
        }
        self.redirect.is_some()
    }

    /// An attempt has failed.
    pub(super) fn failed(&mut self) {
        self.redirects = 0;
    }

    /// Picks the node for the next attempt. The node that had the session comes first. It may be
    /// gone, so every other attempt is at the URL that the session began with.
    pub(super) fn next(&mut self) {
        self.dialed = self.redirect.take().or_else(|| {
            self.attempts += 1;
            self.chosen.clone().filter(|_| self.attempts % 2 == 1)
        });
    }
}

impl Session {
    /// The node to dial for [`Step::Dial`](super::Step::Dial); `None`: the URL that the session
    /// began with.
    #[must_use]
    pub fn dial_to(&self) -> Option<&Url> {
        self.reconnect.addresses.dialed.as_ref()
    }

    /// The way of the present connection. `None` if this client follows no redirects.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        self.reconnect.addresses.reach()
    }

    /// The addresses of the node that has the session, in its own words; none if it is in no
    /// cluster, or this client follows no redirects. A session that is there serves a redirect to
    /// any of them.
    #[must_use]
    pub fn addresses(&self) -> &Arc<[Url]> {
        &self.reconnect.addresses.node
    }
}

#[cfg(test)]
mod tests {
    use super::{Addresses, Reach};

    fn began_with(url: &str) -> Addresses {
        Addresses::new(Some(Reach::by(&url.parse().unwrap(), true)))
    }

    /// The node of the next attempt.
    fn next(addresses: &mut Addresses) -> Option<String> {
        addresses.next();
        addresses.dialed.as_ref().map(ToString::to_string)
    }

    fn some(url: &str) -> Option<String> {
        Some(url.to_owned())
    }

    #[test]
    fn the_sessions_node_and_the_first_url_take_turns() {
        let mut addresses = began_with("wss://play");
        assert_eq!(next(&mut addresses), None);
        addresses.welcomed(&["ws://n1".into(), "wss://n1".into()]);
        for _ in 0..3 {
            assert_eq!(next(&mut addresses), some("wss://n1"));
            assert_eq!(next(&mut addresses), None);
        }
        // The first attempt after each welcome is at the node.
        assert_eq!(next(&mut addresses), some("wss://n1"));
        addresses.welcomed(&["wss://n2".into()]);
        assert_eq!(next(&mut addresses), some("wss://n2"));
        addresses.welcomed(&[]);
        assert_eq!(next(&mut addresses), None);
    }

    #[test]
    fn three_redirects_in_a_row_are_followed() {
        let mut addresses = began_with("tcp://play:1");
        for _ in 0..2 {
            for node in ["tcp://n1:1", "tls://n2:1", "tls://n3:1"] {
                assert!(addresses.redirected(&[node.into()]));
                assert_eq!(next(&mut addresses), some(node));
            }
            assert!(!addresses.redirected(&["tls://n4:1".into()]));
            addresses.failed();
            assert_eq!(next(&mut addresses), None);
        }
    }

    #[test]
    fn a_redirect_to_a_less_secure_address_is_not_followed() {
        let mut addresses = began_with("ws://play");
        assert!(addresses.redirected(&["wss://n1".into()]));
        assert_eq!(next(&mut addresses), some("wss://n1"));
        assert!(!addresses.redirected(&["ws://n2".into()]));
        assert_eq!(next(&mut addresses), None);
        let mut follows_none = Addresses::new(None);
        assert!(!follows_none.redirected(&["ws://n1".into()]));
    }
}
