//! A node that sends each WebSocket message back, for the Autobahn suite: see
//! `conformance/autobahn`.
//!
//! Run with a port, and `--tls` for TLS with a self-signed certificate:
//! `cargo run -p playfield-server --example echo_node -- 9001`. Without a port, or with 0, the system
//! picks one. The URL is printed.

use std::env;
use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use playfield_server::testing::echo_messages;
use playfield_server::{Config, Server, log_to_stderr};

/// The suite's longest message, which is as long as a node allows.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Longer than a case takes.
const TIMEOUT: Duration = Duration::from_secs(600);

fn main() -> Result<(), Box<dyn Error>> {
    let (mut port, mut is_tls) = (0, false);
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--tls" => is_tls = true,
            text => port = text.parse()?,
        }
    }
    let mut config = Config { listen: (Ipv4Addr::LOCALHOST, port).into(), ..Config::default() };
    config.tls.self_signed = is_tls;
    config.limits.message_bytes = MESSAGE_BYTES_MAX;
    // No client says hello.
    config.tuning.hello_bytes = MESSAGE_BYTES_MAX;
    (config.timeouts.hello, config.timeouts.message) = (TIMEOUT, TIMEOUT);
    // Of the suite's messages, many are in the outbox at once.
    config.limits.session.outbox_bytes.max = 8 * MESSAGE_BYTES_MAX;
    config.limits.memory.per_address = 64 * MESSAGE_BYTES_MAX;
    config.websocket.deflate = true;
    config.tuning.deflate_bytes_min = 64;
    log_to_stderr(config.log);
    let running = echo_messages(Server::new(config)).start()?;
    let scheme = if is_tls { "wss" } else { "ws" };
    println!("{scheme}://{}", running.local_addr());
    Ok(running.wait()?)
}
