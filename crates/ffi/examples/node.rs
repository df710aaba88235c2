//! A node for the examples and tests of the C++ client: `cargo run -p playfield-ffi --example node`.
//!
//! It prints one line: an address for `tcp://` and `ws://`, one for `tls://` and `wss://`, and the
//! file with the certificate of the latter. It ends when its standard input does. With an argument
//! it listens there, such as on 127.0.0.1:7350.

use std::io::{Read as _, Write as _, stdin, stdout};
use std::net::SocketAddr;
use std::time::Duration;

use playfield::channel::{Access, ChannelRule};
use playfield::prelude::*;
use playfield::{Config, ErrorCode, Guests, LevelFilter, Running};

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

/// The reply is what was sent.
#[derive(Message)]
#[reply(Bytes)]
struct Echo {
    data: Bytes,
}

/// What was sent comes back as an event.
#[derive(Message)]
struct Bounce {
    data: Bytes,
}

#[derive(Message)]
struct Bounced {
    data: Bytes,
}

#[room(messages(Add, Say, Echo, Bounce), events(Said, Bounced), sync_hz = 50, capacity = 10_000)]
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

impl Handle<Echo> for Hello {
    fn handle(&mut self, echo: Echo, _: &Player, _: &mut Context<Self>) -> Result<Bytes> {
        Ok(echo.data)
    }
}

impl Handle<Bounce> for Hello {
    fn handle(&mut self, bounce: Bounce, by: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit_to(by.id(), &Bounced { data: bounce.data });
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let plain = start(listen.parse()?, false)?;
    let secure = start(SocketAddr::from(([127, 0, 0, 1], 0)), true)?;
    let file = std::env::temp_dir().join(format!("playfield-{}.cert", std::process::id()));
    std::fs::write(&file, secure.tls_certificate().ok_or("there is no certificate")?)?;
    println!("{} {} {}", plain.local_addr(), secure.local_addr(), file.display());
    stdout().flush()?;
    stdin().read_to_end(&mut Vec::new())?;
    std::fs::remove_file(&file)?;
    plain.shutdown();
    secure.shutdown();
    Ok(())
}

fn start(listen: SocketAddr, is_secure: bool) -> std::io::Result<Running> {
    let kept = Duration::from_secs(60);
    let config = Config {
        listen,
        log: LevelFilter::Error,
        shards: 1,
        tls_self_signed: is_secure,
        // Tests open more than an address usually may.
        connections_per_address_max: 20_000,
        handshakes_per_address_max: 20_000,
        sessions_per_address_per_minute_max: 1_000_000,
        joins_per_address_per_minute_max: 1_000_000,
        rooms_created_per_address_per_minute_max: 1_000_000,
        ..Config::default()
    };
    Server::new()
        .authenticate(|hello| async move {
            match &*hello.token {
                b"wrong" => Err(Error::new(ErrorCode::Unauthorized, "the token is wrong")),
                _ => Guests { name_bytes_max: 32 }.admit(&hello.name),
            }
        })
        .room::<Hello>("hello")
        .channel(
            ChannelRule::new("chat:*")
                .publish(Access::Anyone)
                .presence(Access::Anyone)
                .history(10, kept),
        )
        .start(config)
}
