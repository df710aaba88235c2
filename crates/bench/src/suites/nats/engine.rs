//! The engine's side.

use std::time::Instant;

use playfield_cluster::{Answer, Command, Engine as _, EngineEvent, Incarnation};
use playfield_nats::{NatsEngine, Settings};

use super::{Numbers, Options, RECORD, Result, Round};

/// Makes records. Each must be new.
pub(super) async fn creates(
    url: &str,
    round: usize,
    options: &Options,
    is_corrupt: bool,
) -> Result<Round> {
    let mut engine = NatsEngine::connect(Settings::new(url, "bench")).await?;
    let (mut begun, mut made, mut is_right) = (0, 0, true);
    let mut last = 0;
    let began = Instant::now();
    while made < options.creates {
        while begun < options.creates && begun - made < options.in_flight {
            // The name of one that is there.
            let number = if is_corrupt && begun + 1 == options.creates { 0 } else { begun };
            let key = format!("r.{round}.{number}").into();
            engine.begin(Command::Write { key, value: RECORD.to_vec(), expect: 0, tag: begun });
            begun += 1;
        }
        engine.ready().await;
        while let Some(event) = engine.next() {
            let EngineEvent::Answered { result, .. } = event else { continue };
            made += 1;
            match result {
                Ok(Answer::Written(revision)) => {
                    is_right &= revision > last;
                    last = revision;
                }
                _ => is_right = false,
            }
        }
    }
    Ok(Round { took: began.elapsed(), is_right })
}

/// Sends messages from one engine to another.
pub(super) async fn messages(url: &str, options: &Options, is_corrupt: bool) -> Result<Round> {
    let mut from = NatsEngine::connect(Settings::new(url, "bench")).await?;
    let mut to = NatsEngine::connect(Settings::new(url, "bench")).await?;
    let incarnation = Incarnation(1);
    to.begin(Command::Listen { slot: 1, incarnation });
    // The server listens when it has answered what was sent next.
    to.begin(Command::Read { key: "n.1".into(), tag: 0 });
    to.ready().await;

    let mut numbers = Numbers::new(options.payload);
    let mut sent = 0;
    let began = Instant::now();
    while numbers.received < options.messages {
        while sent < options.messages && sent - numbers.received < options.window {
            let number = if is_corrupt && sent == 0 { 1 } else { sent };
            let bytes = numbers.message(number);
            from.begin(Command::Send { to: 1, incarnation, bytes });
            sent += 1;
        }
        to.ready().await;
        while let Some(event) = to.next() {
            match event {
                EngineEvent::Delivered { bytes } => numbers.receive(&bytes),
                EngineEvent::Interrupted => return Err("messages were dropped".into()),
                _ => {}
            }
        }
    }
    Ok(numbers.end(began))
}
