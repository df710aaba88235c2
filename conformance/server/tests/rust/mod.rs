//! The Rust client plays the scenarios.

mod client;
mod expectations;
mod values;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use playfield::client::connect;
use playfield::{Bytes, Data as _};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::files::{LeftOut, Scenario, scenarios, scenarios_of};
use client::Client;
use values::{equal, is_connection_lost, said, taken, text};

/// A step that takes longer has failed.
const STEP_MAX: Duration = Duration::from_secs(20);

type Step = Map<String, Value>;
type Outcome<T> = Result<T, String>;

#[test]
fn the_rust_client_plays_all_scenarios() {
    let server = playfield_conformance::start(None).expect("a free port");
    let (url, left_out) = (server.url(), LeftOut::of("rust"));
    let runs = AtomicUsize::new(1);
    let cuts = std::env::var("PLAYFIELD_CUTS").map_or(200, |cuts| cuts.parse().expect("a number"));
    let mut all = scenarios();
    all.extend(scenarios_of(&playfield_conformance::plays(cuts, true)));
    // With the beginning of a name, only those that begin so.
    let begins = std::env::var("PLAYFIELD_SCENARIOS").unwrap_or_default();
    all.retain(|scenario| scenario.name.starts_with(&begins));
    for scenario in &all {
        if let Some(why) = left_out.why_not(scenario) {
            println!("left out: {}: {why}", scenario.name);
        }
    }
    assert_eq!(left_out.formats, ["packed"], "the formats of the Rust client");
    let play_all = |transport: &str| -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a thread's runtime");
        let mut failed = Vec::new();
        for scenario in all.iter().filter(|one| left_out.why_not(one).is_none()) {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let mut play = Play::new(&url, transport, run, &left_out);
            if let Err(why) = runtime.block_on(play.all(scenario)) {
                failed.push(format!("{} over {transport}: {why}", scenario.name));
            }
        }
        failed
    };
    let failed: Vec<String> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for transport in &left_out.transports {
            threads.push(scope.spawn(|| play_all(transport)));
        }
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    server.shutdown();
    let runs = runs.into_inner() - 1;
    assert!(failed.is_empty(), "{} of {runs} failed:\n{}", failed.len(), failed.join("\n"));
}

/// A scenario that is played.
struct Play<'a> {
    controls: &'a str,
    transport: &'a str,
    run: String,
    left_out: &'a LeftOut,
    clients: HashMap<String, Client>,
}

impl<'a> Play<'a> {
    fn new(url: &'a str, transport: &'a str, run: usize, left_out: &'a LeftOut) -> Self {
        let controls = url.trim_start_matches("http://");
        let run = format!("r{run}");
        Self { controls, transport, run, left_out, clients: HashMap::new() }
    }

    async fn all(&mut self, scenario: &Scenario) -> Outcome<()> {
        for (index, step) in scenario.steps.iter().enumerate() {
            let step = Value::from(step.clone());
            let played = match self.filled(&step) {
                Ok(Value::Object(step)) => timeout(STEP_MAX, self.step(&step)).await,
                Ok(_) => Ok(Err("it is not an object".to_owned())),
                Err(why) => Ok(Err(why)),
            };
            let played = played.unwrap_or_else(|_| Err(format!("nothing in {STEP_MAX:?}")));
            played.map_err(|why| format!("step {}, {step}: {why}", index + 1))?;
        }
        for (_, client) in self.clients.drain() {
            drop((client.rooms, client.answers, client.channels, client.device));
            client.connection.close().await;
        }
        Ok(())
    }

    /// A step with its references replaced.
    fn filled(&self, value: &Value) -> Outcome<Value> {
        Ok(match value {
            Value::String(text) => Value::from(self.filled_text(text)?),
            Value::Array(values) => {
                values.iter().map(|value| self.filled(value)).collect::<Outcome<_>>()?
            }
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), self.filled(value)?)))
                    .collect::<Outcome<_>>()?,
            ),
            other => other.clone(),
        })
    }

    fn filled_text(&self, text: &str) -> Outcome<String> {
        let Some((before, rest)) = text.split_once("${") else { return Ok(text.to_owned()) };
        let (name, after) = rest.split_once('}').ok_or("a reference has no end")?;
        let parts: Vec<&str> = name.split('.').collect();
        let filling = match parts[..] {
            ["run"] => self.run.clone(),
            [client, room, member] => {
                let room = self.client(client)?.room(room)?;
                match member {
                    "id" => room.id().to_owned(),
                    "key" => room.key().ok_or("the room has no key")?.to_owned(),
                    "player" => room.player().to_string(),
                    _ => return Err(format!("a room has no {member}")),
                }
            }
            _ => return Err(format!("{name} refers to nothing")),
        };
        Ok(format!("{before}{filling}{}", self.filled_text(after)?))
    }

    fn client(&self, name: &str) -> Outcome<&Client> {
        self.clients.get(name).ok_or_else(|| format!("{name} is not connected"))
    }

    async fn step(&mut self, step: &Step) -> Outcome<()> {
        let kind = step.get("expect").or_else(|| step.get("do")).and_then(Value::as_str);
        if kind.is_some_and(|kind| self.left_out.steps.contains_key(kind)) {
            return Ok(());
        }
        if step.contains_key("expect") {
            return self.expect(text(step, "expect")?, step).await;
        }
        let name = text(step, "client")?;
        if text(step, "do")? == "connect" {
            let way = step.get("link").and_then(Value::as_str).map(|node| format!("/{node}"));
            let way = way.unwrap_or_default();
            let link = control(self.controls, &format!("/link{way}")).await?;
            let tls = step.get("tls") == Some(&Value::Bool(true));
            let scheme = match self.transport {
                "ws" if tls => "wss",
                _ if tls => "tls",
                other => other,
            };
            let token = step.get("token").and_then(Value::as_str).unwrap_or_default();
            let mut connecting = connect(&format!("{scheme}://{link}"))
                .name(step.get("name").and_then(Value::as_str).unwrap_or(name))
                .token(token.as_bytes())
                .deflate(true)
                .backoff(Duration::from_millis(5), Duration::from_millis(20));
            if step.get("reconnects") == Some(&Value::Bool(false)) {
                connecting = connecting.reconnect_timeout(Duration::ZERO);
            }
            if tls && step.get("trusts") != Some(&Value::Bool(false)) {
                let certificate = control(self.controls, &format!("/certificate{way}")).await?;
                let certificate = Value::from(certificate);
                let Bytes(certificate) = Bytes::from_json(&certificate).map_err(said)?;
                connecting = connecting.root_certificate(&certificate);
            }
            if let Some(tokens) = step.get("tokens").and_then(Value::as_array) {
                let tokens: Vec<String> =
                    tokens.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                let asked = AtomicUsize::new(0);
                connecting = connecting.token_by(move || {
                    let turn = asked.fetch_add(1, Ordering::Relaxed).min(tokens.len() - 1);
                    let token = tokens[turn].clone();
                    async move { Ok::<_, Infallible>(token) }
                });
            }
            let connected = connecting.await;
            let Some(connection) = taken(step, connected)? else { return Ok(()) };
            let client = Client {
                link,
                statuses: connection.events(),
                connection,
                rooms: HashMap::new(),
                changes: HashMap::new(),
                answers: HashMap::new(),
                channels: HashMap::new(),
                device: None,
                commands: None,
            };
            self.clients.insert(name.to_owned(), client);
            return Ok(());
        }
        let controls = self.controls;
        if text(step, "do")? == "close" {
            let client = self.clients.get(name).ok_or("it is not connected")?;
            client.connection.clone().close().await;
            return Ok(());
        }
        self.clients.get_mut(name).ok_or("it is not connected")?.act(controls, step).await
    }

    async fn expect(&mut self, kind: &str, step: &Step) -> Outcome<()> {
        let controls = self.controls;
        let client = self.clients.get_mut(text(step, "client")?).ok_or("it is not connected")?;
        match kind {
            "lost_patch" | "spoiled_check" | "snapshot" | "all_cut" | "played" => {
                control(controls, &client.action(kind)).await.map(drop)
            }
            "answer" => {
                let answer = client.answers.remove(text(step, "as")?).ok_or("no such request")?;
                let answer = answer.await.map_err(said)?;
                if step.get("lost").is_some() {
                    let error = answer.err().ok_or("it was answered")?;
                    let is_unknown =
                        error.is_lost() || error.code().is_some_and(is_connection_lost);
                    return if is_unknown { Ok(()) } else { Err(format!("{error:?}")) };
                }
                let Some(reply) = taken(step, answer)? else { return Ok(()) };
                equal(&step["reply"], &reply)
            }
            "status" => client.expect_status(step).await,
            "commanded" => {
                let commands = client.commands.as_mut().ok_or("the client is not a device")?;
                let payload = commands.recv().await.ok_or("the device is no longer registered")?;
                equal(&step["payload"], &payload)
            }
            "publication" | "publications" | "presence" | "subscribed" | "unsubscribed" => {
                client.expect_in_channel(kind, step).await
            }
            _ => client.expect_in_room(kind, step).await,
        }
    }
}

/// Asks the scenario server for something.
async fn control(server: &str, path: &str) -> Outcome<String> {
    let mut stream = TcpStream::connect(server).await.map_err(said)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(said)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(said)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the control did not answer")?;
    if head.starts_with("HTTP/1.1 200 ") { Ok(body.to_owned()) } else { Err(body.to_owned()) }
}
