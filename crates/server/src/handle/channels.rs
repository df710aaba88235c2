//! Channels, from outside the node's rooms.

use playfield_room::{Publication, Result};
use playfield_state::Data;

use super::NodeHandle;
use crate::channel::{Payload, home_of};
use crate::shard::mail::ShardMail;
use crate::shard::mail::channel::ChannelMail;
use crate::shard::topics::channels::payload_of;

impl NodeHandle {
    /// Publishes a value in a channel whose payloads are JSON. It reaches all who subscribe there,
    /// in the order in which this thread publishes.
    ///
    /// # Errors
    /// `unknown_channel` if no rule matches the name, `bad_payload` if payloads of the channel are
    /// bytes, `limit` if the name or the payload is too large, `busy` if the mailbox of the
    /// channel's shard is full (`limits.queues.mail`), `internal` if that shard has failed, or
    /// `shutting_down`.
    pub fn publish(&self, channel: &str, value: &impl Data) -> Result<()> {
        self.publish_payload(channel, payload_of(Publication::json(channel, value).payload))
    }

    /// Publishes bytes in a channel whose payloads are bytes, as [`publish`](Self::publish).
    ///
    /// # Errors
    /// As [`publish`](Self::publish), and `bad_payload` if payloads of the channel are JSON.
    pub fn publish_bytes(&self, channel: &str, bytes: &[u8]) -> Result<()> {
        self.publish_payload(channel, Payload::Bytes(bytes.into()))
    }

    fn publish_payload(&self, channel: &str, payload: Payload) -> Result<()> {
        self.node.check_publication(channel, &payload)?;
        let home = home_of(channel, self.node.shards);
        let name = channel.into();
        let mail = ChannelMail::Publish { name, user: None, payload, creator: None, answers: None };
        self.post(home, ShardMail::Channel(Box::new(mail)))
    }
}
