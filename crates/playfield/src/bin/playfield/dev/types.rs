//! Types of the rooms for the page.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use super::Event;
use super::group::Group;

/// The time that a program may take to write its types. One that does not know the command serves
/// instead, and does not end.
pub(super) const TYPES_MAX: Duration = Duration::from_secs(10);

/// A program that writes its types. It ends when this is dropped.
pub(super) struct Types {
    _group: Group,
    began: Instant,
}

impl Types {
    /// Has a program write its types into a folder. It leaves files that are right already. When it
    /// has ended, it sends [`Event::Typed`] with `number`; what failed, it has said itself.
    pub(super) fn write(
        program: &Path,
        folder: &Path,
        number: u64,
        events: &SyncSender<Event>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(["generate", "typescript", "--out"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let mut stdout = group.stdout().expect("standard output is a pipe");
        let events = events.clone();
        thread::spawn(move || {
            // It ends when the program does.
            let mut part = [0; 4096];
            while stdout.read(&mut part).is_ok_and(|read| read > 0) {}
            let _ = events.send(Event::Typed { number });
        });
        Ok(Self { _group: group, began: Instant::now() })
    }

    /// Whether it has taken longer than [`TYPES_MAX`].
    pub(super) fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) > TYPES_MAX
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use super::{Event, TYPES_MAX, Types};

    #[test]
    fn a_program_that_does_not_end_is_late() {
        let (sender, events) = sync_channel(1);
        // `yes` prints its arguments for ever.
        let types = Types::write(Path::new("yes"), Path::new("types"), 7, &sender).unwrap();
        let last = types.began + TYPES_MAX;
        assert!(!types.is_late(last) && types.is_late(last + Duration::from_nanos(1)));
        drop(types);
        assert!(matches!(events.recv(), Ok(Event::Typed { number: 7 })));
    }
}
