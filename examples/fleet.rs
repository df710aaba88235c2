//! Fleet: devices report a value, a page shows them, and commands go to one or to all with a tag.
//!
//! `cargo run --bin fleet` serves it on 127.0.0.1:7350: open http://127.0.0.1:7350/, where each page
//! can be a device, too. Devices with a protocol of their own connect to 127.0.0.1:7351, or to
//! `FLEET_LISTEN`. To command them:
//! `curl -d 40 http://127.0.0.1:7350/devices/pump-1` and `curl -d 40 http://127.0.0.1:7350/tags/pump`.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use playfield::NodeHandle;
use playfield::axum::body::Bytes as Body;
use playfield::axum::extract::Path;
use playfield::channel::{Access, ChannelRule};
use playfield::device::{Cursor, Device, Fleet, FleetSettings, Gone, Registration, Target};
use playfield::http::Failure;
use playfield::prelude::*;
use playfield::service::{Command, Frame, NativeFrames, Peer, Service};

/// The channel in which pages read what becomes of devices.
const CHANNEL: &str = "fleet";

/// Something has become of a device.
#[derive(Data)]
struct Change {
    id: String,
    alive: bool,
    value: Option<f64>,
}

/// The program's use of devices, however they are connected.
#[derive(Default)]
struct Pumps {
    node: OnceLock<NodeHandle>,
}

impl Pumps {
    fn tell(&self, device: &Device, alive: bool, value: Option<f64>) {
        let change = Change { id: device.id().to_owned(), alive, value };
        if let Some(Err(error)) = self.node.get().map(|node| node.publish(CHANNEL, &change)) {
            eprintln!("{}: {error}", device.id());
        }
    }
}

impl Fleet for Pumps {
    fn started(&self, node: &NodeHandle) {
        self.node.get_or_init(|| node.clone());
    }

    fn registered(&self, device: &Device) {
        self.tell(device, true, None);
    }

    /// A report is JSON: here a number. The answer is empty.
    fn report(&self, device: &Device, report: &[u8]) -> Result<Vec<u8>> {
        self.tell(device, true, Some(number(report)?));
        Ok(Vec::new())
    }

    fn silent(&self, device: &Device) {
        self.tell(device, false, None);
    }

    fn back(&self, device: &Device) {
        self.tell(device, true, None);
    }

    fn gone(&self, device: &Device, why: Gone) {
        // The one that took its place is alive.
        if why != Gone::TakenOver {
            self.tell(device, false, None);
        }
    }
}

fn number(text: &[u8]) -> Result<f64> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    Ok(number.filter(|number: &f64| number.is_finite()).ok_or("a number is expected")?)
}

/// The devices' own protocol: frames with a length of four bytes, little endian, which hold text.
/// The first is the device's id and its tags, with spaces between; each after it is a value. A
/// frame to the device is the value that it shall have.
struct Wire;

impl Service for Wire {
    type Connection = Option<String>; // the device's id, once it has said it
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) -> Option<String> {
        None
    }

    // An error closes the connection.
    fn received(
        &mut self,
        id: &mut Option<String>,
        frame: Frame<'_>,
        peer: &mut Peer<Self>,
    ) -> playfield::service::Result {
        if let Some(id) = id {
            let (id, value) = (id.clone(), Some(number(frame.body)?));
            return Ok(peer.publish(CHANNEL, &Change { id, alive: true, value })?);
        }
        let mut words = std::str::from_utf8(frame.body)?.split_whitespace();
        let name = words.next().ok_or("the first frame must name the device")?;
        let device = words.fold(Registration::new(name), Registration::tag);
        let connection = peer.id();
        peer.register(connection, device)?;
        *id = Some(name.to_owned());
        Ok(())
    }

    fn command(
        &mut self,
        _: &mut Option<String>,
        command: Command<'_>,
        peer: &mut Peer<Self>,
    ) -> playfield::service::Result {
        peer.reply(command.payload)?;
        if let Some(request) = command.id {
            // The protocol has no answers: the command was sent, and that is all we know.
            peer.answer(request, Ok(command.payload.to_vec()));
        }
        Ok(())
    }
}

/// `GET /devices`: a line each, with the id, whether it is alive, and its tags.
async fn list(node: NodeHandle) -> String {
    let devices = node.devices().list(Cursor::default(), 1_000).devices;
    let line = |device: &Device| {
        let alive = if device.is_silent() { "silent" } else { "alive" };
        format!("{} {alive} {}\n", device.id(), device.tags().join(" "))
    };
    devices.iter().map(|device| line(device)).collect()
}

/// `POST /devices/{id}`, with a value as the body: the value that the device answers.
async fn command(node: NodeHandle, Path(id): Path<String>, body: Body) -> Result<String, Failure> {
    let (value, patience) = (number(&body)?, Duration::from_secs(5));
    let answer: f64 = node.devices().request(&id, &value, patience).await?;
    Ok(format!("{answer}\n"))
}

/// `POST /tags/{tag}`, with a value as the body: to how many devices it was sent.
async fn command_all(
    node: NodeHandle,
    Path(tag): Path<String>,
    body: Body,
) -> Result<String, Failure> {
    let devices = node.devices().push(Target::tag(&tag), &number(&body)?)?;
    Ok(format!("{devices} devices\n"))
}

fn main() -> ExitCode {
    let listen = std::env::var("FLEET_LISTEN").unwrap_or_else(|_| "127.0.0.1:7351".to_owned());
    let Ok(listen) = listen.parse::<SocketAddr>() else {
        eprintln!("FLEET_LISTEN = {listen}: an address and a port are expected");
        return ExitCode::FAILURE;
    };
    Server::new()
        .fleet(Pumps::default(), FleetSettings::new().silent_ms(5_000))
        .channel(ChannelRule::new(CHANNEL).publish(Access::Nobody))
        .service(listen, |_shard| Wire)
        .route("GET", "/devices", list)
        .route("POST", "/devices/{id}", command)
        .route("POST", "/tags/{tag}", command_all)
        .folder("/", concat!(env!("CARGO_MANIFEST_DIR"), "/fleet"))
        .run()
}
