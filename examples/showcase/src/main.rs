//! `make run`: the server, the bots, and a URL to open.

use std::ffi::OsString;
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
            "{argument:?} means nothing here; settings come from the environment, such as PLAYFIELD_LISTEN=127.0.0.1:8080"
        )
        .into());
    }
    let config = Config::from_env(std::env::vars_os().filter_map(text))?;
    let running = playfield_showcase::server().start(config)?;
    let address = running.local_addr();
    let bots = tokio::spawn(playfield_showcase::bots::play(format!("tcp://{address}")));
    println!("Playfield is running. Open http://{address}/ in a browser; Ctrl-C ends it.");
    interrupted().await?;
    println!("Saying goodbye.");
    tokio::spawn(async {
        if interrupted().await.is_ok() {
            exit_at_once();
        }
    });
    // The bots hear it like everyone else, which takes this thread: so the wait for the end takes
    // another.
    tokio::task::spawn_blocking(|| running.shutdown()).await?;
    // They have heard it, and the server is gone: one that thinks over its next move need not
    // finish.
    bots.abort();
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "who asks twice does not want to wait for goodbyes")]
fn exit_at_once() {
    std::process::exit(130);
}

/// Variables that are no text are none of ours.
fn text((name, value): (OsString, OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

/// Waits for Ctrl-C, or for what `kill` sends.
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
