//! The engine of clusters: NATS.

use std::pin::Pin;

use playfield_cluster::{Command, Engine, EngineEvent};
use playfield_nats::{NatsEngine, Settings};
use playfield_server::config::{Cluster, EngineUrl};
use playfield_server::{ConnectedEngine, Connecting};

struct Nats(NatsEngine);

impl Engine for Nats {
    fn begin(&mut self, command: Command) {
        self.0.begin(command);
    }

    fn next(&mut self) -> Option<EngineEvent> {
        self.0.next()
    }
}

impl ConnectedEngine for Nats {
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.0.ready())
    }

    fn secret(&self) -> [u8; 32] {
        *self.0.secret()
    }
}

/// Connects to the servers that the settings name.
pub(crate) fn connect(config: Cluster, node: String) -> Connecting {
    let servers: Vec<_> = config.engine.iter().map(EngineUrl::as_str).collect();
    let credentials = config.credentials.clone();
    let settings = Settings {
        name: format!("playfield {node}"),
        credentials: (!credentials.as_os_str().is_empty()).then_some(credentials),
        replicas: config.replicas as usize,
        ..Settings::new(servers.join(","), &config.name)
    };
    Box::pin(async {
        let engine = NatsEngine::connect(settings).await.map_err(|error| error.to_string())?;
        Ok(Box::new(Nats(engine)) as Box<dyn ConnectedEngine>)
    })
}
