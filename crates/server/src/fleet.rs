//! Devices, for fleets without rooms: what a program decides about them, and its settings.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;

use crate::channel::{Pattern, PatternError, Payload, PayloadKind};
use crate::config::Config;
use crate::device::{Device, Limits, RegisterError, Registry};
use crate::entropy::Entropy;
use crate::handle::NodeHandle;
use crate::panics::guard;

/// Callbacks for a program's devices: sessions that have registered, and connections of services
/// that were registered for their clients.
///
/// A fleet is shared by all shards. Its calls for one device come from the shard of the device's
/// connection, one after another, and hold that shard up: they must not block or compute for long.
/// A panic is logged, and answers the message that was handled with `internal`.
pub trait Fleet: Send + Sync + 'static {
    /// The node has started. This handle reaches it: [`NodeHandle::devices`] pushes to devices.
    fn started(&self, node: &NodeHandle) {
        let _ = node;
    }

    /// Decides whether a device may register, with these metadata and tags. It is also asked when
    /// the device changes them; the id is the same then. The setting [`FleetSettings::ids`] was
    /// checked before.
    ///
    /// A device that may register can still be refused, at `limits.devices`: it is in the registry
    /// from [`registered`](Self::registered) on.
    ///
    /// # Errors
    /// The refusal, which the device is sent.
    fn register(&self, device: &Device) -> Result<()> {
        let _ = device;
        Ok(())
    }

    /// A device has registered. It stays until it is [`gone`](Self::gone). If it took the place of
    /// another, that one is gone soon, perhaps after this call.
    fn registered(&self, device: &Device) {
        let _ = device;
    }

    /// A device reports: the text of a JSON value, or bytes, as [`FleetSettings::payload`] says.
    /// The answer is of the same kind; an empty one is `null`. It is sent if the device asked for
    /// one.
    ///
    /// # Errors
    /// The refusal, which the device is sent.
    fn report(&self, device: &Device, report: &[u8]) -> Result<Vec<u8>> {
        let _ = report;
        let text = format!("the fleet takes no reports, and {:?} sent one", device.id());
        Err(Error::new(ErrorCode::Forbidden, text))
    }

    /// Nothing was heard of a device for [`FleetSettings::silent_ms`]. Its connection may be lost,
    /// and the session wait for it.
    fn silent(&self, device: &Device) {
        let _ = device;
    }

    /// A device that was silent is heard again.
    fn back(&self, device: &Device) {
        let _ = device;
    }

    /// A device is not registered any more: its session, or its connection to a service, has ended.
    fn gone(&self, device: &Device, why: Gone) {
        let _ = (device, why);
    }
}

/// Why a device is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gone {
    /// The device has ended the session.
    Left,
    /// Its connection was lost, and the time for which its session waits is over; or the connection
    /// to a service was closed.
    ConnectionLost,
    /// Another has registered under its id.
    TakenOver,
    /// [`Devices::disconnect`](crate::Devices::disconnect).
    Disconnected,
    /// The node is shutting down.
    ShuttingDown,
}

/// The outcome when a device registers under an id that another has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// The new one takes the other's place, if both are of the same user, or both of none. The
    /// other's session ends with `taken_over`. Otherwise the new one is refused with
    /// `device_taken`.
    ///
    /// A service may take over any id. A session can't take over that of a service's connection.
    #[default]
    TakeOver,
    /// The new one is refused with `device_taken`.
    Refuse,
}

/// The settings of a fleet.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// A device is silent once nothing was heard from it for this long, in milliseconds; 0 = never.
    /// Its client is asked for a sign of life after half of this time.
    pub silent_ms: u64,
    /// The rule for duplicate ids.
    pub duplicates: Duplicates,
    /// The kind of payloads in reports, commands and their answers.
    pub payload: PayloadKind,
    ids: Result<Pattern, PatternError>,
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            silent_ms: 30_000,
            duplicates: Duplicates::default(),
            payload: PayloadKind::default(),
            ids: Pattern::new("**"),
        }
    }
}

impl FleetSettings {
    /// Any id, JSON, silent after 30 s.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A device is silent once nothing was heard from it for this many milliseconds; 0 = never.
    #[must_use]
    pub fn silent_ms(self, silent_ms: u64) -> Self {
        Self { silent_ms, ..self }
    }

    /// Sets how duplicate ids are handled.
    #[must_use]
    pub fn duplicates(self, duplicates: Duplicates) -> Self {
        Self { duplicates, ..self }
    }

    /// Reports, commands and their answers are bytes.
    #[must_use]
    pub fn bytes(self) -> Self {
        Self { payload: PayloadKind::Bytes, ..self }
    }

    /// The ids that sessions may take, as the pattern of a channel: `{user}:*` are those that begin
    /// with the user and a colon. Others are refused with `forbidden`. Without it, any.
    ///
    /// The node does not start if this is not a pattern.
    #[must_use]
    pub fn ids(self, pattern: &str) -> Self {
        Self { ids: Pattern::new(pattern), ..self }
    }
}

/// The fleet of a node.
pub(crate) struct HostedFleet {
    user: Box<dyn Fleet>,
    pub(crate) registry: Registry,
    pub(crate) duplicates: Duplicates,
    pub(crate) payload: PayloadKind,
    ids: Pattern,
    take_overs_per_minute: u64,
    /// After how long a device is silent; `None` is never.
    pub(crate) silent: Option<Duration>,
}

impl HostedFleet {
    pub(crate) fn new(
        user: Box<dyn Fleet>,
        settings: FleetSettings,
        config: &Config,
        entropy: &mut Entropy,
    ) -> Result<Self, PatternError> {
        let FleetSettings { silent_ms, duplicates, payload, ids } = settings;
        let limits = Limits {
            devices_max: config.limits.devices,
            tags_max: config.limits.device.tags,
            metadata_bytes_max: config.limits.device.metadata_bytes,
            id_bytes_max: config.limits.name_bytes.device,
        };
        let registry = Registry::new(limits, entropy.hasher());
        let silent = (silent_ms > 0).then(|| Duration::from_millis(silent_ms.max(100)));
        let take_overs_per_minute = config.tuning.take_overs_per_minute;
        let ids = ids?;
        Ok(Self { user, registry, duplicates, payload, ids, take_overs_per_minute, silent })
    }

    /// Calls the program's code. `None` if it panics.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&dyn Fleet) -> T) -> Option<T> {
        guard("the fleet", || call(&*self.user))
    }

    /// Returns whether the session of this user may take this id.
    pub(crate) fn admits(&self, id: &str, user: Option<&str>) -> bool {
        self.ids.admits(id, user)
    }

    /// Returns whether a device may take the place of another.
    pub(crate) fn replaces(&self, known: &Device, new: &Device) -> bool {
        self.duplicates == Duplicates::TakeOver
            && (new.place().is_service || (!known.place().is_service && known.user() == new.user()))
    }

    /// Counts a device that takes the place of another, unless too many did of late.
    pub(crate) fn take_over(&self, known: &Device, new: &Device) -> Result<()> {
        let max = self.take_overs_per_minute;
        new.take_over(known, max).map_err(|wait| {
            let wait_s = wait.as_secs() + 1;
            let text = format!(
                "tuning.take_overs_per_minute: the limit is {max} per minute and device; is \
                 its id used twice? Try again in {wait_s} s"
            );
            Error::new(ErrorCode::Limit, text).with_retry_after(wait)
        })
    }

    /// Converts bytes that a program sends to a device.
    pub(crate) fn payload(&self, bytes: &[u8]) -> Result<Payload> {
        let payload = match self.payload {
            PayloadKind::Bytes => Ok(Payload::Bytes(bytes.into())),
            PayloadKind::Json if bytes.is_empty() => Payload::json(b"null"),
            PayloadKind::Json => Payload::json(bytes),
        };
        payload.map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))
    }

    /// The devices that a push goes to.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<Device>> {
        self.registry.get(id).ok_or_else(|| unknown_device(id))
    }
}

/// Why a device was not registered, as it is sent.
pub(crate) fn refusal(error: &RegisterError) -> Error {
    let code = match error {
        RegisterError::Taken | RegisterError::Gone => ErrorCode::DeviceTaken,
        RegisterError::Empty => ErrorCode::Refused,
        _ => ErrorCode::Limit,
    };
    Error::new(code, error.to_string())
}

pub(crate) fn no_fleet() -> Error {
    Error::new(ErrorCode::Forbidden, "the node has no fleet of devices")
}

pub(crate) fn unknown_device(id: &str) -> Error {
    let id = playfield_wire::excerpt(id, 64);
    Error::new(ErrorCode::UnknownDevice, format!("no device is registered as {id:?}"))
}

/// The error for a request to a device that is gone before it answered.
pub(crate) fn device_gone() -> Error {
    Error::new(ErrorCode::UnknownDevice, "the device is gone")
}
