//! Devices: registrations, commands and reports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use playfield_client::{Device, DeviceCommand, DeviceEvent, Payload};
use serde_json::Value;

use crate::client::{ClientCell, PfClient, PfDevice, Shared, lock};
use crate::commands::{options, pairs};
use crate::event::{Happening, PfEventKind};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Object};
use crate::room;
use crate::text::{PfText, place};
use crate::turn::Turn;

/// The most commands to a device that may wait for the program's answer. Past that the oldest is
/// refused.
pub const PF_COMMANDS_MAX: usize = 1024;

/// A registration in the table of handles.
pub(crate) struct DeviceCell {
    client: u64,
    shared: Arc<Shared>,
    handle: Mutex<u64>,
    device: Mutex<Option<Arc<Device>>>,
    /// Commands that the program has not answered, by the numbers that it knows.
    commands: Mutex<BTreeMap<u64, DeviceCommand>>,
    task: Mutex<u64>,
}

impl Object for DeviceCell {
    const KIND: u8 = 5;
    const NAME: &'static str = "a device";
}

impl DeviceCell {
    /// Lets go of the device. Commands without an answer are refused.
    pub(crate) fn forget(&self) {
        *lock(&self.device) = None;
        lock(&self.commands).clear();
    }

    fn happens(&self, happening: Happening) {
        self.shared.happens(Happening { device: *lock(&self.handle), ..happening });
    }

    fn device(&self) -> Outcome<Arc<Device>> {
        let device = lock(&self.device).clone();
        device.ok_or_else(|| Failure::new(PfCode::Freed, "the device was freed"))
    }

    /// Keeps a command until the program answers it. Returns its number; 0 if no answer is wanted.
    fn keep(&self, command: DeviceCommand) -> u64 {
        if !command.wants_answer() {
            return 0;
        }
        let number = self.shared.next_request();
        let mut commands = lock(&self.commands);
        commands.insert(number, command);
        if commands.len() > PF_COMMANDS_MAX {
            commands.pop_first();
        }
        number
    }

    fn command(&self, number: u64) -> Outcome<DeviceCommand> {
        lock(&self.commands).remove(&number).ok_or_else(|| {
            let text = format!(
                "no command {number} waits for an answer: it was answered, or more than \
                 {PF_COMMANDS_MAX} came after it"
            );
            Failure::new(PfCode::NotFound, text)
        })
    }
}

/// Reports what happens to a device until its registration ends.
async fn follow(cell: Arc<DeviceCell>, device: Arc<Device>) {
    let mut turn = Turn::default();
    while let Some(event) = device.next().await {
        let happening = match event {
            DeviceEvent::Command(command) => {
                let happening = with(Happening::new(PfEventKind::Command), command.payload());
                Happening { number: cell.keep(command), ..happening }
            }
            DeviceEvent::Missed { commands } => {
                Happening { number: commands, ..Happening::new(PfEventKind::Missed) }
            }
            _ => continue,
        };
        turn.report(happening.bytes.len());
        cell.happens(happening);
        turn.pause().await;
    }
    cell.happens(Happening::new(PfEventKind::Unregistered));
}

fn with(happening: Happening, payload: &Payload) -> Happening {
    Happening { value: payload.value().ok(), bytes: payload.bytes().to_vec(), ..happening }
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
/// to be freed. `metadata` is a JSON object whose members are strings, `tags` a JSON list of strings;
/// both may be empty. In a new session the client registers again by itself. Another call takes the
/// place of this registration.
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
        let cell = handle::find::<ClientCell>(client.id)?;
        let connection = cell.shared.connection()?;
        let shared = Arc::clone(&cell.shared);
        *out = cell.ask(move |request| async move {
            let answer = Happening::answer(PfEventKind::Registered, request);
            let metadata: Vec<_> =
                metadata.iter().map(|(name, value)| (&**name, &**value)).collect();
            let tags: Vec<_> = tags.iter().map(|tag| &**tag).collect();
            match connection.register(&device, &metadata, &tags).await {
                Ok(device) => match begin(client.id, &shared, device) {
                    Ok(device) => Happening { device, ..answer },
                    Err(failure) => answer.because(failure),
                },
                Err(error) => answer.because(error),
            }
        })?;
        Ok(())
    })
}

/// Keeps a registration. Returns its handle.
fn begin(client: u64, shared: &Arc<Shared>, device: Device) -> Outcome<u64> {
    let device = Arc::new(device);
    let cell = Arc::new(DeviceCell {
        client,
        shared: Arc::clone(shared),
        handle: Mutex::new(0),
        device: Mutex::new(Some(Arc::clone(&device))),
        commands: Mutex::default(),
        task: Mutex::new(0),
    });
    let handle = handle::insert(Arc::clone(&cell))?;
    *lock(&cell.handle) = handle;
    lock(&shared.devices).insert(handle, Arc::clone(&cell));
    let devices = Arc::clone(shared);
    shared.begins(move |tasks| {
        // It may have been freed meanwhile.
        if lock(&devices.devices).contains_key(&handle) {
            let task = tasks.spawn_after(follow(Arc::clone(&cell), device));
            *lock(&cell.task) = task;
        }
    });
    Ok(handle)
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
        let device = cell.device()?;
        let (is_new, is_bytes) = (device.is_new(), device.bytes());
        *out = PfDeviceInfo { id: PfText::of(device.id()), is_new, is_bytes };
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
        let (client, _, report) = found(device)?;
        *out = client.ask(|request| async move {
            let answer =
                Happening { device: device.id, ..Happening::answer(PfEventKind::Reply, request) };
            match report.report(payload).await {
                Ok(reply) => with(answer, &reply),
                Err(error) => answer.because(error),
            }
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
        let (client, _, report) = found(device)?;
        client.tell(async move { report.report_unconfirmed(payload).await }, move |error| {
            let happening = Happening::new(PfEventKind::Error).because(error);
            Happening { device: device.id, ..happening }
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
        let (client, cell, _) = found(device)?;
        let command = cell.command(number)?;
        client.tell(command.answer(payload), move |error| {
            let happening = Happening::new(PfEventKind::Error).because(error);
            Happening { device: device.id, ..happening }
        })
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
        let (client, cell, _) = found(device)?;
        let command = cell.command(number)?;
        client.tell(async move { command.refuse(&why).await }, move |error| {
            let happening = Happening::new(PfEventKind::Error).because(error);
            Happening { device: device.id, ..happening }
        })
    })
}

/// A device, with its client.
type Found = (Arc<ClientCell>, Arc<DeviceCell>, Arc<Device>);

fn found(device: PfDevice) -> Outcome<Found> {
    let cell = handle::find::<DeviceCell>(device.id)?;
    let client = handle::find::<ClientCell>(cell.client)?;
    let device = cell.device()?;
    Ok((client, cell, device))
}

/// Frees a device. The node refuses requests to it from then on; the registration ends with the
/// session. Nothing more is reported of it but answers to requests.
#[unsafe(no_mangle)]
pub extern "C" fn pf_device_free(device: PfDevice) -> PfCode {
    call(|| {
        let cell = handle::remove::<DeviceCell>(device.id)?;
        if let Ok(client) = handle::find::<ClientCell>(cell.client) {
            let forget = || {
                lock(&cell.shared.devices).remove(&device.id);
                *lock(&cell.task)
            };
            client.cancel(forget, |happening| happening.device == device.id);
        }
        cell.forget();
        Ok(())
    })
}
