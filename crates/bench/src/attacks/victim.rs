//! The player under attack.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RequestNumber};

/// How long to wait for a patch before the watch fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the player observed.
pub(super) struct Watch {
    /// The times between patches.
    pub(super) intervals_ms: Vec<f64>,
    pub(super) time: Duration,
    /// What was wrong, if anything.
    pub(super) fault: Option<String>,
}

/// Joins a room that changes 20 times a second, and records for `time` when patches arrive.
pub(super) fn watch(node: SocketAddr, time: Duration, corrupt_one: bool) -> io::Result<Watch> {
    let mut stream = TcpStream::connect(node)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut out = PREAMBLE.to_vec();
    let join = ClientMessage::Create {
        request: RequestNumber(1),
        room_type: "watched".into(),
        private: true,
        code: false,
        key: None,
        options: &[],
    };
    for message in [ClientMessage::Hello(Hello::new(Format::Packed)), join] {
        write_frame_with(&mut out, |out| message.encode(Format::Packed, out));
    }
    stream.write_all(&out)?;
    let mut watch = Watch { intervals_ms: Vec::new(), time: Duration::ZERO, fault: None };
    let framing = Framing { message_bytes_max: 1 << 20 };
    let (mut input, mut bytes) = (Vec::new(), vec![0; 64 << 10]);
    let (mut version, mut last) = (None, None);
    let mut corrupt = corrupt_one;
    let began = Instant::now();
    while began.elapsed() < time && watch.fault.is_none() {
        let count = stream.read(&mut bytes)?;
        let now = Instant::now();
        if count == 0 {
            watch.fault = Some("the node closed the player's connection".to_owned());
        }
        input.extend_from_slice(&bytes[..count]);
        while let Some(frame) = framing.decode(&input).map_err(io::Error::other)? {
            match ServerMessage::decode(Format::Packed, frame.body).map_err(io::Error::other)? {
                ServerMessage::Snapshot { version: first, .. } => version = Some(first),
                ServerMessage::Patch { base, version: next, .. } => {
                    let base = if std::mem::take(&mut corrupt) { base + 1 } else { base };
                    if version != Some(base) {
                        watch.fault = Some(format!("a patch of {base} came to {version:?}"));
                    }
                    version = Some(next);
                    if let Some(last) = last.replace(now) {
                        let interval: Duration = now - last;
                        watch.intervals_ms.push(interval.as_secs_f64() * 1e3);
                    }
                }
                ServerMessage::Error { code, text, .. } | ServerMessage::Goodbye { code, text } => {
                    watch.fault = Some(format!("{code}: {text}"));
                }
                _ => {}
            }
            let consumed = frame.consumed;
            input.drain(..consumed);
        }
    }
    watch.time = began.elapsed();
    // The wait since the last patch counts too. Otherwise a stalled node would look even.
    if let Some(last) = last {
        let open: Duration = Instant::now() - last;
        if open > Duration::from_millis(50) {
            watch.intervals_ms.push(open.as_secs_f64() * 1e3);
        }
    }
    Ok(watch)
}
