//! The driver: connects, takes what arrives, and connects again.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use async_nats::{Message, ServerAddr, Subscriber};
use futures_core::Stream as _;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::complaints::Complaints;
use crate::connection::{Connection, Reports};
use crate::names::Names;
use crate::outlet::Outlet;
use crate::setup::{self, Secret};
use crate::{ConnectError, Settings, Shared, lock};

/// The time between two looks for commands without an answer.
const TICK: Duration = Duration::from_millis(250);
/// The time between two checks of a stream that may be gone.
const RECHECK: Duration = Duration::from_secs(1);
/// The shortest and the longest time for which JetStream fails before another server is tried.
const MOVE_MIN: Duration = Duration::from_secs(4);
const MOVE_MAX: Duration = Duration::from_secs(60);
/// The shortest and the longest time between two attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// The settings, as they are needed to connect.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) settings: Settings,
    pub(crate) addresses: Vec<ServerAddr>,
    pub(crate) credentials: Option<String>,
    pub(crate) names: Arc<Names>,
}

/// A connection with its subscriptions.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) secret: Secret,
    /// The number of the server among the addresses.
    address: usize,
    /// The subject of answers, up to the number of the request.
    inbox: String,
    inlet: Inlet,
}

/// The subscriptions of a connection.
#[derive(Debug)]
struct Inlet {
    answers: Subscriber,
    all: Subscriber,
    listener: Option<Subscriber>,
}

impl Live {
    pub(crate) fn outlet(&self) -> Outlet {
        Outlet::new(self.connection.client.clone(), self.inbox.clone())
    }
}

impl Driver {
    /// Connects for the first time.
    pub(crate) async fn first(&self) -> Result<Live, ConnectError> {
        let end = Instant::now() + self.settings.patience;
        // Nodes divide themselves among the servers.
        let first = getrandom::u32().unwrap_or_default() as usize;
        let mut pause = RETRY_MIN;
        loop {
            match self.connect(first, None).await {
                Err(error) if !error.is_final() && Instant::now() + pause < end => {
                    log::debug!("{error}; trying again");
                }
                outcome => return outcome,
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Drives connections until it is aborted.
    pub(crate) async fn run(self, shared: Arc<Shared>, live: Live) {
        tokio::select! {
            biased;
            never = self.connections(&shared, live) => match never {},
            never = ticks(&shared) => match never {},
        }
    }

    async fn connections(&self, shared: &Shared, mut live: Live) -> Infallible {
        let secret = live.secret;
        let mut patience = MOVE_MIN;
        loop {
            let Live { connection, inlet, .. } = &mut live;
            tokio::select! {
                () = poll_fn(|cx| inlet.poll(shared, &connection.reports, cx)) => {
                    log::warn!("the connection to the engine, {}, was lost", connection.server);
                }
                () = self.rechecks(shared, connection, &secret, &mut patience) => {
                    log::warn!("leaving {}, another server may have JetStream", connection.server);
                }
            }
            lock(&shared.state).disconnected();
            shared.news.notify_one();
            live = self.again(&secret, live.address).await;
            lock(&shared.state).connected(live.outlet(), false);
            shared.news.notify_one();
            log::info!("connected to the engine again, to {}", live.connection.server);
        }
    }

    /// Connects again, to another server than the one before if there is one.
    async fn again(&self, secret: &Secret, last: usize) -> Live {
        let mut complaints = Complaints::default();
        let mut pause = RETRY_MIN;
        loop {
            match self.connect(last + 1, Some(secret)).await {
                Ok(live) => return live,
                Err(error) => complaints.log(|| error.to_string()),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Tries each server once, the first one by this number.
    async fn connect(&self, first: usize, known: Option<&Secret>) -> Result<Live, ConnectError> {
        let mut refusal: Option<ConnectError> = None;
        let mut tried = Vec::new();
        let count = self.addresses.len();
        for number in (0..count).map(|number| (first % count + number) % count) {
            match self.connect_to(number, known).await {
                Ok(live) => return Ok(live),
                Err(ConnectError::Unreachable { tried: reason }) => tried.push(reason),
                // A reason that stays says more than one that passes.
                Err(error) if error.is_final() => refusal = Some(error),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or_else(|| ConnectError::Unreachable { tried: tried.join("; ") }))
    }

    async fn connect_to(
        &self,
        address: usize,
        known: Option<&Secret>,
    ) -> Result<Live, ConnectError> {
        let server = &self.addresses[address];
        let connection =
            Connection::open(&self.settings, server, self.credentials.as_deref()).await?;
        // The server knows them when it has answered what is asked next.
        let inbox = format!("{}.", connection.client.new_inbox());
        let subscribe = async |subject: String| {
            connection.client.subscribe(subject).await.map_err(|error| ConnectError::Unreachable {
                tried: format!("{}: {error}", connection.server),
            })
        };
        let answers = subscribe(format!("{inbox}*")).await?;
        let all = subscribe(self.names.all.clone()).await?;
        let secret = match known {
            // Messages between nodes don't wait for JetStream, which is checked afterwards.
            Some(known) => {
                setup::check_server(&connection)?;
                *known
            }
            None => setup::check(&connection, &self.names, &self.settings, None).await?,
        };
        let inlet = Inlet { answers, all, listener: None };
        Ok(Live { connection, address, secret, inbox, inlet })
    }

    /// Checks JetStream where something speaks against it, and makes the stream again if it is
    /// gone. Returns when another server may do better: one that was cut off from the others has
    /// no JetStream.
    async fn rechecks(
        &self,
        shared: &Shared,
        connection: &Connection,
        secret: &Secret,
        patience: &mut Duration,
    ) {
        let mut complaints = Complaints::default();
        let mut failing_since = None;
        loop {
            if std::mem::take(&mut lock(&shared.state).is_suspect) {
                match setup::check(connection, &self.names, &self.settings, Some(secret)).await {
                    Ok(found) => {
                        compare(secret, &found);
                        failing_since = None;
                        *patience = MOVE_MIN;
                    }
                    Err(error) => {
                        lock(&shared.state).is_suspect = true;
                        complaints.log(|| error.to_string());
                        let since = *failing_since.get_or_insert_with(Instant::now);
                        if self.addresses.len() > 1 && since.elapsed() >= *patience {
                            // Moving resets links, so not too often.
                            *patience = (*patience * 2).min(MOVE_MAX);
                            return;
                        }
                    }
                }
            }
            sleep(RECHECK).await;
        }
    }
}

/// Says if the engine has another secret than before.
fn compare(known: &Secret, found: &Secret) {
    if known != found {
        log::error!(
            "the engine was wiped, and another node has made a new secret for the cluster: restart \
             this node, so that others accept its tokens"
        );
    }
}

impl Inlet {
    /// Takes what arrives until the connection is lost.
    fn poll(&mut self, shared: &Shared, reports: &Reports, context: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&shared.state);
        if state.driver.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            state.driver = Some(context.waker().clone());
        }
        if let Some(listener) = state.listener.take() {
            self.listener = Some(listener);
        }
        let mut is_lost = take(&mut self.answers, context, |message| state.answered(&message));
        is_lost |= take(&mut self.all, context, |message| state.received(message));
        if let Some(listener) = &mut self.listener {
            is_lost |= take(listener, context, |message| state.delivered(message));
        }
        if reports.has_dropped.swap(false, Ordering::Relaxed) {
            state.interrupted();
        }
        if state.has_events() {
            shared.news.notify_one();
        }
        if is_lost { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Takes the messages of a subscription. Returns whether the connection is lost.
fn take(
    subscriber: &mut Subscriber,
    context: &mut Context<'_>,
    mut hear: impl FnMut(Message),
) -> bool {
    loop {
        match Pin::new(&mut *subscriber).poll_next(context) {
            Poll::Ready(Some(message)) => hear(message),
            Poll::Ready(None) => return true,
            Poll::Pending => return false,
        }
    }
}

async fn ticks(shared: &Shared) -> Infallible {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut state = lock(&shared.state);
        state.tick(Instant::now());
        if state.has_events() {
            shared.news.notify_one();
        }
    }
}
