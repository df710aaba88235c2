//! Channels: subscriptions, publications, members and histories.

use std::sync::{Arc, Mutex};

use playfield_client::poll::{Next, Queue, QueueLimits};
use playfield_client::session::{Session, Subscribed, SubscriptionNumber};
use playfield_client::{MemberInfo, Position, RequestNumber};
use playfield_wire::TreeFormat;
use playfield_wire::server;
use playfield_wire::tree::read_value;
use serde_json::{Value, json};

use crate::client::{ClientCell, PfChannel, PfClient, lock};
use crate::commands::ask;
use crate::event::{PfChangeKind, PfEventKind, Report};
use crate::failure::{Outcome, PfCode, call};
use crate::handle::{self, Member, Object};
use crate::room;
use crate::state::{Given, News, Sender, State, What};
use crate::text::{PfText, place};

/// A subscription in the table of handles.
pub(crate) struct ChannelCell {
    member: Member,
    number: SubscriptionNumber,
    /// What the program has not taken, with the position after it.
    queue: Queue<(Report, Option<Position>)>,
    /// Of the last that it has taken.
    position: Mutex<Option<Position>>,
    /// As of the node's last answer: the epoch, and whether payloads are bytes.
    kind: Mutex<(u64, bool)>,
}

impl Object for ChannelCell {
    const KIND: u8 = 3;
    const NAME: &'static str = "a channel";
}

impl ChannelCell {
    /// A subscription that the node has answered, and its handle.
    pub(crate) fn begin(
        client: &Arc<ClientCell>,
        number: SubscriptionNumber,
        since: Option<Position>,
        kept: QueueLimits,
    ) -> Outcome<(u64, Arc<Self>)> {
        let cell = Arc::new(Self {
            member: Member::of(client),
            number,
            queue: Queue::new(kept),
            position: Mutex::new(since),
            kind: Mutex::default(),
        });
        let handle = handle::insert(Arc::clone(&cell))?;
        Ok((handle, cell))
    }

    pub(crate) fn announces(&self, kept: &QueueLimits) -> bool {
        self.member.announces(kept.events_max + 1)
    }

    /// Puts an event in the queue. Returns 1, their number.
    fn put(&self, report: Report, position: Option<Position>) -> usize {
        let bytes = report.bytes.len() + report.name.len() + report.text.len();
        self.queue.put((report, position), bytes, |(dropped, _)| match dropped.kind {
            PfEventKind::Publication => 1,
            PfEventKind::Missed => dropped.number,
            _ => 0,
        });
        1
    }

    pub(crate) fn subscribed(&self, subscribed: &Subscribed) -> usize {
        let Subscribed { position, recovered, missed, bytes, members } = *subscribed;
        *lock(&self.kind) = (position.epoch, bytes);
        let before = if missed > 0 { self.missed(missed) } else { 0 };
        let change = if recovered { PfChangeKind::Entered } else { PfChangeKind::None };
        let report = Report::new(PfEventKind::Subscribed);
        before + self.put(Report { change, number: members, ..report }, Some(position))
    }

    pub(crate) fn publication(&self, publication: &server::Publication<'_>) -> usize {
        let (epoch, is_bytes) = *lock(&self.kind);
        let report = Report {
            number: publication.offset,
            name: publication.user.as_deref().unwrap_or_default().to_owned(),
            ..Report::new(PfEventKind::Publication)
        };
        let position = Position { epoch, offset: publication.offset };
        self.put(with_payload(report, &publication.payload, is_bytes), Some(position))
    }

    pub(crate) fn missed(&self, publications: u64) -> usize {
        let report = Report { number: publications, ..Report::new(PfEventKind::Missed) };
        self.put(report, None)
    }

    pub(crate) fn presence(&self, presence: &server::Presence<'_>) -> usize {
        let server::Presence { sequence, joined, session, user, name, .. } = presence.to_static();
        let kind = if joined { PfEventKind::MemberJoined } else { PfEventKind::MemberLeft };
        self.put(person(kind, sequence, &MemberInfo { session, user, name }), None)
    }

    pub(crate) fn unsubscribed(&self, code: &str, text: &str) -> usize {
        let (reason, text) = (code.to_owned(), text.to_owned());
        self.put(Report { reason, text, ..Report::new(PfEventKind::Unsubscribed) }, None)
    }

    /// The next that waits in the channel's queue.
    pub(crate) fn take(state: &mut State, handle: u64) -> Option<Report> {
        let cell = Arc::clone(state.channels.get(&handle)?);
        cell.member.taken();
        let report = match cell.queue.try_next()? {
            Next::Item((report, position)) => {
                state.counts.publications += u64::from(report.kind == PfEventKind::Publication);
                if position.is_some() {
                    *lock(&cell.position) = position;
                }
                report
            }
            Next::Missed(publications) => {
                // What they stand for was announced.
                state.news.push_front(News::Channel(handle));
                Report { number: publications, ..Report::new(PfEventKind::Missed) }
            }
            Next::Ended => return None,
        };
        Some(Report { channel: handle, ..report })
    }
}

/// A report with a payload: a value too, if it is JSON.
pub(crate) fn with_payload(report: Report, payload: &[u8], is_bytes: bool) -> Report {
    let value = if is_bytes { None } else { read_value(TreeFormat::Json, payload).ok() };
    Report { value, bytes: payload.to_vec(), ..report }
}

fn person(kind: PfEventKind, sequence: u64, member: &MemberInfo<'_>) -> Report {
    Report {
        number: sequence,
        name: member.name.to_string(),
        value: Some(member_info(member)),
        ..Report::new(kind)
    }
}

fn member_info(member: &MemberInfo<'_>) -> Value {
    json!({ "session": member.session, "user": member.user, "name": member.name })
}

/// The answer to a request for members.
pub(crate) fn members(members: &server::Members<'_>) -> Value {
    let all: Vec<_> = members.members.iter().map(member_info).collect();
    json!({ "sequence": members.sequence, "count": members.count, "members": all })
}

/// The answer to a request for a history.
pub(crate) fn history(history: &server::History<'_>) -> Value {
    let publication = |past: &server::PastPublication<'_>| {
        let value = (!history.bytes).then(|| read_value(TreeFormat::Json, &past.payload).ok());
        json!({
            "offset": past.offset, "user": past.user, "payload": value.flatten(),
            "bytes": String::from_utf8_lossy(&past.payload),
        })
    };
    let all: Vec<_> = history.publications.iter().map(publication).collect();
    json!({ "epoch": history.epoch, "offset": history.offset, "publications": all })
}

/// A position from its two numbers; none if the epoch is 0.
fn position(epoch: u64, offset: u64) -> Option<Position> {
    (epoch != 0).then_some(Position { epoch, offset })
}

/// Subscribes to a channel, whose handle `PF_EVENT_KIND_SUBSCRIBING` has. After a position that
/// `pf_channel_position` gave, it goes on from there; the `epoch` 0 is none. If `presence` is true,
/// reports who else subscribes.
///
/// # Safety
/// `name` points to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_subscribe(
    client: PfClient,
    name: PfText,
    presence: bool,
    epoch: u64,
    offset: u64,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, out) =
            unsafe { (name.text("the channel")?, place(request, "the place for the request")?) };
        let (name, since) = (name.to_owned(), position(epoch, offset));
        *out = handle::find::<ClientCell>(client.id)?.act(|state| {
            state.ask(None, What::Subscribe { since }, move |session: &mut Session| {
                session.subscribe(&name, since, presence).map(Given::Subscription)
            })
        })?;
        Ok(())
    })
}

/// The number of a request that is answered.
pub(crate) fn asked(request: Option<RequestNumber>) -> Given {
    request.map_or(Given::Nothing, Given::Request)
}

/// Publishes to a channel; the reply is the publication's offset. `payload` is JSON, or bytes if
/// `is_bytes`, as the channel's rule says.
///
/// # Safety
/// `name` and `payload` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_publish(
    client: PfClient,
    name: PfText,
    payload: PfText,
    is_bytes: bool,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, bytes) =
            unsafe { (name.text("the channel")?.to_owned(), payload.bytes("the payload")?) };
        let payload = room::payload(bytes, is_bytes)?;
        // SAFETY: the caller promises it.
        unsafe {
            ask(client, request, move |session| session.publish(&name, &payload, true).map(asked))
        }
    })
}

/// Publishes to a channel, without a reply. If the node refuses it, `PF_EVENT_KIND_ERROR` says so.
///
/// # Safety
/// `name` and `payload` point to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_publish_unconfirmed(
    client: PfClient,
    name: PfText,
    payload: PfText,
    is_bytes: bool,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, bytes) =
            unsafe { (name.text("the channel")?.to_owned(), payload.bytes("the payload")?) };
        let payload = room::payload(bytes, is_bytes)?;
        handle::find::<ClientCell>(client.id)?.act(|state| {
            state.tell(None, Sender::Client, move |session: &mut Session| {
                session.publish(&name, &payload, false).map(|_| Given::Nothing)
            })
        })
    })
}

/// Asks who subscribes to a channel. The reply has `sequence`, `count` and `members`, each with
/// `session`, `user` and `name`.
///
/// # Safety
/// `name` points to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_members(
    client: PfClient,
    name: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let name = unsafe { name.text("the channel") }?.to_owned();
        // SAFETY: the caller promises it.
        unsafe { ask(client, request, move |session| session.members(&name).map(Given::Request)) }
    })
}

/// Asks for at most `limit` publications of a channel after a position, the oldest first; 0 means
/// the node's limit, and the `epoch` 0 all. The reply has `epoch` and `offset` of the last, and
/// `publications`, each with `offset`, `user`, `payload` (if it is JSON) and `bytes`.
///
/// # Safety
/// `name` points to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_history(
    client: PfClient,
    name: PfText,
    epoch: u64,
    offset: u64,
    limit: u32,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let name = unsafe { name.text("the channel") }?.to_owned();
        // SAFETY: the caller promises it.
        unsafe {
            ask(client, request, move |session| {
                session.history(&name, position(epoch, offset), limit).map(Given::Request)
            })
        }
    })
}

/// Sets `epoch` and `offset` to the place of the last publication that was reported; both are 0 if
/// there is none.
///
/// # Safety
/// `epoch` and `offset` point to places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_channel_position(
    channel: PfChannel,
    epoch: *mut u64,
    offset: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (epoch, offset) = unsafe {
            (place(epoch, "the place for the epoch")?, place(offset, "the place for the offset")?)
        };
        let cell = handle::find::<ChannelCell>(channel.id)?;
        let position = *lock(&cell.position);
        (*epoch, *offset) = position.map_or((0, 0), |position| (position.epoch, position.offset));
        Ok(())
    })
}

/// Frees a channel, and ends the subscription. Nothing more is reported of it.
#[unsafe(no_mangle)]
pub extern "C" fn pf_channel_free(channel: PfChannel) -> PfCode {
    call(|| {
        let cell = handle::remove::<ChannelCell>(channel.id)?;
        let Ok(client) = cell.member.client::<ChannelCell>() else { return Ok(()) };
        let number = cell.number;
        client.act(|state| {
            state.channels.remove(&channel.id);
            state.subscriptions.remove(&number);
            state.drop_reports(|report| report.channel == channel.id);
            state.tell_quietly(move |session| session.unsubscribe(number));
            Ok(())
        })
    })
}
