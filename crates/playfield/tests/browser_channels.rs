//! Channels and devices in the browser's client (`playfield.js`), against real nodes: presence,
//! history, recovery after connections that are cut, fleets of JSON and of bytes.
//!
//! Node.js runs it. If it is missing, or has no WebSocket, the test reports that and is skipped.
//! `PLAYFIELD_CUTS` sets how often connections are cut.

mod node_js;

use std::time::Duration;

use playfield::channel::{Access, ChannelRule, Slow};
use playfield::device::{Device, Fleet, FleetSettings, Target};
use playfield::http::Request;
use playfield::prelude::*;
use playfield::{Config, ErrorCode, Identity, NodeHandle};

const PATIENCE: Duration = Duration::from_secs(60);

/// Answers a report by itself and the device's id.
struct Echo;

impl Fleet for Echo {
    fn report(&self, device: &Device, report: &[u8]) -> Result<Vec<u8>> {
        if report == b"\"refuse\"" {
            return Err(Error::new(ErrorCode::Refused, "not this"));
        }
        Ok([b"[", report, b",\"", device.id().as_bytes(), b"\"]"].concat())
    }
}

fn text(request: &Request) -> String {
    String::from_utf8_lossy(request.body()).into_owned()
}

fn param(request: &Request) -> String {
    request.param("name").unwrap_or_default().to_owned()
}

async fn publish(request: Request, node: NodeHandle) -> Result<String> {
    node.publish(&param(&request), &text(&request))?;
    Ok(String::new())
}

async fn request(request: Request, node: NodeHandle) -> Result<String> {
    node.devices().request(&param(&request), &text(&request), PATIENCE).await
}

async fn push(request: Request, node: NodeHandle) -> Result<String> {
    let devices = node.devices().push(Target::tag(param(&request)), &text(&request))?;
    Ok(devices.to_string())
}

async fn request_bytes(request: Request, node: NodeHandle) -> Result<String> {
    let answer = node.devices().request_bytes(&param(&request), request.body(), PATIENCE).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

async fn push_bytes(request: Request, node: NodeHandle) -> Result<String> {
    let devices = node.devices().push_bytes(Target::tag(param(&request)), request.body())?;
    Ok(devices.to_string())
}

fn config(session_grace_ms: u64) -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        shards: 2,
        session_grace_ms,
        // A page that hears itself publishes as fast as it can.
        publishes_per_second_max: 1_000_000,
        messages_per_second_max: 1_000_000,
        // Connections are cut much faster than anyone loses them.
        resumes_per_minute_max: 1_000_000,
        ..Config::default()
    }
}

#[test]
fn a_page_follows_channels_and_is_a_device_over_connections_that_are_cut() {
    let cuts = std::env::var("PLAYFIELD_CUTS").ok().and_then(|cuts| cuts.parse().ok());
    // A token is the user's name.
    let kept = Duration::from_secs(3_600);
    let json = Server::new()
        .authenticate(|hello| async move {
            let user = String::from_utf8_lossy(&hello.token).into_owned();
            if user.is_empty() {
                return Ok(Identity::guest(hello.name));
            }
            Ok(Identity::user(user, hello.name))
        })
        .channel(
            ChannelRule::new("chat:*")
                .publish(Access::User)
                .presence(Access::Anyone)
                .history(100, kept),
        )
        .channel(ChannelRule::new("short").publish(Access::Anyone).history(2, kept))
        .channel(ChannelRule::new("raw").publish(Access::Anyone).history(10, kept).bytes())
        .channel(
            ChannelRule::new("long")
                .publish(Access::Anyone)
                .history(100_000, kept)
                .slow(Slow::Disconnect, 100_000),
        )
        .channel(ChannelRule::new("inbox:{user}"))
        .fleet(Echo, FleetSettings::new())
        .route("POST", "/publish/{name}", publish)
        .route("POST", "/devices/{name}", request)
        .route("POST", "/tags/{name}", push)
        .start(config(600_000))
        .expect("it starts");
    // Its sessions end with their connections.
    let bytes = Server::new()
        .fleet(Echo, FleetSettings::new().bytes())
        .route("POST", "/devices/{name}", request_bytes)
        .route("POST", "/tags/{name}", push_bytes)
        .start(config(0))
        .expect("it starts");
    let cuts: u32 = cuts.unwrap_or(60);
    let ports = [&json, &bytes].map(|node| node.local_addr().port().to_string());
    let arguments = [&ports[..], &[cuts.to_string(), "1".to_owned()]].concat();
    let Some(said) = node_js::run("channels.mjs", &arguments) else { return };
    assert_eq!(said, format!("{cuts} cuts\n"));
    json.shutdown();
    bytes.shutdown();
}
