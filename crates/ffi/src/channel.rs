//! Channels: subscriptions, publications, members and histories.

use std::sync::{Arc, Mutex};

use playfield_client::{Channel, ChannelEvent, MemberInfo, Position, Publication};
use serde_json::{Value, json};

use crate::client::{ClientCell, PfChannel, PfClient, Shared, lock};
use crate::commands::ask;
use crate::event::{Happening, PfChangeKind, PfEventKind};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Object};
use crate::room;
use crate::text::{PfText, place};
use crate::turn::Turn;

/// A subscription in the table of handles.
pub(crate) struct ChannelCell {
    client: u64,
    shared: Arc<Shared>,
    handle: Mutex<u64>,
    channel: Mutex<Option<Arc<Channel>>>,
    task: Mutex<u64>,
}

impl Object for ChannelCell {
    const KIND: u8 = 3;
    const NAME: &'static str = "a channel";
}

impl ChannelCell {
    pub(crate) fn forget(&self) {
        *lock(&self.channel) = None;
    }

    fn happens(&self, happening: Happening) {
        self.shared.happens(Happening { channel: *lock(&self.handle), ..happening });
    }
}

/// Reports what happens in a channel until the subscription ends.
async fn follow(cell: Arc<ChannelCell>, channel: Arc<Channel>) {
    let mut turn = Turn::default();
    while let Some(event) = channel.next().await {
        let happening = match event {
            ChannelEvent::Subscribed { recovered, missed, members } => {
                if missed > 0 {
                    cell.happens(Happening {
                        number: missed,
                        ..Happening::new(PfEventKind::Missed)
                    });
                }
                Happening {
                    change: if recovered { PfChangeKind::Entered } else { PfChangeKind::None },
                    number: members,
                    ..Happening::new(PfEventKind::Subscribed)
                }
            }
            ChannelEvent::Publication(publication) => {
                cell.shared.count(|counts| counts.publications += 1);
                Happening {
                    number: publication.offset,
                    name: publication.user.unwrap_or_default(),
                    value: publication.payload.value().ok(),
                    bytes: publication.payload.bytes().to_vec(),
                    ..Happening::new(PfEventKind::Publication)
                }
            }
            ChannelEvent::Missed { publications } => {
                Happening { number: publications, ..Happening::new(PfEventKind::Missed) }
            }
            ChannelEvent::Joined { sequence, member } => {
                person(PfEventKind::MemberJoined, sequence, &member)
            }
            ChannelEvent::Left { sequence, member } => {
                person(PfEventKind::MemberLeft, sequence, &member)
            }
            ChannelEvent::Unsubscribed { code, text } => Happening {
                reason: code.name().into_owned(),
                text,
                ..Happening::new(PfEventKind::Unsubscribed)
            },
            _ => continue,
        };
        let texts = happening.name.len() + happening.text.len();
        turn.report(happening.bytes.len() + texts);
        cell.happens(happening);
        turn.pause().await;
    }
}

fn person(kind: PfEventKind, sequence: u64, member: &MemberInfo<'_>) -> Happening {
    Happening {
        number: sequence,
        name: member.name.to_string(),
        value: Some(member_info(member)),
        ..Happening::new(kind)
    }
}

fn member_info(member: &MemberInfo<'_>) -> Value {
    json!({ "session": member.session, "user": member.user, "name": member.name })
}

fn publication(publication: &Publication) -> Value {
    json!({
        "offset": publication.offset, "user": publication.user,
        "payload": publication.payload.value().ok(),
        "bytes": String::from_utf8_lossy(publication.payload.bytes()),
    })
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
        let cell = handle::find::<ClientCell>(client.id)?;
        let mut subscribing = cell.shared.connection()?.subscribe(name);
        if presence {
            subscribing = subscribing.presence();
        }
        if let Some(position) = position(epoch, offset) {
            subscribing = subscribing.since(position);
        }
        let shared = Arc::clone(&cell.shared);
        *out = cell.ask(move |request| async move {
            let answer = Happening::answer(PfEventKind::Subscribing, request);
            match subscribing.await {
                Ok(channel) => match begin(client.id, &shared, channel) {
                    Ok(channel) => Happening { channel, ..answer },
                    Err(failure) => answer.because(failure),
                },
                Err(error) => answer.because(error),
            }
        })?;
        Ok(())
    })
}

/// Keeps a subscription. Returns its handle.
fn begin(client: u64, shared: &Arc<Shared>, channel: Channel) -> Outcome<u64> {
    let channel = Arc::new(channel);
    let cell = Arc::new(ChannelCell {
        client,
        shared: Arc::clone(shared),
        handle: Mutex::new(0),
        channel: Mutex::new(Some(Arc::clone(&channel))),
        task: Mutex::new(0),
    });
    let handle = handle::insert(Arc::clone(&cell))?;
    *lock(&cell.handle) = handle;
    lock(&shared.channels).insert(handle, Arc::clone(&cell));
    let channels = Arc::clone(shared);
    shared.begins(move |tasks| {
        // It may have been freed meanwhile.
        if lock(&channels.channels).contains_key(&handle) {
            let task = tasks.spawn_after(follow(Arc::clone(&cell), channel));
            *lock(&cell.task) = task;
        }
    });
    Ok(handle)
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
            ask(client, request, |connection| async move {
                connection.publish(&name, payload).await.map(Value::from)
            })
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
        let cell = handle::find::<ClientCell>(client.id)?;
        let connection = cell.shared.connection()?;
        cell.tell(async move { connection.publish_unconfirmed(&name, payload).await }, |error| {
            Happening::new(PfEventKind::Error).because(error)
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
        unsafe {
            ask(client, request, |connection| async move {
                let members = connection.members(&name).await?;
                let all: Vec<_> = members.members.iter().map(member_info).collect();
                Ok(json!({ "sequence": members.sequence, "count": members.count, "members": all }))
            })
        }
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
            ask(client, request, |connection| async move {
                let history = connection.history(&name, position(epoch, offset), limit).await?;
                let all: Vec<_> = history.publications.iter().map(publication).collect();
                Ok(json!({
                    "epoch": history.last.epoch, "offset": history.last.offset,
                    "publications": all,
                }))
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
        let channel = lock(&cell.channel).clone();
        let channel =
            channel.ok_or_else(|| Failure::new(PfCode::Freed, "the channel was freed"))?;
        (*epoch, *offset) =
            channel.position().map_or((0, 0), |position| (position.epoch, position.offset));
        Ok(())
    })
}

/// Frees a channel, and ends the subscription. Nothing more is reported of it.
#[unsafe(no_mangle)]
pub extern "C" fn pf_channel_free(channel: PfChannel) -> PfCode {
    call(|| {
        let cell = handle::remove::<ChannelCell>(channel.id)?;
        if let Ok(client) = handle::find::<ClientCell>(cell.client) {
            let forget = || {
                lock(&cell.shared.channels).remove(&channel.id);
                *lock(&cell.task)
            };
            client.cancel(forget, |happening| happening.channel == channel.id);
        }
        cell.forget();
        Ok(())
    })
}
