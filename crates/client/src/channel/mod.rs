//! Channels: subscriptions, publications, members and histories.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use playfield_wire::ErrorCode;
use playfield_wire::server::{self, MemberInfo};

use crate::connection::{Command, Connection, Line, Subscription, Task, asked};
use crate::queue::{Next, Queue};
use crate::session::{Event, Position, Session, Subscribed};
use crate::{Error, Payload};

/// An event of a channel. Returned by [`Channel::next`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChannelEvent {
    /// The node has answered the subscription, on the first or on a later connection.
    Subscribed {
        /// Says whether nothing was lost: everything since the position that was reached follows,
        /// or there was no position, as in a first subscription.
        recovered: bool,
        /// If not, how many publications since then will not come, as far as is known: those of a
        /// channel that ended meanwhile, or with the node, are not counted. So it may be 0.
        missed: u64,
        /// The number of subscribed sessions, this one included; 0 if this client may not know.
        members: u64,
    },
    /// A publication: each comes once, in order.
    Publication(Publication),
    /// So many publications were dropped here: by the node, because this client was too slow, or by
    /// the client, because more came than [is kept](crate::Connect::queue_limits).
    Missed {
        /// The number of publications.
        publications: u64,
    },
    /// Another session subscribes now. After a gap in `sequence`, ask for the
    /// [members](Channel::members).
    Joined {
        /// Counts joins and leaves of the channel.
        sequence: u64,
        /// The member.
        member: MemberInfo<'static>,
    },
    /// Another session subscribes no longer.
    Left {
        /// Counts joins and leaves of the channel.
        sequence: u64,
        /// The member.
        member: MemberInfo<'static>,
    },
    /// The node has ended the subscription, or refused it on a later connection. It may make sense
    /// to subscribe again, with the [position](Channel::position).
    Unsubscribed {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
}

/// A publication of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Its place in the channel.
    pub offset: u64,
    /// The verified user who published it, if a client with one did.
    pub user: Option<String>,
    /// The payload.
    pub payload: Payload,
}

/// The subscribers of a channel. Returned by [`Connection::members`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The number of the last join or leave before this answer.
    pub sequence: u64,
    /// The number of subscribed sessions.
    pub count: u64,
    /// The members that the node lists.
    pub members: Vec<MemberInfo<'static>>,
}

/// Past publications of a channel. Returned by [`Connection::history`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The place of the channel's last publication.
    pub last: Position,
    /// Says whether the channel's payloads are bytes, and not JSON.
    pub bytes: bool,
    /// The oldest first.
    pub publications: Vec<Publication>,
}

impl Connection {
    /// Subscribes to a channel. Await the result for the node's answer.
    ///
    /// ```no_run
    /// # use playfield_client::{Connection, Error};
    /// # async fn example(connection: Connection) -> Result<(), Error> {
    /// use playfield_client::ChannelEvent;
    ///
    /// let chat = connection.subscribe("chat:lobby").presence().await?;
    /// connection.publish("chat:lobby", serde_json::json!({ "text": "hi" })).await?;
    /// while let Some(event) = chat.next().await {
    ///     match event {
    ///         ChannelEvent::Publication(said) => println!("{}", said.payload.value()?["text"]),
    ///         ChannelEvent::Joined { member, .. } => println!("{} is here", member.name),
    ///         ChannelEvent::Missed { .. } | ChannelEvent::Subscribed { recovered: false, .. } => {
    ///             println!("something was lost: load the rest from elsewhere");
    ///         }
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscribe(&self, channel: &str) -> Subscribing {
        let (connection, channel) = (self.clone(), channel.to_owned());
        Subscribing { connection, channel, since: None, presence: false }
    }

    /// Publishes to a channel, and waits until the node has. Returns the publication's offset; 0 if
    /// nobody subscribes and the channel keeps no history.
    ///
    /// The payload must be of the channel's kind: a node can't tell a value from the bytes of its
    /// text.
    ///
    /// # Errors
    /// If the node refuses, or the connection has ended.
    ///
    /// # Cancel safety
    /// Once queued, it is published.
    pub async fn publish(&self, channel: &str, payload: impl Into<Payload>) -> Result<u64, Error> {
        publish(&self.line, channel, payload.into()).await
    }

    /// Publishes to a channel, without an answer. If the node refuses, such as because publications
    /// come faster than its rates allow,
    /// [`ConnectionEvent::Refused`](crate::ConnectionEvent::Refused) says so.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn publish_unconfirmed(
        &self,
        channel: &str,
        payload: impl Into<Payload>,
    ) -> Result<(), Error> {
        let (channel, payload) = (channel.to_owned(), payload.into().into_bytes());
        let publish =
            move |task: &mut Task| task.tell(|client| client.publish(&channel, &payload, false));
        self.line.tell(Command::send(None, publish)).await
    }

    /// Returns the subscribers of a channel.
    ///
    /// # Errors
    /// If the node refuses, or the connection has ended.
    pub async fn members(&self, channel: &str) -> Result<Members, Error> {
        members(&self.line, channel).await
    }

    /// At most `limit` publications of a channel after `since`, the oldest first; 0 means the node's
    /// limit.
    ///
    /// # Errors
    /// If the node refuses, or the connection has ended.
    pub async fn history(
        &self,
        channel: &str,
        since: Option<Position>,
        limit: u32,
    ) -> Result<History, Error> {
        let channel = channel.to_owned();
        let ask = move |client: &mut Session| client.history(&channel, since, limit);
        let read = |event: Event<'_>| match event {
            Event::History(history) => Some(History::of(&history)),
            _ => None,
        };
        self.line.request(None, ask, read).await
    }
}

/// A subscription that is being made. Returned by [`Connection::subscribe`]; await it.
#[derive(Debug)]
#[must_use = "it does nothing unless awaited"]
pub struct Subscribing {
    connection: Connection,
    channel: String,
    since: Option<Position>,
    presence: bool,
}

impl Subscribing {
    /// Begins after this publication, as far as the channel's history has what followed it.
    pub fn since(mut self, position: Position) -> Self {
        self.since = Some(position);
        self
    }

    /// Reports who else subscribes, and who does no longer. Where the channel's rule does not show
    /// that, the subscription is refused with `forbidden`.
    pub fn presence(mut self) -> Self {
        self.presence = true;
        self
    }

    async fn begin(self) -> Result<Channel, Error> {
        let Self { connection, channel, since, presence } = self;
        let shared = Arc::new(Shared {
            queue: Queue::new(connection.queue_limits),
            position: Mutex::new(since),
        });
        let (name, subscriber) = (channel.clone(), Arc::clone(&shared));
        let subscribe = move |task: &mut Task, answer| {
            task.subscribe(&channel, since, presence, subscriber, answer);
        };
        let subscription = connection.line.ask(None, subscribe).await?;
        Ok(Channel { name, shared, line: connection.line.clone(), _subscription: subscription })
    }
}

impl IntoFuture for Subscribing {
    type Output = Result<Channel, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// A subscription to a channel. Drop it to unsubscribe.
///
/// If the connection is lost, the client subscribes again by itself, with the position that it has
/// reached, also in a new session.
pub struct Channel {
    name: String,
    shared: Arc<Shared>,
    line: Line,
    _subscription: Subscription,
}

impl Channel {
    /// The channel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for what happens next. `None` once the subscription, or the connection, has ended.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&self) -> Option<ChannelEvent> {
        match self.shared.queue.next().await {
            Next::Item((event, position)) => {
                if let Some(position) = position {
                    *self.shared.position.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(position);
                }
                Some(event)
            }
            Next::Missed(publications) => Some(ChannelEvent::Missed { publications }),
            Next::Ended => None,
        }
    }

    /// The last publication that [`next`](Self::next) has returned, or before which it began: to
    /// subscribe [since](Subscribing::since) it, such as after the program was started again.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        *self.shared.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes to this channel; see [`Connection::publish`].
    ///
    /// # Errors
    /// Same as [`Connection::publish`].
    pub async fn publish(&self, payload: impl Into<Payload>) -> Result<u64, Error> {
        publish(&self.line, &self.name, payload.into()).await
    }

    /// Returns the subscribers of this channel.
    ///
    /// # Errors
    /// If the node refuses, or the connection has ended.
    pub async fn members(&self) -> Result<Members, Error> {
        members(&self.line, &self.name).await
    }

    /// Ends the subscription, as dropping it does.
    pub fn unsubscribe(self) {}
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// State that the connection's task and the handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Events, with the position after them.
    queue: Queue<(ChannelEvent, Option<Position>)>,
    position: Mutex<Option<Position>>,
}

impl Shared {
    fn put(&self, event: ChannelEvent, position: Option<Position>) {
        let bytes = match &event {
            ChannelEvent::Publication(Publication { user, payload, .. }) => {
                user.as_ref().map_or(0, String::len) + payload.bytes().len()
            }
            ChannelEvent::Joined { member, .. } | ChannelEvent::Left { member, .. } => {
                member.user.as_ref().map_or(0, |user| user.len()) + member.name.len()
            }
            ChannelEvent::Unsubscribed { text, .. } => text.len(),
            _ => 0,
        };
        self.queue.put((event, position), bytes, |(dropped, _)| match dropped {
            ChannelEvent::Publication(_) => 1,
            ChannelEvent::Missed { publications } => *publications,
            ChannelEvent::Subscribed { missed, .. } => *missed,
            _ => 0,
        });
    }

    /// The node has answered, on the present connection.
    pub(crate) fn subscribed(&self, subscribed: &Subscribed) {
        let Subscribed { position, recovered, missed, members, .. } = *subscribed;
        self.put(ChannelEvent::Subscribed { recovered, missed, members }, Some(position));
    }

    pub(crate) fn publication(
        &self,
        publication: &server::Publication<'_>,
        epoch: u64,
        is_bytes: bool,
    ) {
        let server::Publication { offset, user, payload, .. } = publication;
        let publication = received(*offset, user.as_deref(), payload, is_bytes);
        let position = Position { epoch, offset: publication.offset };
        self.put(ChannelEvent::Publication(publication), Some(position));
    }

    /// The node has dropped publications.
    pub(crate) fn missed(&self, publications: u64) {
        self.put(ChannelEvent::Missed { publications }, None);
    }

    pub(crate) fn presence(&self, presence: &server::Presence<'_>) {
        let server::Presence { sequence, joined, session, user, name, .. } = presence.to_static();
        let member = MemberInfo { session, user, name };
        let event = match joined {
            true => ChannelEvent::Joined { sequence, member },
            false => ChannelEvent::Left { sequence, member },
        };
        self.put(event, None);
    }

    /// The node has ended the subscription: nothing more will come.
    pub(crate) fn unsubscribed(&self, code: ErrorCode, text: &str) {
        self.put(ChannelEvent::Unsubscribed { code, text: text.to_owned() }, None);
        self.queue.end();
    }

    /// The connection has ended: nothing more will come.
    pub(crate) fn end(&self) {
        self.queue.end();
    }
}

async fn publish(line: &Line, channel: &str, payload: Payload) -> Result<u64, Error> {
    let (channel, payload) = (channel.to_owned(), payload.into_bytes());
    let publish = move |client: &mut Session| asked(client.publish(&channel, &payload, true));
    let read = |event: Event<'_>| match event {
        Event::Published(published) => Some(published.offset),
        _ => None,
    };
    line.request(None, publish, read).await
}

async fn members(line: &Line, channel: &str) -> Result<Members, Error> {
    let channel = channel.to_owned();
    let read = |event: Event<'_>| match event {
        Event::Members(members) => {
            let server::Members { sequence, count, members, .. } = members.into_owned();
            Some(Members { sequence, count, members })
        }
        _ => None,
    };
    line.request(None, move |client| client.members(&channel), read).await
}

impl History {
    fn of(history: &server::History<'_>) -> Self {
        let &server::History { epoch, offset, bytes, ref publications, .. } = history;
        let publications = publications
            .iter()
            .map(|past| received(past.offset, past.user.as_deref(), &past.payload, bytes))
            .collect();
        Self { last: Position { epoch, offset }, bytes, publications }
    }
}

/// A publication in the caller's form.
fn received(offset: u64, user: Option<&str>, payload: &[u8], is_bytes: bool) -> Publication {
    let user = user.map(ToOwned::to_owned);
    Publication { offset, user, payload: Payload::received(is_bytes, payload) }
}
