//! Tests of a fleet's loop.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;

use super::{Fleet, Links, Script, TURN_BYTES};
use crate::harness::source::Source;

/// Reads more slowly than the server sends, so that its socket always has more.
#[derive(Default)]
struct Slow {
    received: usize,
    turns: usize,
    sum: u8,
}

impl Script for Slow {
    fn opened(&mut self, _: usize, links: &mut Links) -> io::Result<()> {
        links.ready += 1;
        Ok(())
    }

    fn receive(&mut self, _: usize, input: &mut [u8], _: &mut Links) -> io::Result<usize> {
        self.received += input.len();
        for _ in 0..4 {
            self.sum = input.iter().fold(self.sum, |sum, byte| sum.wrapping_add(*byte));
        }
        if self.received > 64 * TURN_BYTES {
            return Err(io::Error::other("enough"));
        }
        Ok(input.len())
    }

    fn due(&mut self, _: &mut Links) -> io::Result<Duration> {
        self.turns += 1;
        Ok(Duration::from_secs(1))
    }

    fn progress(&self) -> u64 {
        self.received as u64
    }
}

#[test]
fn a_server_that_sends_without_end_does_not_keep_the_loop_from_its_turns() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = listener.local_addr().unwrap();
    let sender = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let bytes = vec![1; TURN_BYTES];
        while stream.write_all(&bytes).is_ok() {}
    });
    let source = Source::Each { addresses: 1, resets: false };
    let mut fleet = Fleet::new(Slow::default(), server, source, None).unwrap();
    fleet.connect(0..1, 1);
    fleet.until(|_, _| false);
    assert!(fleet.fault.as_deref().is_some_and(|fault| fault.contains("enough")));
    let turns = fleet.script.turns;
    assert!(turns >= 64, "{turns} turns for 64 times the bytes of one");
    drop(fleet);
    sender.join().unwrap();
}
