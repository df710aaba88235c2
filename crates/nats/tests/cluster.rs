//! Three servers keep the records.

use std::net::TcpListener;

use playfield_cluster::{EngineError, Record};
use playfield_nats::testing::Server;

use crate::host::{Host, settings};

/// Starts servers that form a cluster.
fn start(count: usize) -> Option<Vec<Server>> {
    // Routes have to be known before the first one starts.
    let free: Vec<_> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let ports: Vec<_> =
        free.iter().map(|listener| listener.local_addr().expect("it is bound").port()).collect();
    drop(free);
    let routes: Vec<_> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let routes = routes.join(",");
    let start = |(number, port): (usize, &u16)| {
        let name = format!("n{number}");
        let listen = format!("nats://127.0.0.1:{port}");
        let arguments = ["--jetstream", "--name", &name, "--cluster_name", "c"];
        let arguments = [&arguments[..], &["--cluster", &listen, "--routes", &routes]].concat();
        Server::start_with(&arguments, "")
    };
    ports.iter().enumerate().map(start).collect()
}

fn urls(servers: &[Server]) -> String {
    servers.iter().map(Server::url).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn three_servers_keep_each_record_and_one_may_die() {
    let Some(mut servers) = start(3) else { return };
    let mut host = Host::connect(urls(&servers)).await;
    let info = async_nats::connect(servers[0].url()).await.unwrap();
    let info = info.request("$JS.API.STREAM.INFO.KV_pf_test", "".into()).await.unwrap();
    let info = String::from_utf8_lossy(&info.payload).into_owned();
    assert!(info.contains(r#""num_replicas":3"#), "{info}");

    // One of conditional writes through several servers wins.
    let mut other = Host::connect(urls(&servers[1..])).await;
    for number in 0..50 {
        let name = format!("r.a.{number}");
        let tags = (host.begin_write(&name, b"one", 0), other.begin_write(&name, b"two", 0));
        match (host.written(tags.0).await, other.written(tags.1).await) {
            (Ok(revision), Err(EngineError::Conflict))
            | (Err(EngineError::Conflict), Ok(revision)) => {
                let records = (host.read(&name).await.unwrap(), other.read(&name).await.unwrap());
                assert_eq!(records.0, records.1);
                assert_eq!(records.0.revision, revision);
            }
            results => panic!("{results:?}"),
        }
    }

    let mut revision = host.write("n.1", b"x", 0).await.unwrap();
    servers[1].kill();
    // An election takes some seconds, if it led.
    let mut record = loop {
        if let Ok(record) = host.read("n.1").await {
            break record;
        }
    };
    assert_eq!(record, Record { revision, value: Some(b"x".to_vec()) });
    while let Err(error) = host.write("n.1", b"y", revision).await {
        record = host.read("n.1").await.unwrap_or(record);
        // What was unknown has been written.
        if record.revision > revision {
            break;
        }
        println!("{error}");
        revision = record.revision;
    }
    assert_eq!(host.read("n.1").await.unwrap().value.as_deref(), Some(b"y".as_slice()));
}

#[tokio::test]
async fn a_cluster_with_too_few_servers_says_so() {
    let Some(servers) = start(2) else { return };
    let mut settings = settings(urls(&servers));
    // They elect a leader within the time of this.
    settings.replicas = 2;
    Host::with(settings.clone()).await.unwrap();
    settings.replicas = 3;
    settings.cluster = "other".to_owned();
    let text = crate::host::refusal(settings).await;
    assert!(text.contains("the engine is not ready for the stream KV_pf_other"), "{text}");
    assert!(text.contains("it needs 3 servers with JetStream, or set other replicas"), "{text}");
}
