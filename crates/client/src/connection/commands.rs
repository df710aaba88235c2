//! The task's end of the queue of commands.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::command::Command;

/// The commands that were not carried out yet. At most twice as many as the handles may queue.
pub(super) struct Commands {
    queued: mpsc::Receiver<Command>,
    /// Commands that outlived the session in which they were queued. They come first.
    kept: VecDeque<Command>,
    /// The number of commands taken.
    taken: u64,
}

impl Commands {
    pub(super) fn new(queued: mpsc::Receiver<Command>) -> Self {
        Self { queued, kept: VecDeque::new(), taken: 0 }
    }

    /// Waits for the next command. `None` if there is none, and no handle is left.
    ///
    /// Cancel safety: safe, no command is lost.
    pub(super) async fn recv(&mut self) -> Option<Command> {
        let command = match self.kept.pop_front() {
            Some(command) => Some(command),
            None => self.queued.recv().await,
        };
        self.taken += u64::from(command.is_some());
        command
    }

    /// The next command, if there is one.
    pub(super) fn try_recv(&mut self) -> Option<Command> {
        let command = self.kept.pop_front().or_else(|| self.queued.try_recv().ok());
        self.taken += u64::from(command.is_some());
        command
    }

    /// Returns the number of commands taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of commands that will have been taken when the present queue is empty.
    pub(super) fn end_of_queue(&self) -> u64 {
        self.taken + (self.kept.len() + self.queued.len()) as u64
    }

    /// A new session has begun: commands to the rooms of earlier ones fail. Returns how many of
    /// them were sends.
    pub(super) fn end_session(&mut self, session: u32) -> u64 {
        let mut sends = 0;
        let mut kept = VecDeque::new();
        while let Some(command) = self.try_recv() {
            if command.place.is_none_or(|place| place.session == session) {
                kept.push_back(command);
            } else {
                sends += u64::from(command.is_send);
                command.fail();
            }
        }
        self.kept = kept;
        sends
    }

    /// The connection has ended: commands fail. Returns how many of them were sends.
    pub(super) fn end(&mut self) -> u64 {
        let commands = std::iter::from_fn(|| self.try_recv());
        commands.map(|command| u64::from(command.is_send)).sum()
    }
}
