//! Redirects: which address of another node a client takes, and the way of a join from node to
//! node.

use std::fmt::Display;
use std::time::Duration;

use playfield_wire::ErrorCode;

use super::{Target, Url};

/// The most redirects in a row that a client follows, of a join or of a hello.
pub const REDIRECTS_MAX: u32 = 3;

/// The most times that a join asks the first node, if the node of the room can't be reached or no
/// longer has the reservation.
pub const ASKS_MAX: u32 = 3;

/// The time for which a client keeps a session at another node that is in no room there.
pub const NODE_IDLE: Duration = Duration::from_secs(10);

/// The way in which a client is connected, which decides which address of another node it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Says whether it is by WebSocket, and not by native framing.
    pub web_socket: bool,
    /// Says whether it is by TLS. Then the client takes no address without it.
    pub secure: bool,
    /// Says whether the client can use TLS.
    pub has_tls: bool,
}

impl Reach {
    /// The connection to this URL.
    #[must_use]
    pub fn by(url: &Url, has_tls: bool) -> Self {
        Self { web_socket: url.web_socket.is_some(), secure: url.is_secure, has_tls }
    }

    /// The address of another node that this client takes: the first with the scheme of its
    /// connection, or else the first that it can use and that is not less secure. What is no URL of
    /// a node is passed over.
    pub fn choose<A: AsRef<str>>(self, addresses: impl IntoIterator<Item = A>) -> Option<Url> {
        let urls = addresses.into_iter().filter_map(|address| address.as_ref().parse().ok());
        let mut usable: Vec<Url> = urls.filter(|url| self.may_use(url)).collect();
        let same = usable.iter().position(|url| Self::by(url, self.has_tls) == self);
        (!usable.is_empty()).then(|| usable.swap_remove(same.unwrap_or(0)))
    }

    fn may_use(self, url: &Url) -> bool {
        if self.secure { url.is_secure } else { self.has_tls || !url.is_secure }
    }

    fn scheme(self) -> &'static str {
        match (self.web_socket, self.secure) {
            (false, false) => "tcp://",
            (false, true) => "tls://",
            (true, false) => "ws://",
            (true, true) => "wss://",
        }
    }
}

/// The way of a join from node to node, which the first node of a cluster begins by a redirect.
///
/// The edge asks the first node to [enter](super::Session::enter) the [target](Self::target). It
/// tells this of each [redirect](Self::redirected), of each [refusal](Self::refused), and of each
/// node that [can't be reached](Self::unreachable), and does what it says.
///
/// ```
/// use playfield_client::session::{Reach, Route, Target, Turn, Url};
///
/// let url: Url = "wss://play.example.com".parse()?;
/// let target = Target::JoinByKey { room_type: "match".into(), key: "m-17".into() };
/// let mut route = Route::new(target, Reach::by(&url, true));
/// // The first node answers by a redirect.
/// let addresses = ["tls://203.0.113.7", "wss://n3.example.com"];
/// let turn = route.redirected(&addresses, "r3.secret");
/// let Turn::There { address, target } = turn else { panic!("{turn:?}") };
/// assert_eq!(address.to_string(), "wss://n3.example.com");
/// assert_eq!(target, Target::Join { id: "r3.secret".into() });
/// // That node can't be reached.
/// assert_eq!(route.unreachable("connection refused"), Turn::Again);
/// # Ok::<(), playfield_client::session::UrlError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Route {
    target: Target,
    /// The connection to the first node.
    first: Reach,
    /// The node that is asked now, and whether by a reservation. `None`: the first.
    there: Option<(Url, bool)>,
    /// The number of redirects in a row.
    redirects: u32,
    /// The number of times that the first node was asked.
    asks: u32,
}

/// The next step of a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Enter the target at the node with this address: by the session that is open there, or by a
    /// new one with the same settings.
    There {
        /// The node's address.
        address: Url,
        /// The room to enter there.
        target: Target,
    },
    /// Ask the first node again, to enter [`Route::target`].
    Again,
    /// The join fails, with [`ErrorCode::Unreachable`] and this text.
    Unreachable(String),
}

impl Route {
    /// A join at the first node, which is connected in this way.
    #[must_use]
    pub fn new(target: Target, first: Reach) -> Self {
        Self { target, first, there: None, redirects: 0, asks: 1 }
    }

    /// The room to enter, as the program has asked for it.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns whether another node than the first is asked now.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.there.is_some()
    }

    /// The node that was asked has answered by a redirect.
    pub fn redirected<A: AsRef<str>>(&mut self, addresses: &[A], reservation: &str) -> Turn {
        self.redirects += 1;
        if self.redirects > REDIRECTS_MAX {
            return Turn::Unreachable(format!(
                "the join was redirected more than {REDIRECTS_MAX} times in a row, at last to {}",
                listed(addresses)
            ));
        }
        let has_tls = self.first.has_tls;
        let present = self.there.as_ref().map_or(self.first, |(url, _)| Reach::by(url, has_tls));
        let Some(address) = present.choose(addresses) else {
            return Turn::Unreachable(format!(
                "the room is at another node, whose addresses can't be used by a client that is \
                 connected by {}: {}",
                present.scheme(),
                listed(addresses)
            ));
        };
        let target = match reservation {
            "" => self.target.clone(),
            id => Target::Join { id: id.to_owned() },
        };
        self.there = Some((address.clone(), !reservation.is_empty()));
        Turn::There { address, target }
    }

    /// The node that was asked has refused the join, or the client that came for it. `None` if that
    /// is the answer to the join.
    pub fn refused(&mut self, code: ErrorCode) -> Option<Turn> {
        let (address, is_reserved) = self.there.as_ref()?;
        let is_over = match code {
            ErrorCode::BadReservation | ErrorCode::RoomNotFound => *is_reserved,
            ErrorCode::ShuttingDown => true,
            _ => false,
        };
        let text = format!("the room's node, {address}, no longer had the room for this client");
        is_over.then(|| self.again(format!("{text} ({code})")))
    }

    /// The node that [`Turn::There`] has named can't be reached, or its session has ended.
    pub fn unreachable(&mut self, why: impl Display) -> Turn {
        let at = self.there.as_ref().map(|(address, _)| format!(" at {address}"));
        let at = at.unwrap_or_default();
        let text = format!(
            "the room's node can't be reached{at}: {why}; check the public addresses of the nodes"
        );
        self.again(text)
    }

    fn again(&mut self, text: String) -> Turn {
        if self.asks >= ASKS_MAX {
            return Turn::Unreachable(format!("{text}; the join was tried {ASKS_MAX} times"));
        }
        (self.there, self.redirects) = (None, 0);
        self.asks += 1;
        Turn::Again
    }
}

fn listed<A: AsRef<str>>(addresses: &[A]) -> String {
    match addresses {
        [] => "no address".to_owned(),
        addresses => addresses.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use playfield_wire::ErrorCode;

    use super::{ASKS_MAX, REDIRECTS_MAX, Reach, Route, Turn};
    use crate::session::Target;

    const ALL: [&str; 5] = ["udp://n", "ws://n", "tcp://n", "tls://n", "wss://n"];

    fn reach(url: &str, has_tls: bool) -> Reach {
        Reach::by(&url.parse().unwrap(), has_tls)
    }

    fn route(url: &str) -> Route {
        Route::new(Target::Join { id: "ticket".into() }, reach(url, true))
    }

    fn chosen(url: &str, has_tls: bool, addresses: &[&str]) -> Option<String> {
        reach(url, has_tls).choose(addresses).map(|url| url.to_string())
    }

    #[test]
    fn the_first_address_with_the_same_scheme_is_taken() {
        for url in ["tcp://a", "tls://a", "ws://a", "wss://a"] {
            let same = url.replace("//a", "//n");
            let taken = chosen(url, true, &ALL).unwrap();
            assert!(taken.starts_with(&same), "{taken}");
            let two = [format!("{same}1"), format!("{same}2")];
            let taken = reach(url, true).choose(&two).unwrap().to_string();
            assert!(taken.starts_with(&two[0]), "{taken}");
        }
    }

    #[test]
    fn another_scheme_must_be_usable_and_not_less_secure() {
        assert_eq!(chosen("wss://a", true, &["ws://n", "tcp://n"]), None);
        assert_eq!(chosen("tls://a", true, &["tcp://n", "wss://n"]).unwrap(), "wss://n");
        assert_eq!(chosen("ws://a", true, &["wss://n", "tcp://n"]).unwrap(), "wss://n");
        assert_eq!(chosen("ws://a", false, &["wss://n", "tcp://n"]).unwrap(), "tcp://n:7350");
        assert_eq!(chosen("ws://a", false, &["wss://n", "", "n"]), None);
    }

    #[test]
    fn what_is_asked_there_is_the_reservation_or_the_same_again() {
        let mut route = route("tcp://a");
        let turn = route.redirected(&["tcp://b:1"], "");
        let address = "tcp://b:1".parse().unwrap();
        assert_eq!(turn, Turn::There { address, target: route.target().clone() });
        let turn = route.redirected(&["tcp://c:1"], "r.s");
        let address = "tcp://c:1".parse().unwrap();
        assert_eq!(turn, Turn::There { address, target: Target::Join { id: "r.s".into() } });
    }

    #[test]
    fn a_loop_ends_after_three_redirects() {
        let mut route = route("tcp://a");
        for _ in 0..REDIRECTS_MAX {
            assert!(matches!(route.redirected(&["tcp://b"], "r.s"), Turn::There { .. }));
        }
        let Turn::Unreachable(text) = route.redirected(&["tcp://b"], "r.s") else { panic!() };
        assert!(text.contains("tcp://b"), "{text}");
    }

    #[test]
    fn the_first_node_is_asked_three_times_in_all() {
        let mut route = route("tcp://a");
        for ask in 1..=ASKS_MAX {
            for _ in 0..REDIRECTS_MAX {
                assert!(matches!(route.redirected(&["tcp://b:1"], "r.s"), Turn::There { .. }));
            }
            let turn = match ask % 2 {
                0 => route.unreachable("connection refused"),
                _ => route.refused(ErrorCode::BadReservation).unwrap(),
            };
            if ask < ASKS_MAX {
                assert_eq!(turn, Turn::Again);
            } else {
                let Turn::Unreachable(text) = turn else { panic!("{turn:?}") };
                assert!(text.contains("tcp://b:1") && text.contains("3 times"), "{text}");
            }
        }
    }

    #[test]
    fn other_refusals_are_the_answer() {
        let mut route = route("tcp://a");
        assert_eq!(route.refused(ErrorCode::BadReservation), None, "of the first node");
        route.redirected(&["tcp://b"], "r.s");
        assert_eq!(route.refused(ErrorCode::RoomFull), None);
        assert_eq!(route.clone().refused(ErrorCode::ShuttingDown), Some(Turn::Again));
        route.redirected(&["tcp://b"], "");
        assert_eq!(route.refused(ErrorCode::RoomNotFound), None, "of what the program asked for");
    }

    #[test]
    fn a_connection_is_never_less_secure_than_the_one_before() {
        let mut route = route("ws://a");
        assert!(matches!(route.redirected(&["wss://b"], ""), Turn::There { .. }));
        let Turn::Unreachable(text) = route.redirected(&["ws://c"], "") else { panic!() };
        assert!(text.contains("wss://") && text.contains("ws://c"), "{text}");
    }
}
