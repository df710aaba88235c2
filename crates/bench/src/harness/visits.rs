//! Clients that connect, say one thing, and wait for the answer.

use std::io;

use playfield_wire::server::ServerMessage;

use super::dialogue::{Dialogue, FORMAT, Frame, Transport};
use super::fleet::{Fleet, Links, Script, wrong};

/// The number of connections opened at once.
pub(crate) const AT_ONCE: usize = 32;

/// An answer so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More has to come.
    Waits,
    /// The connection has served its purpose, and is closed.
    Leaves,
    /// The connection has served its purpose, and stays.
    Stays,
}

/// The script of such clients.
pub(crate) struct Visits<'a> {
    /// The first bytes of a client.
    pub(crate) first: Box<dyn Fn(usize) -> Vec<u8> + 'a>,
    /// Judges the input of a client: how much of it is handled, and what follows.
    pub(crate) heard: Heard<'a>,
    answered: u64,
}

type Heard<'a> = Box<dyn FnMut(usize, &mut [u8]) -> io::Result<(usize, Progress)> + 'a>;

impl<'a> Visits<'a> {
    pub(crate) fn new(
        first: impl Fn(usize) -> Vec<u8> + 'a,
        heard: impl FnMut(usize, &mut [u8]) -> io::Result<(usize, Progress)> + 'a,
    ) -> Self {
        Self { first: Box::new(first), heard: Box::new(heard), answered: 0 }
    }
}

impl Script for Visits<'_> {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        links.send(client, &(self.first)(client)).map(drop)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let (handled, progress) = (self.heard)(client, input)?;
        self.answered += 1;
        links.ready += usize::from(progress != Progress::Waits);
        if progress == Progress::Leaves {
            links.close(client);
        }
        Ok(handled)
    }

    fn progress(&self) -> u64 {
        self.answered
    }
}

impl Fleet<Visits<'_>> {
    /// Sends something on so many connections, and waits until each has heard enough.
    pub(crate) fn ask_all(&mut self, clients: usize) -> io::Result<()> {
        self.links.ready = 0;
        for client in 0..clients {
            self.links.send(client, &(self.script.first)(client))?;
        }
        self.until(|_, links| links.ready == clients);
        Ok(())
    }
}

/// A message to a client that waits for another.
pub(crate) enum Verdict {
    /// The message that is waited for.
    Wanted,
    /// A message that may come before.
    Passing,
    Wrong,
}

/// Takes messages up to the one that is wanted, in native framing. Pings may always come.
pub(crate) fn messages(
    input: &[u8],
    then: Progress,
    judge: impl Fn(&ServerMessage<'_>) -> Verdict,
) -> io::Result<(usize, Progress)> {
    let mut handled = 0;
    while let Some((frame, consumed)) = Dialogue::new(Transport::Tcp).frame(&input[handled..])? {
        handled += consumed;
        let Frame::Message(body) = frame else { continue };
        let message =
            ServerMessage::decode(FORMAT, body).map_err(|error| wrong(&error.to_string()))?;
        match judge(&message) {
            Verdict::Wanted => return Ok((handled, then)),
            Verdict::Passing => {}
            Verdict::Wrong if matches!(message, ServerMessage::Ping(_)) => {}
            Verdict::Wrong => return Err(wrong(&format!("an unexpected message: {message:?}"))),
        }
    }
    Ok((handled, Progress::Waits))
}
