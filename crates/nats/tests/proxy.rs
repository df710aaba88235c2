//! A proxy between an engine and its server, which can hold back what the engine sends.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

pub(crate) struct Proxy {
    port: u16,
    holds: watch::Sender<bool>,
    cuts: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// A proxy for the server at a port of this machine.
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (holds, held) = watch::channel(false);
        let cuts = Arc::new(Notify::new());
        let cut = cuts.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (held, cut) = (held.clone(), cut.clone());
                tokio::spawn(async move {
                    let cut = cut.notified();
                    tokio::select! {
                        _ = pass(client, server, held) => {}
                        () = cut => {}
                    }
                });
            }
        });
        Self { port, holds, cuts, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Reads no more of what the engine sends, or again.
    pub(crate) fn hold(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// Closes all connections, with what was not read.
    pub(crate) fn cut(&self) {
        self.cuts.notify_waiters();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

async fn pass(client: TcpStream, server: u16, mut held: watch::Receiver<bool>) -> Option<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await.ok()?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut buffer = vec![0; 64 << 10];
        loop {
            held.wait_for(|holds| !holds).await.ok()?;
            let mut changed = held.clone();
            let read = tokio::select! {
                _ = changed.changed() => continue,
                read = from_client.read(&mut buffer) => read.ok().filter(|&read| read > 0)?,
            };
            to_server.write_all(&buffer[..read]).await.ok()?;
        }
        #[expect(unreachable_code, reason = "it says what `?` returns")]
        None::<()>
    };
    tokio::select! {
        _ = up => {}
        _ = copy(&mut from_server, &mut to_client) => {}
    }
    Some(())
}
