//! `bench registry`: what devices, channels and heartbeats cost a shard without its sockets, in one
//! process and thread.
//!
//! Four rows do the work of the published benchmark that they are compared with, whose numbers are
//! those of objects in memory: a channel's queues, which nothing is encoded for; a channel that is
//! made, found by its number and closed, beside 100 others; a device that registers, is heard and
//! goes. Two more do what a node does besides: a publication that is also framed, encoded and
//! decoded, and a channel that also keeps and announces its members.
//!
//! Each row has two forms: *same* only does the work, *verified* also compares every result.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use playfield_cli::options::Failure;
use playfield_server::channel::{Access, ChannelRule};
use playfield_server::device::Registration;
use playfield_server::testing::channel::{
    Backlog, Channels, Member, Payload, Publication, Published, Pushed, Subscribing, Totals,
    TotalsMax, Waiting,
};
use playfield_server::testing::device::{Limits, Place, Registry};
use playfield_wire::Format;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::framing::{Framing, write_frame_with};
use playfield_wire::server::{self, ServerMessage};

use crate::harness::options::Suite;
use crate::harness::report::{Column, Report};
use crate::harness::rounds::{self, Body, Form, Measured, Run, row_options, run as repeat};

row_options!(ROWS.map(|row| row.name));

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "registry",
    about: "what devices, channels and heartbeats cost a shard without its sockets. All in one
process.",
    defaults: Options::new,
    run,
};

const FORMAT: Format = Format::Packed;
const FRAMING: Framing = Framing { message_bytes_max: 1 << 16 };
/// The number of other devices.
const OTHERS: usize = 100_000;
/// The number of other channels.
const OTHER_CHANNELS: usize = 100;
/// The number of ids and names that take turns.
const NAMES: usize = 1_024;
/// The payload of a publication.
const PAYLOAD: [u8; 32] = *b"a payload that is the usual size";

const COLUMNS: &[Column] = &[
    ("                           row", "row"),
    ("form", "form"),
    ("ns/op", "ns_per_op"),
    ("median", "ns_per_op_median"),
    ("M/s", "millions_per_s"),
    ("allocations", "allocations_per_op"),
    ("verified", "verified"),
];

#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    body: fn(Form, u64) -> Run,
}

impl Body for Row {
    fn run(&self, form: Form, times: u64) -> Run {
        (self.body)(form, times)
    }
}

const ROWS: [Row; 6] = [
    Row { name: "heartbeat, encode and decode", body: heartbeat },
    Row { name: "channel, send and receive", body: send_and_receive },
    Row { name: "channel, send, encode, decode", body: send_encode_decode },
    Row { name: "channel, create, get and close", body: create_get_close },
    Row { name: "channel with members, the same", body: create_get_close_with_members },
    Row { name: "device, register, beat and unregister", body: register_beat_unregister },
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    let rows = ROWS.into_iter().map(|row| (row.name, row));
    let value = |measured: &Measured| 1e3 / measured.ns_per_op;
    rounds::report("registry", rows, &options.plan(), "millions_per_s", value, report)
}

/// One `ping` of a client, as the node reads it.
fn heartbeat(form: Form, times: u64) -> Run {
    let mut out = Vec::with_capacity(64);
    repeat(times, 4, |time| {
        out.clear();
        let ping = ClientMessage::Ping(client::Ping { nonce: black_box(time % 128) });
        write_frame_with(&mut out, |out| ping.encode(FORMAT, out));
        let Ok(Some(frame)) = FRAMING.decode(black_box(&out)) else { return false };
        let Ok(read) = ClientMessage::decode(FORMAT, frame.body) else { return false };
        black_box(&read);
        form == Form::Same || read == ping
    })
}

/// A publication of bytes is put in order by its channel, which is found by name, waits for a
/// subscriber in a bounded queue, and is taken out of it.
fn send_and_receive(form: Form, times: u64) -> Run {
    let rule = Arc::new(ChannelRule::new("room:*").publish(Access::Anyone).bytes());
    let (mut channels, name) = (channels(), Arc::<str>::from("room:1"));
    let now = Duration::from_secs(1);
    let Ok((start, _)) = channels.subscribe(&name, &rule, subscribing(1), now) else {
        return failed();
    };
    let mut queue = Backlog::default();
    let (slow, queue_max) = (rule.when_slow(), rule.queue_max());
    repeat(times, PAYLOAD.len(), |time| {
        let Some((channel, publication)) = publish(&mut channels, &name, &rule, now) else {
            return false;
        };
        let pushed = queue.push(publication, slow, queue_max, 1 << 20);
        let Some(Waiting::Publication(publication)) = queue.first() else { return false };
        let Publication { offset, user, payload } = black_box(publication);
        let is_right = form == Form::Same
            || (channel == start.channel
                && pushed == Pushed::Waits { dropped: 0 }
                && *offset == start.offset + time + 1
                && user.is_none()
                && payload.as_slice() == PAYLOAD);
        queue.pop();
        is_right && queue.is_empty()
    })
}

/// A publication of bytes as a node sends it: put in order by its channel, encoded and framed; and
/// as the subscriber reads it.
fn send_encode_decode(form: Form, times: u64) -> Run {
    let rule = Arc::new(ChannelRule::new("room:*").publish(Access::Anyone).bytes());
    let (mut channels, name) = (channels(), Arc::<str>::from("room:1"));
    let now = Duration::from_secs(1);
    let Ok((start, _)) = channels.subscribe(&name, &rule, subscribing(1), now) else {
        return failed();
    };
    let mut out = Vec::with_capacity(256);
    repeat(times, PAYLOAD.len(), |time| {
        let Some((channel, publication)) = publish(&mut channels, &name, &rule, now) else {
            return false;
        };
        out.clear();
        write_frame_with(&mut out, |out| publication.write(channel, FORMAT, out));
        let Ok(Some(frame)) = FRAMING.decode(black_box(&out)) else { return false };
        let Ok(ServerMessage::Publication(server::Publication { channel, offset, user, payload })) =
            ServerMessage::decode(FORMAT, frame.body)
        else {
            return false;
        };
        black_box((channel, offset, &user, &payload));
        form == Form::Same
            || (channel == start.channel
                && offset == start.offset + time + 1
                && user.is_none()
                && *payload == PAYLOAD)
    })
}

#[inline]
fn publish(
    channels: &mut Channels,
    name: &str,
    rule: &Arc<ChannelRule>,
    now: Duration,
) -> Option<(u64, Publication)> {
    let payload = Payload::Bytes(black_box(PAYLOAD).into());
    match channels.publish(name, rule, None, (None, payload), now) {
        Ok(Published::To(channel, publication)) => Some((channel, publication)),
        Ok(Published::ToNobody) | Err(_) => None,
    }
}

fn create_get_close(form: Form, times: u64) -> Run {
    create_get_close_by(ChannelRule::new("room:*"), form, times)
}

fn create_get_close_with_members(form: Form, times: u64) -> Run {
    create_get_close_by(ChannelRule::new("room:*").presence(Access::Anyone), form, times)
}

/// The first subscribes to a channel, it is found, and the last leaves. There are others.
fn create_get_close_by(rule: ChannelRule, form: Form, times: u64) -> Run {
    static TEXTS: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..NAMES).map(|number| format!("room:{number}")).collect());
    let rule = Arc::new(rule);
    let mut channels = channels();
    let now = Duration::from_secs(1);
    for number in 0..OTHER_CHANNELS {
        let name: Arc<str> = format!("other:{number}").into();
        if channels.subscribe(&name, &rule, subscribing(0), now).is_err() {
            return failed();
        }
    }
    let members = u64::from(rule.keeps_members());
    repeat(times, 0, |time| {
        let name: Arc<str> = TEXTS[time as usize % NAMES].as_str().into();
        let Ok((start, _)) = channels.subscribe(&name, &rule, subscribing(time), now) else {
            return false;
        };
        let shards = black_box(channels.shards(start.channel).len());
        let there = form == Form::Same
            || (shards, channels.len(), start.members) == (1, OTHER_CHANNELS + 1, members);
        black_box(channels.unsubscribe(start.channel, (0, time), (true, true), now));
        channels.expire(now);
        there && channels.len() == OTHER_CHANNELS
    })
}

/// A device among many others.
fn register_beat_unregister(form: Form, times: u64) -> Run {
    static IDS: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..NAMES).map(|number| format!("device-{number}")).collect());
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
        let limits = Limits {
            devices_max: OTHERS + NAMES,
            tags_max: 8,
            metadata_bytes_max: 1_024,
            id_bytes_max: 64,
        };
        let registry = Registry::new(limits, Default::default());
        for number in 0..OTHERS {
            let other = Registration::new(format!("other-{number}")).tag("other");
            if let Ok(prepared) = registry.prepare(other, PLACE, Duration::ZERO) {
                // It is one of many, and there is space for it.
                let _ = registry.insert(prepared, |_, _| true);
            }
        }
        registry
    });
    const PLACE: Place = Place { shard: 0, connection: 1, is_service: false };
    let registry = &*REGISTRY;
    let now = Duration::from_secs(1);
    repeat(times, 0, |time| {
        let id = &IDS[time as usize % NAMES];
        let registration = Registration::new(id.as_str());
        let Ok(prepared) = registry.prepare(registration, PLACE, now) else { return false };
        let Ok(registered) = registry.insert(prepared, |_, _| true) else { return false };
        let device = registered.device;
        device.heard(black_box(2 * now));
        let there = form == Form::Same
            || (registry.get(id).is_some_and(|found| found.number() == device.number())
                && device.last_seen() == 2 * now
                && registry.count() == OTHERS + 1);
        let removed = registry.remove(&device);
        there && removed && (form == Form::Same || registry.get(id).is_none())
    })
}

/// Of one shard, where channels that nobody subscribes to end at once.
fn channels() -> Channels {
    let max = TotalsMax { channels: 1_000, history_bytes: 1 << 20 };
    Channels::new((0, 1), (7, Default::default()), Duration::ZERO, Arc::new(Totals::new(1)), max)
}

fn subscribing(session: u64) -> Subscribing {
    static NAME: LazyLock<Arc<str>> = LazyLock::new(|| "guest".into());
    let member = Member { session, user: None, name: Arc::clone(&NAME) };
    Subscribing { shard: 0, member, since: None, creator: None }
}

/// Nothing was measured, and that is wrong.
fn failed() -> Run {
    Run { took: Duration::from_secs(1), bytes_per_op: 0, right: false, allocations: None }
}
