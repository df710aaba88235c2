//! A node that plays a script, as `conformance/README.md` says: one connection after the other, it
//! waits for the client's messages, and says what the script has, however wrong.

mod messages;
mod peer;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use playfield::Format;
use serde_json::{Value, json};
use tokio::sync::watch;

use messages::Session;
use peer::{Heard, Peer};

type Outcome<T> = std::result::Result<T, String>;

/// A port of 127.0.0.1 at which a script is played.
pub(crate) struct Scripted {
    port: u16,
    /// The outcome, once the script has been played.
    played: watch::Sender<Option<Outcome<()>>>,
}

impl Scripted {
    /// Plays the script of a scenario.
    pub(crate) fn start(scenario: &str) -> Outcome<Arc<Self>> {
        let script = script(scenario)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(said)?;
        let port = listener.local_addr().map_err(said)?.port();
        let scripted = Arc::new(Self { port, played: watch::Sender::new(None) });
        let playing = Arc::clone(&scripted);
        thread::spawn(move || {
            let played = playing.play(&listener, &script);
            playing.played.send_if_modified(|known| {
                let is_news = known.is_none();
                known.get_or_insert(played);
                is_news
            });
        });
        Ok(scripted)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the script has been played. An error says what the client did in place of what
    /// the script has.
    pub(crate) async fn until_played(&self) -> Outcome<()> {
        let mut played = self.played.subscribe();
        let played = played.wait_for(Option::is_some).await.map_err(said)?;
        played.clone().unwrap_or(Ok(()))
    }

    fn play(&self, listener: &TcpListener, script: &[Value]) -> Outcome<()> {
        let (mut session, mut last) = (Session::default(), Instant::now());
        for (index, steps) in script.iter().enumerate() {
            let (stream, _) = listener.accept().map_err(said)?;
            let away = last.elapsed();
            let peer = Peer::new(stream);
            let mut connection = Connection { peer, away, session: &mut session };
            for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
                let at = |why| format!("connection {}, {}, {step}: {why}", index + 1, place + 1);
                connection.step(step).map_err(at)?;
            }
            if index + 1 == script.len() {
                self.played.send_replace(Some(Ok(())));
                // The client may go on as long as it likes.
                while connection.next().is_ok_and(|heard| heard.is_some()) {}
            }
            last = Instant::now();
        }
        Ok(())
    }
}

struct Connection<'s> {
    peer: Peer,
    /// The time without a connection before this one.
    away: Duration,
    session: &'s mut Session,
}

impl Connection<'_> {
    fn step(&mut self, step: &Value) -> Outcome<()> {
        if let Some(kind) = step["hear"].as_str() {
            return self.hear(kind, &step["has"]);
        }
        if let Some(has) = step.get("enters") {
            self.hear("hello", has)?;
            self.say(&[json!({ "type": "welcome" })], 1)?;
            self.hear("join", &Value::Null)?;
            self.say(&[json!({ "type": "joined" }), json!({ "type": "snapshot" })], 1)?;
            return self.until_schema();
        }
        if let Some(unhandled) = step.get("resumes") {
            self.hear("hello", &json!({ "resume": {} }))?;
            let resumed = json!({ "unhandled": unhandled });
            return self.say(&[json!({ "type": "welcome", "resumed": resumed })], 1);
        }
        if let Some(say) = step.get("say") {
            // A list is sent at once.
            let all = say.as_array().map_or(std::slice::from_ref(say), Vec::as_slice);
            let times = step["times"].as_u64().unwrap_or(1);
            return self.say(all, times);
        }
        if let Some(vector) = step["refused"].as_u64() {
            let body = messages::refused(vector as usize, self.peer.format())?;
            let mut bytes = Vec::new();
            self.peer.frame(&body, &mut bytes);
            return self.peer.write(&bytes);
        }
        if let Some(hex) = step["raw"].as_str() {
            return self.peer.write(&messages::hex(hex)?);
        }
        if let Some(least) = step["away_ms"].as_u64() {
            let is_long = self.away >= Duration::from_millis(least);
            return if is_long { Ok(()) } else { Err(format!("it came after {:?}", self.away)) };
        }
        match &step["end"] {
            Value::Null => {}
            Value::Number(code) => return self.peer.close(code.as_u64().unwrap_or(1000) as u16),
            _ => return self.peer.end(),
        }
        match step["wait"].as_str() {
            Some("schema") => self.until_schema(),
            Some("end") => {
                while self.next()?.is_some() {}
                Ok(())
            }
            _ => Err("this step is unknown".to_owned()),
        }
    }

    /// Waits until the client has the schema, if it can't read states without it.
    fn until_schema(&mut self) -> Outcome<()> {
        let needs_it = self.peer.format() == Format::Packed && !self.session.told_schema();
        if needs_it { self.hear("schema", &Value::Null) } else { Ok(()) }
    }

    /// Says messages at once, so many times.
    fn say(&mut self, all: &[Value], times: u64) -> Outcome<()> {
        let mut bytes = Vec::new();
        for message in (0..times).flat_map(|_| all) {
            let body = self.session.message(message, self.peer.format())?;
            self.peer.frame(&body, &mut bytes);
        }
        self.peer.write(&bytes)
    }

    /// Waits for a message of this type, and passes over what every client may say at any time.
    fn hear(&mut self, kind: &str, has: &Value) -> Outcome<()> {
        loop {
            let heard = self.next()?.ok_or("the client has closed the connection")?;
            if heard.kind() == kind {
                return heard.check(has);
            }
            let is_usual = ["ping", "pong", "ack", "schema"].contains(&heard.kind());
            if !is_usual {
                return Err(format!("the client said {}", heard.json));
            }
        }
    }

    /// The client's next message. Pings and requests for schemas are answered.
    fn next(&mut self) -> Outcome<Option<Heard>> {
        let Some(heard) = self.peer.next()? else { return Ok(None) };
        if let Some(answer) = self.session.hear(&heard) {
            self.say(&[answer], 1)?;
        }
        Ok(Some(heard))
    }
}

/// The script of a scenario: its member `node`.
fn script(scenario: &str) -> Outcome<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    for entry in fs::read_dir(folder).map_err(said)? {
        let file = fs::read_to_string(entry.map_err(said)?.path()).map_err(said)?;
        let group: Value = serde_json::from_str(&file).map_err(said)?;
        let all = group["scenarios"].as_array().into_iter().flatten();
        if let Some(found) = all.into_iter().find(|one| one["name"] == scenario) {
            let script = found["node"].as_array();
            return script.cloned().ok_or_else(|| format!("{scenario} has no node"));
        }
    }
    Err(format!("the scenario {scenario:?} is unknown"))
}

fn said(error: impl ToString) -> String {
    error.to_string()
}

/// Returns whether a client has hung up.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

/// Half of a connection is closed.
fn shut(stream: &TcpStream) -> Outcome<()> {
    match stream.shutdown(std::net::Shutdown::Write) {
        Err(error) if !is_end(&error) => Err(said(error)),
        _ => Ok(()),
    }
}
