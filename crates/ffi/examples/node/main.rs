//! A node for the examples and tests of the C++ client: `cargo run -p playfield-ffi --example
//! node`.
//!
//! It prints one line: an address for `tcp://` and `ws://`, one for `tls://` and `wss://`, the file
//! with the certificate of the latter, and the address of a node that redirects joins to the first.
//! It ends when its standard input does. With an argument it listens there, such as on
//! 127.0.0.1:7350.

mod gate;

use std::io::{Read as _, Write as _, stdin, stdout};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use playfield::NodeHandle;
use playfield::channel::{Access, ChannelRule};
use playfield::device::{Device, Fleet, FleetSettings, Target};
use playfield::prelude::*;
use playfield::{Config, ErrorCode, Guests, LevelFilter, Running};

/// How long publications are kept, and devices are waited for.
const KEPT: Duration = Duration::from_secs(60);

/// Greets, counts and sends back.
#[derive(State, Default)]
struct Hello {
    greeting: String,
    count: i64,
    players: Map<PlayerId, Seat>,
    log: List<String>,
}

#[derive(State, Default)]
struct Seat {
    name: String,
    said: u32,
}

#[derive(Data, Default)]
struct Setup {
    greeting: String,
}

/// Adds to the number. The reply is the new value.
#[derive(Message)]
#[reply(i64)]
struct Add(i64);

/// Says something to all, as an event and in the log.
#[derive(Message)]
struct Say {
    text: String,
}

#[derive(Message)]
struct Said {
    by: PlayerId,
    text: String,
}

#[room(messages(Add, Say), events(Said), sync_hz = 50, capacity = 10_000)]
impl Room for Hello {
    type Options = Setup;

    fn create(Setup { greeting }: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { greeting, ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if player.name() == "Nobody" {
            return Err(Error::with_code(1001, "nobody may join"));
        }
        self.players.insert(player.id(), Seat { name: player.name().to_owned(), said: 0 });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
    }
}

impl Handle<Add> for Hello {
    fn handle(&mut self, Add(number): Add, _: &Player, _: &mut Context<Self>) -> Result<i64> {
        self.count = self.count.checked_add(number).ok_or("the count would overflow")?;
        Ok(self.count)
    }
}

impl Handle<Say> for Hello {
    fn handle(&mut self, Say { text }: Say, by: &Player, cx: &mut Context<Self>) -> Result<()> {
        if text.is_empty() {
            return Err("say something".into());
        }
        if let Some(seat) = self.players.get_mut(&by.id()) {
            seat.said += 1;
        }
        self.log.push(text.clone());
        cx.emit(&Said { by: by.id(), text });
        Ok(())
    }
}

/// What echoes are measured with, as in `playfield-bench echo`.
mod hall {
    use playfield::prelude::*;

    /// Is answered with an event.
    #[derive(Message)]
    pub(super) struct Say {
        data: Bytes,
    }

    /// Is answered with a reply.
    #[derive(Message)]
    #[reply(Bytes)]
    pub(super) struct Ask {
        data: Bytes,
    }

    #[derive(Message)]
    pub(super) struct Said {
        data: Bytes,
    }

    /// Sends what players say back to them.
    #[derive(State, Default)]
    pub(super) struct Hall {
        nothing: u8,
    }

    #[room(messages(Say, Ask), events(Said), capacity = 100)]
    impl Room for Hall {}

    impl Handle<Say> for Hall {
        fn handle(&mut self, say: Say, by: &Player, cx: &mut Context<Self>) -> Result<()> {
            cx.emit_to(by.id(), &Said { data: say.data });
            Ok(())
        }
    }

    impl Handle<Ask> for Hall {
        fn handle(&mut self, ask: Ask, _: &Player, _: &mut Context<Self>) -> Result<Bytes> {
            Ok(ask.data)
        }
    }
}

/// Devices that may ask for commands: the reply to a report is the report.
#[derive(Default)]
struct Meters {
    node: OnceLock<NodeHandle>,
}

impl Fleet for Meters {
    fn started(&self, node: &NodeHandle) {
        self.node.get_or_init(|| node.clone());
    }

    fn register(&self, device: &Device) -> Result<()> {
        if device.metadata_of("model").as_deref() == Some("stolen") {
            Err("it is stolen".into())
        } else {
            Ok(())
        }
    }

    fn report(&self, device: &Device, report: &[u8]) -> Result<Vec<u8>> {
        let Some(node) = self.node.get() else { return Err("the node is not running yet".into()) };
        match report {
            br#""wrong""# => return Err("that is not a reading".into()),
            br#""push""# => _ = node.devices().push(device.id(), &"pushed".to_owned())?,
            br#""push the tag""# => {
                _ = node.devices().push(Target::tag("north"), &"pushed".to_owned())?;
            }
            br#""ask""# => ask(node, device, 1),
            br#""ask 1025 times""# => ask(node, device, 1025),
            _ => {}
        }
        Ok(report.to_vec())
    }
}

/// Asks a device so many times at once. Its answers are published in a channel of its own: answers
/// to a device that is gone come late, and must not reach the next test.
fn ask(node: &NodeHandle, device: &Device, times: usize) {
    let asked: Vec<_> = (0..times)
        .map(|_| node.devices().request::<String>(device.id(), &"state".to_owned(), KEPT))
        .collect();
    let (node, channel) = (node.clone(), format!("chat:{}", device.id()));
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
        let waiting = asked.into_iter().map(|answer| {
            let (node, channel) = (node.clone(), channel.clone());
            runtime.spawn(async move {
                let answer = answer.await.unwrap_or_else(|error| format!("no: {}", error.text()));
                let _ = node.publish(&channel, &answer);
            })
        });
        for answered in waiting.collect::<Vec<_>>() {
            let _ = runtime.block_on(answered);
        }
    });
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let plain = start(listen.parse()?, false)?;
    let secure = start(SocketAddr::from(([127, 0, 0, 1], 0)), true)?;
    let file = std::env::temp_dir().join(format!("playfield-{}.cert", std::process::id()));
    std::fs::write(&file, secure.tls_certificate().ok_or("there is no certificate")?)?;
    let gate = gate::open(plain.local_addr())?;
    println!("{} {} {} {gate}", plain.local_addr(), secure.local_addr(), file.display());
    stdout().flush()?;
    stdin().read_to_end(&mut Vec::new())?;
    std::fs::remove_file(&file)?;
    plain.shutdown();
    secure.shutdown();
    Ok(())
}

fn start(listen: SocketAddr, is_secure: bool) -> std::io::Result<Running> {
    let mut config = Config { listen, log: LevelFilter::Error, shards: 1, ..Config::default() };
    config.tls.self_signed = is_secure;
    // Tests open more than an address usually may.
    let limits = &mut config.limits;
    (limits.connections.per_address, limits.handshakes.per_address) = (20_000, 20_000);
    let address = &mut limits.address;
    for rate in [&mut address.sessions, &mut address.joins, &mut address.rooms_created] {
        rate.count = 1_000_000;
    }
    // More than the client keeps.
    limits.device.commands = 2_000;
    // Echoes come as fast as they can.
    (limits.session.messages.count, limits.session.bytes.count) = (0, 0);
    Server::new()
        .authenticate(|hello| async move {
            match &*hello.token {
                b"wrong" => Err(Error::new(ErrorCode::Unauthorized, "the token is wrong")),
                _ => Guests { name_bytes_max: 32 }.admit(&hello.name),
            }
        })
        .room::<Hello>("hello")
        .room::<hall::Hall>("hall")
        .fleet(Meters::default(), FleetSettings::new())
        .channel(
            ChannelRule::new("chat:*")
                .publish(Access::Anyone)
                .presence(Access::Anyone)
                .history(10, KEPT),
        )
        .start(config)
}
