//! Records change by compare-and-set.

use playfield_cluster::{EngineError, Record};
use playfield_nats::testing::Server;

use crate::host::{Host, settings};

#[tokio::test]
async fn a_write_needs_the_last_revision_of_its_key() {
    let Some(server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    assert_eq!(host.read("n.1").await, Ok(Record::default()));

    let first = host.write("n.1", b"one", 0).await.unwrap();
    assert_eq!(host.write("n.1", b"another", 0).await, Err(EngineError::Conflict), "it is there");
    assert_eq!(host.write("n.2", b"another", first).await, Err(EngineError::Conflict));
    let other = host.write("n.2", b"two", 0).await.unwrap();
    assert!(first < other, "all keys share one sequence");
    let second = host.write("n.1", b"", first).await.unwrap();
    assert_eq!(second, other + 1);
    assert_eq!(host.write("n.1", b"late", first).await, Err(EngineError::Conflict), "stale");
    assert_eq!(host.read("n.1").await, Ok(Record { revision: second, value: Some(Vec::new()) }));
    assert_eq!(
        host.read("n.2").await,
        Ok(Record { revision: other, value: Some(b"two".to_vec()) })
    );
}

#[tokio::test]
async fn a_removal_is_a_write_with_a_revision() {
    let Some(server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    let name = "r.bWF0Y2g.cm9vbQ";
    let made = host.write(name, b"mine", 0).await.unwrap();
    assert_eq!(host.purge(name, made + 1).await, Err(EngineError::Conflict));
    let removed = host.purge(name, made).await.unwrap();
    assert_eq!(host.read(name).await, Ok(Record { revision: removed, value: None }));
    assert_eq!(host.write(name, b"again", 0).await, Err(EngineError::Conflict));
    assert_eq!(host.write(name, b"again", made).await, Err(EngineError::Conflict));
    assert_eq!(host.purge(name, made).await, Err(EngineError::Conflict));
    let again = host.write(name, b"again", removed).await.unwrap();
    assert!(made < removed && removed < again);
    assert_eq!(
        host.read(name).await,
        Ok(Record { revision: again, value: Some(b"again".to_vec()) })
    );
}

#[tokio::test]
async fn one_of_many_conditional_writes_wins() {
    let Some(server) = Server::start() else { return };
    let mut hosts = Vec::new();
    for _ in 0..4 {
        hosts.push(Host::connect(server.url()).await);
    }
    for round in 0..20 {
        let name = format!("r.a.{round}");
        let mut tags = Vec::new();
        for (number, host) in hosts.iter_mut().enumerate() {
            for attempt in 0..25 {
                let value = format!("{number} {attempt}");
                tags.push((number, host.begin_write(&name, value.as_bytes(), 0), value));
            }
        }
        let mut won = Vec::new();
        for (number, tag, value) in tags {
            match hosts[number].written(tag).await {
                Ok(revision) => won.push(Record { revision, value: Some(value.into_bytes()) }),
                Err(error) => assert_eq!(error, EngineError::Conflict),
            }
        }
        assert_eq!(won.len(), 1, "{name}: {won:?}");
        // What one has written, all read from the leader at once.
        for host in &mut hosts {
            assert_eq!(host.read(&name).await.as_ref(), Ok(&won[0]));
        }
    }
}

#[tokio::test]
async fn a_list_has_the_names_with_a_prefix() {
    let Some(server) = Server::start() else { return };
    let mut host = Host::connect(server.url()).await;
    assert_eq!(host.list("n.").await, Ok(Vec::new()));
    for name in ["n.1", "n.12", "n.900", "r.n.1", "r.nn.1", "m.1"] {
        host.write(name, b"x", 0).await.unwrap();
    }
    assert_eq!(host.list("n.").await.unwrap(), ["n.1", "n.12", "n.900"]);
    assert_eq!(host.list("r.n").await.unwrap(), ["r.n.1", "r.nn.1"]);
    let all = host.list("").await.unwrap();
    assert_eq!(
        all,
        ["m.1", "meta.format", "meta.secret", "n.1", "n.12", "n.900", "r.n.1", "r.nn.1"]
    );
}

#[tokio::test]
async fn nodes_share_a_secret_and_clusters_share_nothing() {
    let Some(server) = Server::start() else { return };
    let (one, two) = tokio::join!(Host::connect(server.url()), Host::connect(server.url()));
    assert_eq!(one.engine.secret(), two.engine.secret());
    assert_ne!(one.engine.secret(), &[0; 32]);

    let mut settings = settings(server.url());
    settings.cluster = "other".to_owned();
    let mut other = Host::with(settings).await.unwrap();
    assert_ne!(one.engine.secret(), other.engine.secret());
    assert!(!format!("{one:?}", one = one.engine).contains("secret"));
    let mut one = one;
    one.write("n.1", b"one", 0).await.unwrap();
    other.write("n.1", b"other", 0).await.unwrap();
}

#[tokio::test]
async fn records_of_a_full_engine_can_still_be_renewed() {
    let Some(server) = Server::start() else { return };
    let mut settings = settings(server.url());
    settings.bytes_max = 10_000;
    let mut host = Host::with(settings).await.unwrap();
    let mut revision = host.write("n.1", b"renewed", 0).await.unwrap();
    let mut number = 0;
    let refused = loop {
        match host.write(&format!("r.a.{number}"), &[7; 1000], 0).await {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 20, "it never gets full");
    };
    assert_eq!(refused, EngineError::Unknown);
    for _ in 0..3 {
        revision = host.write("n.1", b"renewed", revision).await.unwrap();
    }
    // What is removed makes room.
    let first = host.read("r.a.0").await.unwrap();
    host.purge("r.a.0", first.revision).await.unwrap();
    host.write("r.a.new", &[7; 500], 0).await.unwrap();
}
