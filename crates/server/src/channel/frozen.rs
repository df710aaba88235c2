//! Channels as values, which go on in another process: their offsets and histories. Sessions
//! subscribe again when they come back, and miss nothing.

use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Bytes, Data};

use crate::channel::channels::{Channels, Full};
use crate::channel::{ChannelRule, Payload, PayloadKind, Publication};

/// A channel. Times are those since the node started.
#[derive(Data, Debug)]
pub(crate) struct ChannelPart {
    pub(crate) name: String,
    pub(crate) epoch: u64,
    pub(crate) offset: u64,
    pub(crate) changes: u64,
    pub(crate) kept: Vec<KeptPart>,
}

/// A publication that is kept.
#[derive(Data, Debug)]
pub(crate) struct KeptPart {
    /// The time at which it is forgotten, in nanoseconds.
    ends: u64,
    offset: u64,
    user: Option<String>,
    payload: Bytes,
}

impl KeptPart {
    pub(crate) fn new(ends: Duration, publication: &Publication) -> Self {
        let Publication { offset, user, payload } = publication;
        let user = user.as_deref().map(str::to_owned);
        let ends = u64::try_from(ends.as_nanos()).unwrap_or(u64::MAX);
        Self { ends, offset: *offset, user, payload: Bytes(payload.as_slice().to_vec()) }
    }

    pub(crate) fn publication(self, kind: PayloadKind) -> (Duration, Publication) {
        let bytes = self.payload.0.into();
        let payload = match kind {
            PayloadKind::Json => Payload::Json(bytes),
            PayloadKind::Bytes => Payload::Bytes(bytes),
        };
        let user = self.user.map(Into::into);
        (Duration::from_nanos(self.ends), Publication { offset: self.offset, user, payload })
    }
}

impl Channels {
    /// All channels, the oldest first: if there may be fewer there, the newest are left out.
    pub(crate) fn parts(&self) -> impl Iterator<Item = ChannelPart> {
        self.all().map(|channel| channel.part())
    }

    /// Lets a channel of another process go on, by the rule that it has here. Nobody is charged for
    /// it any more.
    ///
    /// # Errors
    /// If there are too many channels.
    pub(crate) fn thaw(
        &mut self,
        part: ChannelPart,
        rule: &Arc<ChannelRule>,
        now: Duration,
    ) -> Result<(), Full> {
        let number = self.create(&part.name.as_str().into(), rule, None, now)?;
        self.with(number, now, |channel| channel.go_on(part));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::channels::{Totals, TotalsMax};

    #[test]
    fn channels_are_passed_on_in_the_order_of_their_creation() {
        let max = TotalsMax { channels: 100, history_bytes: 0 };
        let (seeds, totals) = ((7, Default::default()), Arc::new(Totals::new(1)));
        let mut channels = Channels::new((0, 1), seeds, Duration::ZERO, totals, max);
        let rule = Arc::new(ChannelRule::new("*"));
        let names: Vec<String> = (0..100).rev().map(|at| at.to_string()).collect();
        for name in &names {
            channels.create(&name.as_str().into(), &rule, None, Duration::ZERO).unwrap();
        }
        let passed_on: Vec<String> = channels.parts().map(|part| part.name).collect();
        assert_eq!(passed_on, names);
    }
}
