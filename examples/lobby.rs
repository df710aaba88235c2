//! A lobby that makes matches: members queue for a mode, and when enough are there, the lobby
//! creates a room for them, keeps a seat in it for each, and sends them there.
//!
//! Rooms share nothing. They create each other, and send each other messages, also across threads.
//! A table is for friends: whoever makes one gets a short code to pass on. Ranked players come from
//! a website: `POST /ranked/{player}` answers with a ticket into a match.
//! `cargo run --bin lobby` serves it on 127.0.0.1:7350.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use playfield::axum::extract::Path;
use playfield::http::Failure;
use playfield::identity::{KeyError, Keys, Signer, Ticket, Tickets};
use playfield::prelude::*;
use playfield::{NodeHandle, Reservation, SeatFor};

/// The number of players in a match.
const PLAYERS: usize = 2;

/// The lobby. Its members see who waits for which mode, and the matches that are played.
#[derive(State, Default)]
struct Lobby {
    waiting: Map<PlayerId, String>,
    /// Players by match.
    matches: Map<String, u32>,
}

/// A member wants to play in this mode.
#[derive(Message)]
struct Queue {
    mode: String,
}

/// To a member: your match is ready. Join it with the reservation, in place of a room's id.
#[derive(Message)]
struct Ready {
    seat: Reservation,
}

/// A match reports how many players it has.
#[derive(Message)]
struct Report {
    players: u32,
}

// `internal` messages come from rooms, never from clients.
#[room(messages(Queue), events(Ready), internal(Report), capacity = 1_000)]
impl Room for Lobby {
    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.waiting.remove(&player.id());
    }
}

impl Handle<Queue> for Lobby {
    fn handle(&mut self, queue: Queue, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.waiting.insert(player.id(), queue.mode.clone());
        let fitting = cx
            .players()
            .filter(|other| self.waiting.get(&other.id()).is_some_and(|mode| *mode == queue.mode));
        let chosen: Vec<&Player> = fitting.take(PLAYERS).collect();
        if chosen.len() < PLAYERS {
            return Ok(());
        }
        let mut new = cx.new_room::<Match>(&Setup { mode: queue.mode }).private();
        let seats: Vec<Reservation> =
            chosen.iter().map(|player| new.reserve(*player, Duration::from_secs(30))).collect();
        let id = new.create()?;
        self.matches.insert(id, 0);
        for (player, seat) in chosen.into_iter().zip(seats) {
            self.waiting.remove(&player.id());
            cx.emit_to(player.id(), &Ready { seat });
        }
        Ok(())
    }
}

impl On<Report> for Lobby {
    fn on(&mut self, report: Report, cx: &mut Context<Self>) -> Result<()> {
        let id = cx.sender().ok_or("matches report, and nobody else")?.room_id.clone();
        if report.players == 0 {
            self.matches.remove(&id);
        } else {
            self.matches.insert(id, report.players);
        }
        Ok(())
    }
}

#[derive(State, Default)]
struct Match {
    mode: String,
    players: Map<PlayerId, String>,
}

#[derive(Data, Default)]
struct Setup {
    mode: String,
}

// Only the server makes matches. They wait for players as long as a ticket is valid.
#[room(creation = server, capacity = 2, empty_ms = 60_000)]
impl Room for Match {
    type Options = Setup;

    fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { mode: setup.mode, ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let seat = player.seat().map(|seat| format!(" plays {seat}")).unwrap_or_default();
        self.players.insert(player.id(), format!("{}{seat}", player.name()));
        self.report(cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.report(cx);
    }
}

impl Match {
    fn report(&self, cx: &mut Context<Self>) {
        let report = Report { players: self.players.len() as u32 };
        if let Some(lobby) = cx.creator().room().map(|room| room.room_id.clone()) {
            cx.tell(&lobby, &report);
        }
    }
}

/// A table for friends. Its members see the code by which others join.
#[derive(State, Default)]
struct Table {
    code: String,
    host: String,
    guests: Map<PlayerId, String>,
}

/// The host keeps a seat for a friend for a minute. The answer is for them alone.
#[derive(Message)]
#[reply(Reservation)]
struct Keep {
    name: String,
}

#[room(messages(Keep), capacity = 4)]
impl Room for Table {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        let code = cx.key().ok_or("make a table with a code")?.to_owned();
        let host = cx.creator().name().unwrap_or_default().to_owned();
        Ok(Self { code, host, ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.guests.insert(player.id(), player.name().to_owned());
        Ok(())
    }
}

impl Handle<Keep> for Table {
    fn handle(&mut self, keep: Keep, _: &Player, cx: &mut Context<Self>) -> Result<Reservation> {
        cx.reserve(SeatFor::Name(keep.name), Duration::from_secs(60))
    }
}

/// Matches players in the order in which they come. It signs a ticket for each, and could as well
/// be another program, in another language.
struct Ranked {
    signer: Signer,
    players: AtomicUsize,
}

impl Ranked {
    /// `POST /ranked/{player}`. The website that sends it knows who its users are.
    async fn ticket(self: Arc<Self>, player: String, node: NodeHandle) -> Result<String, Failure> {
        let place = self.players.fetch_add(1, Ordering::Relaxed);
        let key = format!("ranked-{}", place / PLAYERS);
        // A ticket creates no room.
        node.find_or_create::<Match>(&key, &Setup { mode: "ranked".into() }).await?;
        let seat = ["white", "black"][place % PLAYERS];
        self.sign(&key, &player, seat).map_err(|error| error.to_string().into())
    }

    fn sign(&self, match_key: &str, player: &str, seat: &str) -> Result<String, KeyError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let ticket = Ticket::by_key("match", match_key, now + 60)?;
        self.signer.ticket(&ticket.user(player).name(player).seat(seat))
    }
}

fn with_tickets(server: Server) -> Result<Server, KeyError> {
    let (signer, public_key) = Signer::generate()?;
    let ranked = Arc::new(Ranked { signer, players: AtomicUsize::new(0) });
    let ticket =
        move |Path(player): Path<String>, node: NodeHandle| ranked.clone().ticket(player, node);
    let tickets = Tickets::new(Keys::pem(public_key)?);
    Ok(server.route("POST", "/ranked/{player}", ticket).tickets(tickets))
}

fn main() -> ExitCode {
    Server::new()
        .room::<Lobby>("lobby")
        .room::<Match>("match")
        .room::<Table>("table")
        .prepare(with_tickets)
        .run()
}
