//! Devices: registrations, commands and reports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use playfield_client::RoomNumber;
use playfield_client::poll::{Next, Queue, QueueLimits};
use playfield_client::session::Session;
use playfield_wire::server;
use serde_json::Value;

use crate::channel::{asked, with_payload};
use crate::client::{ClientCell, PfClient, PfDevice, lock};
use crate::commands::{options, pairs};
use crate::event::{PfEventKind, Report};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Member, Object};
use crate::room;
use crate::state::{Given, News, Place, Sender, State, What};
use crate::text::{PfText, place};

/// The most commands to a device that may wait for the program's answer. Past that the oldest is
/// refused.
pub const PF_COMMANDS_MAX: usize = 1024;

/// A command that wants an answer: the session in which it came, and its number there.
type Command = (u32, u64);

/// A registration in the table of handles.
pub(crate) struct DeviceCell {
    member: Member,
    id: String,
    is_new: bool,
    is_bytes: bool,
    /// Commands that the program has not taken.
    queue: Queue<(Report, Option<Command>)>,
    /// Commands that the program has not answered, by the numbers that it knows.
    commands: Mutex<BTreeMap<u64, Command>>,
    /// The program has heard of the end.
    is_over: AtomicBool,
}

impl Object for DeviceCell {
    const KIND: u8 = 5;
    const NAME: &'static str = "a device";
}

impl DeviceCell {
    /// A registration that the node has answered, and its handle.
    pub(crate) fn begin(
        client: &Arc<ClientCell>,
        id: String,
        is_new: bool,
        is_bytes: bool,
        kept: QueueLimits,
    ) -> Outcome<(u64, Arc<Self>)> {
        let cell = Arc::new(Self {
            member: Member::of(client),
            id,
            is_new,
            is_bytes,
            queue: Queue::new(kept),
            commands: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let handle = handle::insert(Arc::clone(&cell))?;
        Ok((handle, cell))
    }

    /// Takes a command of the node. Returns those that were dropped for it.
    pub(crate) fn put(&self, command: &server::Command<'_>, session: u32) -> Vec<Command> {
        let server::Command { command, payload } = command;
        let report = with_payload(Report::new(PfEventKind::Command), payload, self.is_bytes);
        let bytes = report.bytes.len();
        let command = command.map(|command| (session, command));
        let dropped = self.queue.put((report, command), bytes, |_| 1);
        dropped.into_iter().filter_map(|(_, command)| command).collect()
    }

    pub(crate) fn announces(&self, kept: &QueueLimits) -> bool {
        self.member.announces(kept.events_max + 1)
    }

    /// The registration is over.
    pub(crate) fn end(&self) {
        self.queue.end();
    }

    /// The next that waits in the device's queue.
    pub(crate) fn take(state: &mut State, handle: u64) -> Option<Report> {
        let cell = Arc::clone(state.devices.get(&handle)?);
        cell.member.taken();
        let report = match cell.queue.try_next()? {
            Next::Item((report, command)) => Report { number: cell.keep(state, command), ..report },
            Next::Missed(commands) => {
                // What they stand for was announced.
                state.news.push_front(News::Device(handle));
                Report { number: commands, ..Report::new(PfEventKind::Missed) }
            }
            Next::Ended if cell.is_over.swap(true, Ordering::AcqRel) => return None,
            Next::Ended => Report::new(PfEventKind::Unregistered),
        };
        Some(Report { device: handle, ..report })
    }

    /// Keeps a command until the program answers it. Returns its number; 0 if no answer is wanted.
    fn keep(&self, state: &mut State, command: Option<Command>) -> u64 {
        let Some(command) = command else { return 0 };
        let number = state.next_request();
        let mut commands = lock(&self.commands);
        commands.insert(number, command);
        if commands.len() > PF_COMMANDS_MAX
            && let Some((_, oldest)) = commands.pop_first()
        {
            drop(commands);
            state.refuse_commands(&[oldest]);
        }
        number
    }

    fn command(&self, number: u64) -> Outcome<Command> {
        lock(&self.commands).remove(&number).ok_or_else(|| {
            let text = format!(
                "no command {number} waits for an answer: it was answered, or more than \
                 {PF_COMMANDS_MAX} came after it"
            );
            Failure::new(PfCode::NotFound, text)
        })
    }

    /// The commands without an answer, which will have none.
    fn unanswered(&self) -> Vec<Command> {
        let kept = std::mem::take(&mut *lock(&self.commands)).into_values();
        let mut all: Vec<_> = kept.collect();
        while let Some(Next::Item((_, command))) = self.queue.try_next() {
            all.extend(command);
        }
        all
    }
}

/// The texts in a list in JSON.
fn texts(what: &str, list: Option<Value>) -> Outcome<Vec<String>> {
    let wrong = || Failure::argument(what, "it is not a list of strings");
    let Some(list) = list else { return Ok(Vec::new()) };
    let Value::Array(all) = list else { return Err(wrong()) };
    let text = |value| match value {
        Value::String(text) => Ok(text),
        _ => Err(wrong()),
    };
    all.into_iter().map(text).collect()
}

/// Registers this client's session as a device; `PF_EVENT_KIND_REGISTERED` has its handle, which is
/// to be freed. `metadata` is a JSON object whose members are strings, `tags` a JSON list of
/// strings; both may be empty. In a new session the client registers again by itself. Another call
/// takes the place of this registration.
///
/// # Safety
/// `device`, `metadata` and `tags` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_register(
    client: PfClient,
    device: PfText,
    metadata: PfText,
    tags: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (device, metadata, tags, out) = unsafe {
            (
                device.text("the device's id")?.to_owned(),
                metadata.bytes("the metadata")?,
                tags.bytes("the tags")?,
                place(request, "the place for the request")?,
            )
        };
        let metadata = pairs("the metadata", options(metadata)?)?;
        let tags = texts("the tags", options(tags)?)?;
        let what = What::Register { device: device.clone() };
        *out = handle::find::<ClientCell>(client.id)?.act(|state| {
            state.ask(None, what, move |session: &mut Session| {
                let metadata: Vec<_> =
                    metadata.iter().map(|(name, value)| (&**name, &**value)).collect();
                let tags: Vec<_> = tags.iter().map(|tag| &**tag).collect();
                session.register(&device, &metadata, &tags).map(Given::Request)
            })
        })?;
        Ok(())
    })
}

/// What is known of a registration.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PfDeviceInfo {
    /// The device's id. Valid until the device is freed.
    pub id: PfText,
    /// Whether no device was registered under the id before.
    pub is_new: bool,
    /// Whether the payloads of the fleet are bytes, and not JSON.
    pub is_bytes: bool,
}

/// Sets `out` to what is known of a device.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_device_get_info(device: PfDevice, out: *mut PfDeviceInfo) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the info") }?;
        let cell = handle::find::<DeviceCell>(device.id)?;
        let (is_new, is_bytes) = (cell.is_new, cell.is_bytes);
        *out = PfDeviceInfo { id: PfText::of(&cell.id), is_new, is_bytes };
        Ok(())
    })
}

/// Sends a report; `PF_EVENT_KIND_REPLY` has the fleet's reply. `payload` is JSON, or bytes if
/// `is_bytes`, as the fleet's payloads are.
///
/// # Safety
/// `payload` points to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_device_report(
    device: PfDevice,
    payload: PfText,
    is_bytes: bool,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (bytes, out) = unsafe {
            (payload.bytes("the payload")?, place(request, "the place for the request")?)
        };
        let payload = room::payload(bytes, is_bytes)?;
        let (client, cell) = found(device)?;
        let what = What::Report { device: device.id, is_bytes: cell.is_bytes };
        *out = client.act(|state| {
            state.ask(None, what, move |session: &mut Session| {
                session.report(&payload, true).map(asked)
            })
        })?;
        Ok(())
    })
}

/// Sends a report without a reply. If it is refused, `PF_EVENT_KIND_ERROR` says so.
///
/// # Safety
/// `payload` points to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_device_report_unconfirmed(
    device: PfDevice,
    payload: PfText,
    is_bytes: bool,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let payload = room::payload(unsafe { payload.bytes("the payload") }?, is_bytes)?;
        found(device)?.0.act(|state| {
            state.tell(None, Sender::Device(device.id), move |session: &mut Session| {
                session.report(&payload, false).map(|_| Given::Nothing)
            })
        })
    })
}

/// Answers the command of this number, which `PF_EVENT_KIND_COMMAND` had. Nothing happens if the
/// session in which it came is over.
///
/// # Safety
/// `payload` points to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_device_answer(
    device: PfDevice,
    number: u64,
    payload: PfText,
    is_bytes: bool,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let payload = room::payload(unsafe { payload.bytes("the payload") }?, is_bytes)?;
        let (client, cell) = found(device)?;
        let command = cell.command(number)?;
        answer(&client, command, Ok(payload))
    })
}

/// Refuses the command of this number, with a reason.
///
/// # Safety
/// `why` points to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_device_refuse(device: PfDevice, number: u64, why: PfText) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let why = unsafe { why.text("the reason") }?.to_owned();
        let (client, cell) = found(device)?;
        let command = cell.command(number)?;
        answer(&client, command, Err(why))
    })
}

/// Sends the answer to a command, unless the session in which it came is over.
fn answer(
    client: &ClientCell,
    (session, command): Command,
    answer: Result<Vec<u8>, String>,
) -> Outcome {
    let place = Place { session, number: RoomNumber(0) };
    client.act(|state| {
        if state.node.session != session {
            return state.check_connected();
        }
        state.tell(Some(place), Sender::Answer, move |session: &mut Session| {
            let answer = answer.as_deref().map_err(|why| &**why);
            session.answer(command, answer).map(|()| Given::Nothing)
        })
    })
}

/// A device, with its client.
fn found(device: PfDevice) -> Outcome<(Arc<ClientCell>, Arc<DeviceCell>)> {
    let cell = handle::find::<DeviceCell>(device.id)?;
    Ok((cell.member.client::<DeviceCell>()?, cell))
}

/// Frees a device. The node refuses requests to it from then on; the registration ends with the
/// session. Nothing more is reported of it but answers to requests.
#[unsafe(no_mangle)]
pub extern "C" fn pf_device_free(device: PfDevice) -> PfCode {
    call(|| {
        let cell = handle::remove::<DeviceCell>(device.id)?;
        let Ok(client) = cell.member.client::<DeviceCell>() else { return Ok(()) };
        client.act(|state| {
            state.devices.remove(&device.id);
            state.drop_reports(|report| report.device == device.id);
            state.refuse_commands(&cell.unanswered());
            Ok(())
        })
    })
}
