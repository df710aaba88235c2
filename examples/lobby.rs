//! A lobby of rooms: tables report their players to a lobby, and its members choose one.
//!
//! Rooms share nothing. They send each other messages by room id, also across threads.
//! `cargo run --bin lobby` serves it on 127.0.0.1:7350.

use playfield::prelude::*;

/// The lobby. Its members see the tables, and join one by its id.
#[derive(State, Default)]
struct Lobby {
    /// Players by table.
    tables: Map<String, u32>,
}

/// A table reports how many players it has.
#[derive(Message)]
struct Report {
    table: String,
    players: u32,
}

// `internal` messages come from rooms, never from clients.
#[room(internal(Report), capacity = 1_000)]
impl Room for Lobby {}

impl On<Report> for Lobby {
    fn on(&mut self, report: Report, _: &mut Context<Self>) -> Result<()> {
        if report.players == 0 {
            self.tables.remove(&report.table);
        } else {
            self.tables.insert(report.table, report.players);
        }
        Ok(())
    }
}

#[derive(State, Default)]
struct Table {
    players: Map<PlayerId, String>,
    #[sync(hidden)]
    lobby: String,
}

/// Sent by the client that creates a table.
#[derive(Data, Default)]
struct Setup {
    /// The id of the lobby to report to.
    lobby: String,
}

#[room(capacity = 4)]
impl Room for Table {
    type Options = Setup;

    fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { lobby: setup.lobby, ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), player.name().to_owned());
        self.report(cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.report(cx);
    }
}

impl Table {
    fn report(&self, cx: &mut Context<Self>) {
        let report = Report { table: cx.room_id().to_owned(), players: self.players.len() as u32 };
        cx.tell(&self.lobby, &report);
    }
}

fn main() -> ExitCode {
    Server::new().room::<Lobby>("lobby").room::<Table>("table").run()
}
