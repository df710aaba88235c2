//! Servers that are not there, refuse, say nothing, or die.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use playfield_load::{LoadError, run, script};

use crate::rooms::{config, load, node, settings, start};

const HOLD: &str = "steps = [{ wait = \"all\" }, { hold = true }]";

/// A server that does this with each connection.
fn server(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

fn failed(settings: playfield_load::Settings) -> String {
    match load(settings, HOLD) {
        Err(LoadError::Work(text)) => text,
        other => panic!("it did not fail: {other:?}"),
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = failed(settings("tcp", address, 5));
    assert!(error.contains(&format!("127.0.0.1:{} can't be reached", address.port())), "{error}");
    let mut nowhere = settings("tcp", address, 1);
    nowhere.url = "tcp://no-such-host.invalid:1".parse().unwrap();
    assert!(failed(nowhere).contains("no-such-host.invalid:1 can't be reached"));
}

#[test]
fn a_server_that_closes_says_nothing_or_speaks_something_else_is_named() {
    let closes = server(drop);
    assert!(failed(settings("tcp", closes, 1)).contains("can't be used"));
    let held = Mutex::new(Vec::new());
    let silent = server(move |stream| held.lock().unwrap().push(stream));
    for scheme in ["tcp", "ws"] {
        let mut settings = settings(scheme, silent, 1);
        settings.timeout = Duration::from_millis(200);
        assert!(failed(settings).contains("did not answer within 200ms"));
    }
    let http = server(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    let error = failed(settings("ws", http, 1));
    assert!(error.contains("the WebSocket handshake failed"), "{error}");
    let error = failed(settings("tcp", http, 1));
    assert!(error.contains("frame"), "{error}");
}

#[test]
fn a_node_that_refuses_some_connections_is_trouble() {
    let mut config = config();
    config.set("limits.connections.total", "10").unwrap();
    let node = start(config);
    let mut settings = settings("tcp", node.local_addr(), 15);
    settings.duration = Some(Duration::from_millis(50));
    let report = load(settings, HOLD).unwrap();
    let counts = report.counts();
    assert!(counts.failed >= 5 && counts.connected == 15 - counts.failed, "{counts:?}");
    let trouble = report.trouble().expect("trouble");
    assert!(trouble.contains("connections failed"), "{trouble}");
    node.shutdown();
}

#[test]
fn a_node_that_dies_midway_ends_the_load_with_a_report() {
    let running = Mutex::new(Some(node()));
    let address = running.lock().unwrap().as_ref().expect("a node").local_addr();
    let mut settings = settings("ws", address, 20);
    settings.duration = Some(Duration::from_secs(3600));
    settings.scripts = script::parse(
        "load.toml",
        r#"steps = [{ join = "counter" }, { wait = "all" },
            { repeat = "forever", every = 0.01, steps = [{ request = "Add", ahead = true }] }]"#,
    )
    .unwrap();
    let report = run(&settings, &AtomicBool::new(false), &mut |_| {
        if let Some(node) = running.lock().unwrap().take() {
            node.shutdown();
        }
    })
    .unwrap();
    let counts = report.counts();
    assert_eq!((counts.connected, counts.lost, counts.open), (20, 20, 0), "{counts:?}");
    assert_eq!(counts.requests, counts.replies + counts.refused + counts.abandoned);
    assert!(report.trouble().expect("trouble").contains("20 connections were lost"));
    assert!(report.problems().keys().any(|text| text.starts_with("lost: ")));
}
