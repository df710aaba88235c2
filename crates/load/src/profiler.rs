//! Bytes by field of what some connections of one room are sent.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use playfield_client::session::UpdateKind;
use playfield_state::{FieldCounts, FieldProfile, PlayerId, StateProfile};
use playfield_wire::schema::Type;

/// Counts what connections are sent, by field. Set it in
/// [`Settings::profiler`](crate::Settings::profiler), and read it after the load.
#[derive(Clone, Default)]
pub struct Profiler(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    profile: Option<StateProfile>,
    patches: u64,
    is_wrong: bool,
}

/// The counts of a [`Profiler`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiled {
    /// How many patches were counted: one for each sync and player that something has changed for.
    pub patches: u64,
    /// The bytes of these patches.
    pub bytes: FieldCounts,
    /// The fields. Their bytes in patches add up to `bytes`.
    pub fields: Vec<FieldProfile>,
}

impl Profiler {
    /// The counts; `None` if nothing was sent, or a body could not be read.
    #[must_use]
    pub fn profiled(&self) -> Option<Profiled> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let profile = counted.profile.as_ref().filter(|_| !counted.is_wrong)?;
        Some(Profiled {
            patches: counted.patches,
            bytes: profile.patches(),
            fields: profile.fields(),
        })
    }

    /// Counts a body that a player of a room with this state is sent.
    pub(crate) fn count(&self, of: &Type, player: u64, kind: UpdateKind, body: &[u8]) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = &mut *counted;
        if counted.profile.is_none() {
            counted.profile = StateProfile::new(of).ok();
        }
        let Some(profile) = &mut counted.profile else { return };
        let read = match kind {
            UpdateKind::Snapshot => profile.snapshot(PlayerId(player), body),
            UpdateKind::Patch => profile.patch(PlayerId(player), body),
        };
        counted.is_wrong |= read.is_err();
        counted.patches += u64::from(kind == UpdateKind::Patch);
    }
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Profiler")
    }
}
