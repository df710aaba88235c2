//! Connections that say nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use playfield_websocket::Opcode;
use playfield_wire::ErrorCode;
use playfield_wire::server::ServerMessage;

use super::connection::{End, Transport};
use super::{Action, Shard};
use crate::slab::Key;

/// When connections are next to be looked at. What comes meanwhile moves nothing here: when the time is there, the connection says when it
/// was last heard, and is put back. So a message costs nothing, and no scan is needed.
#[derive(Default)]
pub(super) struct Timeouts(BinaryHeap<Reverse<(Duration, Key)>>);

impl Timeouts {
    pub(super) fn set(&mut self, at: Duration, key: Key) {
        self.0.push(Reverse((at, key)));
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    fn take_due(&mut self, now: Duration) -> Option<Key> {
        self.0.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.0.pop().map(|Reverse((_, key))| key)
    }
}

impl Shard {
    /// Looks at the connections whose time has come.
    pub(super) fn check_timeouts(&mut self) {
        while let Some(key) = self.net.timeouts.take_due(self.now) {
            self.check_timeout(key);
        }
    }

    fn check_timeout(&mut self, key: Key) {
        let now = self.now;
        let hello = Duration::from_millis(self.node.config.hello_timeout_ms);
        let heartbeat = Duration::from_millis(self.node.config.heartbeat_ms);
        let Some(connection) = self.net.connections.get(key) else { return };
        match connection.end {
            End::Flushing(deadline) | End::Lingering(deadline) => {
                if deadline <= now {
                    self.net.actions.push(Action::Close(key));
                }
                return;
            }
            End::Open => {}
        }
        if connection.session.is_none() {
            let deadline = connection.born + hello;
            if deadline > now {
                self.net.timeouts.set(deadline, key);
            } else if matches!(connection.transport, Transport::Unknown | Transport::Http) {
                self.net.finish(key);
            } else {
                let text = format!("no hello within hello_timeout_ms = {}", hello.as_millis());
                self.net.fail(key, ErrorCode::Timeout, &text);
            }
            return;
        }
        let silent = now.saturating_sub(connection.heard);
        let heard = connection.heard;
        if silent >= 2 * heartbeat {
            let text = format!("nothing was heard of you for twice heartbeat_ms = {}", heartbeat.as_millis());
            self.net.fail(key, ErrorCode::Timeout, &text);
        } else if silent >= heartbeat / 2 {
            if matches!(connection.transport, Transport::WebSocket(_)) {
                self.net.put_control(key, Opcode::Ping, &[]);
            } else {
                self.net.say(key, &ServerMessage::Ping { nonce: 0 });
            }
            self.net.timeouts.set((now + heartbeat / 2).min(heard + 2 * heartbeat), key);
        } else {
            self.net.timeouts.set(heard + heartbeat / 2, key);
        }
    }
}
