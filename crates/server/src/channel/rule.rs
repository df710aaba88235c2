//! Rules of channels: permissions, history, and limits.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::{Access, Asker, Pattern, PatternError};

/// The treatment of publications for a subscriber that reads too slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slow {
    /// The oldest that wait are dropped. The subscriber sees the gap.
    #[default]
    DropOldest,
    /// Only the latest waits: for values that replace each other.
    KeepLatest,
    /// The subscription ends with `too_slow`. The client may subscribe again from its position.
    Unsubscribe,
    /// The session and its connection end with `too_slow`. A client that still reads that ends for
    /// good. To one that does not, the connection is lost, and it returns in a new session.
    Disconnect,
}

/// The kind of a channel's payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadKind {
    /// JSON values.
    #[default]
    Json,
    /// Any bytes.
    Bytes,
}

/// The rule of all channels whose names match a pattern.
///
/// Without more, clients may subscribe and may not publish, nothing is kept, and nobody sees who
/// subscribes.
///
/// ```
/// use std::time::Duration;
///
/// use playfield_server::channel::{Access, ChannelRule};
///
/// let chat = ChannelRule::new("chat:*")
///     .publish(Access::User)
///     .presence(Access::Anyone)
///     .history(100, Duration::from_secs(600));
/// let inbox = ChannelRule::new("inbox:{user}");
/// ```
#[derive(Clone, Debug)]
pub struct ChannelRule {
    pattern: Result<Pattern, PatternError>,
    subscribe: Access,
    publish: Access,
    presence: Access,
    /// `None`: who may subscribe.
    history: Option<Access>,
    pub(crate) history_max: usize,
    pub(crate) history_age: Duration,
    pub(crate) history_bytes_max: usize,
    slow: Slow,
    queue_max: usize,
    payload: PayloadKind,
}

impl ChannelRule {
    /// The maximum bytes of a channel's history, unless its rule says otherwise.
    pub const HISTORY_BYTES_DEFAULT: usize = 1 << 20;
    /// The most publications that wait for a slow subscriber, unless the rule says otherwise.
    pub const QUEUE_DEFAULT: usize = 256;

    /// A rule for the channels that this [`Pattern`] matches. With an invalid pattern, the server
    /// fails to start.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self {
            pattern: Pattern::new(pattern),
            subscribe: Access::Anyone,
            publish: Access::Nobody,
            presence: Access::Nobody,
            history: None,
            history_max: 0,
            history_age: Duration::ZERO,
            history_bytes_max: Self::HISTORY_BYTES_DEFAULT,
            slow: Slow::default(),
            queue_max: Self::QUEUE_DEFAULT,
            payload: PayloadKind::default(),
        }
    }

    /// Sets who may subscribe. The default is anyone.
    #[must_use]
    pub fn subscribe(self, who: Access) -> Self {
        Self { subscribe: who, ..self }
    }

    /// Sets which clients may publish: none, unless this says otherwise.
    #[must_use]
    pub fn publish(self, who: Access) -> Self {
        Self { publish: who, ..self }
    }

    /// Keeps who subscribes, for these to see. Without it, it is not kept.
    #[must_use]
    pub fn presence(self, who: Access) -> Self {
        Self { presence: who, ..self }
    }

    /// Keeps at most this many publications, for at most this time. Subscribers that come back get
    /// what they missed of them.
    #[must_use]
    pub fn history(self, max: usize, age: Duration) -> Self {
        Self { history_max: max, history_age: age, ..self }
    }

    /// Keeps at most this many bytes of publications.
    #[must_use]
    pub fn history_bytes(self, max: usize) -> Self {
        Self { history_bytes_max: max, ..self }
    }

    /// Sets who may read the history. The default is those who may subscribe.
    #[must_use]
    pub fn history_for(self, who: Access) -> Self {
        Self { history: Some(who), ..self }
    }

    /// Sets what happens to publications for a subscriber that reads too slowly, when more than
    /// `queue_max` wait for it.
    #[must_use]
    pub fn slow(self, slow: Slow, queue_max: usize) -> Self {
        Self { slow, queue_max, ..self }
    }

    /// Payloads are bytes, and not JSON values.
    #[must_use]
    pub fn bytes(self) -> Self {
        Self { payload: PayloadKind::Bytes, ..self }
    }

    /// Returns whether the session may subscribe to the channel of this name.
    #[must_use]
    pub fn may_subscribe(&self, asker: &Asker<'_>, channel: &str) -> bool {
        self.admits(&self.subscribe, asker, channel)
    }

    /// Returns whether it may publish in it.
    #[must_use]
    pub fn may_publish(&self, asker: &Asker<'_>, channel: &str) -> bool {
        self.admits(&self.publish, asker, channel)
    }

    /// Returns whether it may see who subscribes.
    #[must_use]
    pub fn may_see_members(&self, asker: &Asker<'_>, channel: &str) -> bool {
        self.admits(&self.presence, asker, channel)
    }

    /// Returns whether it may read the history.
    #[must_use]
    pub fn may_read_history(&self, asker: &Asker<'_>, channel: &str) -> bool {
        self.admits(self.history.as_ref().unwrap_or(&self.subscribe), asker, channel)
    }

    fn admits(&self, access: &Access, asker: &Asker<'_>, channel: &str) -> bool {
        let admits = |pattern: &Pattern| pattern.admits(channel, asker.user);
        self.pattern.as_ref().is_ok_and(admits) && access.admits(asker, channel)
    }

    /// Returns whether it is kept who subscribes.
    #[must_use]
    pub fn keeps_members(&self) -> bool {
        !matches!(self.presence, Access::Nobody)
    }

    /// Returns whether publications are kept.
    #[must_use]
    pub fn keeps_history(&self) -> bool {
        self.history_max > 0 && self.history_age > Duration::ZERO
    }

    /// Why the history of the channels is of little use on a node where a publication may have this
    /// many bytes: a larger one than the history may be empties it.
    #[must_use]
    pub fn doubt(&self, publication_bytes_max: usize) -> Option<String> {
        let bytes_max = self.history_bytes_max;
        let is_small = self.keeps_history() && bytes_max < publication_bytes_max;
        let pattern = self.pattern.as_ref().ok()?;
        is_small.then(|| {
            format!(
                "the rule of the channels {pattern} keeps {bytes_max} bytes of history, but a \
                 publication may have {publication_bytes_max}, and one that does not fit empties \
                 it: raise history_bytes or lower limits.payload_bytes"
            )
        })
    }

    /// The treatment of publications for a subscriber that reads too slowly.
    #[must_use]
    pub fn when_slow(&self) -> Slow {
        self.slow
    }

    /// Returns the most publications that may wait for such a subscriber.
    #[must_use]
    pub fn queue_max(&self) -> usize {
        self.queue_max
    }

    /// The kind of the payloads.
    #[must_use]
    pub fn payload_kind(&self) -> PayloadKind {
        self.payload
    }
}

/// The rules of a node, in order. The first one that matches a name decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelRules(Vec<Arc<ChannelRule>>);

impl ChannelRules {
    /// Adds a rule, after all others.
    ///
    /// # Errors
    /// If its pattern is invalid.
    pub(crate) fn add(&mut self, rule: ChannelRule) -> Result<(), PatternError> {
        if let Err(error) = &rule.pattern {
            return Err(error.clone());
        }
        self.0.push(Arc::new(rule));
        Ok(())
    }

    /// Returns whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Why some rules may not be what was meant, on a node where a publication may have this many
    /// bytes.
    pub(crate) fn doubts(&self, publication_bytes_max: usize) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(move |rule| rule.doubt(publication_bytes_max))
    }

    /// The rule of the channel of this name.
    #[must_use]
    pub(crate) fn of(&self, name: &str) -> Option<&Arc<ChannelRule>> {
        let matches = |rule: &&Arc<ChannelRule>| {
            rule.pattern.as_ref().is_ok_and(|pattern| pattern.matches(name))
        };
        self.0.iter().find(matches)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{Access, Asker, ChannelRule, ChannelRules};

    #[test]
    fn the_first_rule_that_matches_decides() {
        let mut rules = ChannelRules::default();
        rules.add(ChannelRule::new("chat:vip").history(7, Duration::MAX)).unwrap();
        rules.add(ChannelRule::new("chat:*")).unwrap();
        assert!(rules.add(ChannelRule::new("chat:")).is_err());
        assert!(rules.of("chat:vip").unwrap().keeps_history());
        assert!(!rules.of("chat:all").unwrap().keeps_history());
        assert!(rules.of("news").is_none());
    }

    #[test]
    fn a_history_that_one_publication_empties_is_doubted() {
        let mut rules = ChannelRules::default();
        let minute = Duration::from_secs(60);
        rules.add(ChannelRule::new("a:*").history(9, minute).history_bytes(1000)).unwrap();
        rules.add(ChannelRule::new("b:*").history_bytes(10)).unwrap();
        assert_eq!(rules.doubts(1000).count(), 0);
        let doubts: Vec<_> = rules.doubts(1001).collect();
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        assert!(doubts[0].contains("a:*") && doubts[0].contains("1000 bytes"), "{doubts:?}");
    }

    #[test]
    fn access_is_by_user_claim_or_function() {
        let role = json!("admin");
        let claims = |name: &str| (name == "role").then_some(&role);
        let none = |_: &str| None::<&Value>;
        let ann = Asker::new(Some("ann"), "Ann", &claims);
        let guest = Asker::new(None, "", &none);
        let rule = |access: Access| ChannelRule::new("a:*").publish(access);
        for (access, of_ann, of_guest) in [
            (Access::Nobody, false, false),
            (Access::Anyone, true, true),
            (Access::User, true, false),
            (Access::claim("role", "admin"), true, false),
            (Access::claim("role", "user"), false, false),
            (Access::check(|asker, channel| channel == "a:b" && asker.name == "Ann"), true, false),
        ] {
            let rule = rule(access);
            assert_eq!(rule.may_publish(&ann, "a:b"), of_ann, "{rule:?}");
            assert_eq!(rule.may_publish(&guest, "a:b"), of_guest, "{rule:?}");
        }
        let inbox = ChannelRule::new("inbox:{user}");
        assert!(inbox.may_subscribe(&ann, "inbox:ann") && !inbox.may_subscribe(&ann, "inbox:bob"));
        assert!(inbox.may_read_history(&ann, "inbox:ann"));
        assert!(!inbox.may_see_members(&ann, "inbox:ann"));
    }
}
