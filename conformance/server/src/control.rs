//! The controls of the scenario server, as HTTP requests to its node.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use playfield::axum::extract::Path;
use playfield::axum::http::StatusCode;
use playfield::axum::response::{IntoResponse, Response};
use playfield::prelude::{Bytes, Data as _};
use playfield::{Error, ErrorCode, Format, NodeHandle, Result, Running, Server, Subscriber};

use crate::link::Link;
use crate::plays::plays;
use crate::scripted::Scripted;
use crate::{devices, tickets};

/// The links, by port.
pub(crate) struct Links {
    node: OnceLock<Place>,
    other: Place,
    other_handle: NodeHandle,
    open: Mutex<HashMap<u16, Way>>,
}

/// The target of a client's connections.
#[derive(Clone)]
enum Way {
    Link(Arc<Link>),
    Scripted(Arc<Scripted>),
}

/// The parameters of a request's path, by name.
pub(crate) struct Request(HashMap<String, String>);

/// The parameters, as a handler takes them; none if the path has none.
type Params = Option<Path<HashMap<String, String>>>;

impl Request {
    fn of(params: Params) -> Self {
        Self(params.map_or_else(HashMap::new, |Path(params)| params))
    }

    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// The address of a node, and its certificate in DER.
pub(crate) struct Place {
    address: SocketAddr,
    certificate: Vec<u8>,
}

impl Place {
    pub(crate) fn of(node: &Running) -> Self {
        let certificate = node.tls_certificate().unwrap_or_default();
        Self { address: node.local_addr(), certificate }
    }
}

impl Links {
    pub(crate) fn new(other: Place, other_handle: NodeHandle) -> Self {
        Self { node: OnceLock::new(), other, other_handle, open: Mutex::default() }
    }

    pub(crate) fn set_node(&self, node: Place) {
        // This is called once.
        let _ = self.node.set(node);
    }

    fn node(&self) -> Result<&Place> {
        Ok(self.node.get().ok_or("the node has not started")?)
    }

    /// The node that a request names.
    fn named(&self, request: &Request) -> Result<&Place> {
        match request.param("node") {
            Some("other") => Ok(&self.other),
            _ => self.node(),
        }
    }

    /// A node's certificate, in base64.
    fn certificate(&self, request: &Request) -> Result<String> {
        let mut json = Vec::new();
        Bytes(self.named(request)?.certificate.clone()).write(Format::Json, &mut json);
        Ok(String::from_utf8_lossy(&json).trim_matches('"').to_owned())
    }

    /// Opens a link to a node, or starts one that plays the script of a scenario. Returns its
    /// address.
    fn open(&self, request: &Request) -> Result<String> {
        let (port, way) = match request.param("node") {
            None | Some("other") => {
                let link = Link::open(self.named(request)?.address);
                let link = link.map_err(|error: io::Error| Error::from(error.to_string()))?;
                (link.port(), Way::Link(link))
            }
            Some(scenario) => {
                let scripted = Scripted::start(scenario)?;
                (scripted.port(), Way::Scripted(scripted))
            }
        };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(port, way);
        Ok(format!("127.0.0.1:{port}"))
    }

    fn way(&self, request: &Request) -> Result<Way> {
        let port = request.param("port").unwrap_or_default();
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let way = port.parse().ok().and_then(|port: u16| open.get(&port).cloned());
        way.ok_or_else(|| format!("no link has the port {port:?}; GET /link opens one").into())
    }
}

/// Adds the controls.
pub(crate) fn routes(server: Server, links: &Arc<Links>) -> Server {
    let opening = Arc::clone(links);
    let open = move |params: Params| {
        let opened = opening.open(&Request::of(params));
        async move { answer(opened) }
    };
    let acting = Arc::clone(links);
    let act = move |params: Params| {
        let links = Arc::clone(&acting);
        async move { answer(act(&links, &Request::of(params)).await) }
    };
    let known = Arc::clone(links);
    let certificate = move |params: Params| {
        let certificate = known.certificate(&Request::of(params));
        async move { answer(certificate) }
    };
    let other = links.other_handle.clone();
    let command = move |params: Params, node: NodeHandle| {
        let other = other.clone();
        async move {
            let request = Request::of(params);
            let done = match devices::command(&node, &request).await {
                Err(error) if error.code() == ErrorCode::UnknownDevice => {
                    devices::command(&other, &request).await
                }
                done => done,
            };
            answer(done)
        }
    };
    let user =
        async |params: Params, node: NodeHandle| answer(moderate(&node, &Request::of(params)));
    let ticket = async |params: Params| answer(tickets::sign(&Request::of(params)));
    let generate = async |params: Params| answer(generated(&Request::of(params)));
    server
        .route("GET", "/link", open.clone())
        .route("GET", "/link/{node}", open)
        .route("GET", "/generated/{cuts}/{tls}", generate)
        .route("GET", "/ticket/{type}/{key}/{name}", ticket)
        .route("GET", "/links/{port}/{action}", act.clone())
        .route("GET", "/links/{port}/{action}/{how}", act)
        .route("GET", "/certificate", certificate.clone())
        .route("GET", "/certificate/{node}", certificate)
        .route("GET", "/devices/{id}/{action}/{number}", command)
        .route("GET", "/users/{user}/{action}/{what}", user)
}

async fn act(links: &Links, request: &Request) -> Result<String> {
    let link = match links.way(request)? {
        Way::Link(link) => link,
        Way::Scripted(scripted) => {
            scripted.until_played().await?;
            return Ok("done".to_owned());
        }
    };
    match request.param("action").unwrap_or_default() {
        "cut" => link.cut(),
        "cut_after" => {
            let bytes = request.param("how").unwrap_or_default().split(',').map(str::parse);
            let bytes = bytes.collect::<Result<_, _>>();
            link.cut_after(bytes.map_err(|_| "cut_after takes numbers with commas between")?);
        }
        "all_cut" => link.until(|done| done.all_cut).await,
        "restore" => link.restore(),
        "hold" => link.hold(),
        "move" => link.lead_to(links.other.address),
        "alone" => {
            let node = crate::rooms().start(crate::config());
            link.lead_to_own(node.map_err(|error| Error::from(error.to_string()))?);
        }
        "stop" => {
            let node = link.take_own(links.node()?.address).ok_or("it has no node of its own")?;
            // This waits for the node's threads.
            let stopped = tokio::task::spawn_blocking(|| node.shutdown()).await;
            stopped.map_err(|error| Error::from(error.to_string()))?;
        }
        "lose_patch" => link.lose_patch(),
        "lost_patch" => link.until(|done| done.lost_patch).await,
        "spoil_check" => link.spoil_check(),
        "spoiled_check" => link.until(|done| done.spoiled_check).await,
        "snapshot" => link.until(|done| done.snapshot).await,
        other => {
            let actions = "cut, cut_after, all_cut, restore, hold, move, alone, stop, lose_patch, \
                           lost_patch, spoil_check, spoiled_check, snapshot";
            return Err(format!("unknown action {other:?}; the actions are {actions}").into());
        }
    }
    Ok("done".to_owned())
}

/// `/generated/CUTS/TLS`: scenarios with as many cuts; with TLS, if the last is `tls`.
fn generated(request: &Request) -> Result<String> {
    let cuts = request.param("cuts").and_then(|cuts| cuts.parse().ok());
    let cuts = cuts.ok_or("how many cuts? /generated/CUTS/tls, or /generated/CUTS/plain")?;
    Ok(plays(cuts, request.param("tls") == Some("tls")).to_string())
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
    let answer = answer.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()));
    ([("Access-Control-Allow-Origin", "*")], answer).into_response()
}
