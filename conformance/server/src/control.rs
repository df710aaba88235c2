//! The controls of the scenario server, as HTTP requests to its node.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use playfield::http::{Request, Response};
use playfield::prelude::{Bytes, Data as _};
use playfield::{Error, Format, NodeHandle, Result, Server, Subscriber};

use crate::link::Link;
use crate::{devices, tickets};

/// The links, by port.
pub(crate) struct Links {
    node: OnceLock<(SocketAddr, Vec<u8>)>,
    other: SocketAddr,
    open: Mutex<HashMap<u16, Arc<Link>>>,
}

impl Links {
    pub(crate) fn new(other: SocketAddr) -> Self {
        Self { node: OnceLock::new(), other, open: Mutex::default() }
    }

    /// The node has this address, and this certificate in DER.
    pub(crate) fn set_node(&self, node: SocketAddr, certificate: Vec<u8>) {
        // It is called once.
        let _ = self.node.set((node, certificate));
    }

    fn node(&self) -> Result<SocketAddr> {
        Ok(self.node.get().ok_or("the node has not started")?.0)
    }

    /// The node's certificate, in base64.
    fn certificate(&self) -> Result<String> {
        let (_, certificate) = self.node.get().ok_or("the node has not started")?;
        let mut json = Vec::new();
        Bytes(certificate.clone()).write(Format::Json, &mut json);
        Ok(String::from_utf8_lossy(&json).trim_matches('"').to_owned())
    }

    fn open(&self) -> Result<u16> {
        let link =
            Link::open(self.node()?).map_err(|error: io::Error| Error::from(error.to_string()))?;
        let port = link.port();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(port, link);
        Ok(port)
    }

    fn link(&self, request: &Request) -> Result<Arc<Link>> {
        let port = request.param("port").unwrap_or_default();
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let link = port.parse().ok().and_then(|port: u16| open.get(&port).cloned());
        link.ok_or_else(|| format!("no link has the port {port:?}; GET /link opens one").into())
    }
}

/// Adds the controls.
pub(crate) fn routes(server: Server, links: &Arc<Links>) -> Server {
    let opening = Arc::clone(links);
    let open = move |_: Request, _: NodeHandle| {
        let opened = opening.open();
        async move { answer(opened.map(|port| format!("127.0.0.1:{port}"))) }
    };
    let acting = Arc::clone(links);
    let act = move |request: Request, _: NodeHandle| {
        let links = Arc::clone(&acting);
        async move { answer(act(&links, &request).await) }
    };
    let known = Arc::clone(links);
    let certificate = move |_: Request, _: NodeHandle| {
        let certificate = known.certificate();
        async move { answer(certificate) }
    };
    let command = |request: Request, node: NodeHandle| async move {
        answer(devices::command(&node, &request).await)
    };
    let user =
        |request: Request, node: NodeHandle| async move { answer(moderate(&node, &request)) };
    let ticket = |request: Request, _: NodeHandle| async move { answer(tickets::sign(&request)) };
    server
        .route("GET", "/link", open)
        .route("GET", "/ticket/{type}/{key}/{name}", ticket)
        .route("GET", "/links/{port}/{action}", act)
        .route("GET", "/certificate", certificate)
        .route("GET", "/devices/{id}/{action}/{number}", command)
        .route("GET", "/users/{user}/{action}/{what}", user)
}

async fn act(links: &Links, request: &Request) -> Result<String> {
    let link = links.link(request)?;
    match request.param("action").unwrap_or_default() {
        "cut" => link.cut(),
        "mend" => link.mend(),
        "hold" => link.hold(),
        "move" => link.lead_to(links.other),
        "alone" => {
            let node = crate::rooms().start(crate::config());
            link.lead_to_own(node.map_err(|error| Error::from(error.to_string()))?);
        }
        "stop" => {
            let node = link.take_own(links.node()?).ok_or("it has no node of its own")?;
            // It waits for the node's threads.
            let stopped = tokio::task::spawn_blocking(|| node.shutdown()).await;
            stopped.map_err(|error| Error::from(error.to_string()))?;
        }
        "lose_patch" => link.lose_patch(),
        "lost_patch" => link.until(|done| done.lost_patch).await,
        "spoil_check" => link.spoil_check(),
        "spoiled_check" => link.until(|done| done.spoiled_check).await,
        "snapshot" => link.until(|done| done.snapshot).await,
        other => {
            let actions = "cut, mend, hold, move, alone, stop, lose_patch, lost_patch, \
                           spoil_check, spoiled_check, snapshot";
            return Err(format!("unknown action {other:?}; the actions are {actions}").into());
        }
    }
    Ok("done".to_owned())
}

/// `/users/USER/end/TEXT` ends all sessions of a user, `/users/USER/take_out/CHANNEL` their
/// subscriptions to a channel.
fn moderate(node: &NodeHandle, request: &Request) -> Result<String> {
    let user = request.param("user").unwrap_or_default();
    let what = request.param("what").unwrap_or_default();
    match request.param("action").unwrap_or_default() {
        "end" => node.end_sessions(user, what).map(drop)?,
        "take_out" => node.unsubscribe(Subscriber::User(user), what, "too loud")?,
        other => {
            let text = format!("unknown action {other:?}; the actions are end and take_out");
            return Err(text.into());
        }
    }
    Ok("done".to_owned())
}

/// Pages of any host may ask, as those of runners in browsers do.
fn answer(answer: Result<String>) -> Response {
    let answer = match answer {
        Ok(text) => Response::text(text),
        Err(error) => Response::error(400, error.to_string()),
    };
    answer.with_header("Access-Control-Allow-Origin", "*")
}
