//! `make run`: the server, the bots, and a URL to open.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

use playfield::Config;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("showcase: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(argument) = std::env::args_os().nth(1) {
        return Err(format!(
            "unexpected argument {argument:?}; settings come from environment variables, such as \
             PLAYFIELD_LISTEN=127.0.0.1:8080"
        )
        .into());
    }
    let mut config = Config::from_env(std::env::vars_os().filter_map(text))?;
    // For browsers on this machine, and where it is free: another showcase may be running.
    if config.listen.ip().is_loopback() {
        config.console = config.console.or_else(free_console);
    }
    let console = config.console;
    let running = playfield_showcase::server().start(config)?;
    let address = running.local_addr();
    let bots = tokio::spawn(playfield_showcase::bots::play(format!("tcp://{address}")));
    say(&format!(
        "Playfield is running. Open {} in a browser. Press Ctrl-C to stop.",
        running.url()
    ));
    if let Some(console) = console {
        say(&format!("See every room as its players see it: http://{console}/"));
    }
    interrupted().await?;
    say("Shutting down.");
    tokio::spawn(async {
        if interrupted().await.is_ok() {
            exit_at_once();
        }
    });
    // The bots run on this thread and must receive the goodbye like every other client, so another
    // thread waits for the shutdown.
    tokio::task::spawn_blocking(|| running.shutdown()).await?;
    // The bots have received it and the server is gone. A bot that is thinking about its next move
    // need not finish.
    bots.abort();
    Ok(())
}

fn free_console() -> Option<SocketAddr> {
    let address = SocketAddr::from(([127, 0, 0, 1], 7351));
    TcpListener::bind(address).ok().map(|_| address)
}

#[expect(clippy::disallowed_methods, reason = "a second Ctrl-C skips the graceful shutdown")]
fn exit_at_once() {
    std::process::exit(130);
}

/// Variables that are not valid Unicode are not settings of ours.
fn text((name, value): (OsString, OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminated =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Prints a line. A closed or full standard output is no reason to stop.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
