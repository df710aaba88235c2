//! Handlers by method and path.

use std::borrow::Cow;
use std::pin::Pin;

use playfield_http::{Request, Response, percent_decoded};

use super::IntoResponse;
use crate::handle::NodeHandle;

/// The methods that a route may have.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// A handler under way.
pub(crate) type Handling = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler.
pub(crate) type Handler = Box<dyn Fn(Request, NodeHandle) -> Handling + Send + Sync>;

/// A function as a handler.
pub(crate) fn handler<F, W, O>(call: F) -> Handler
where
    F: Fn(Request, NodeHandle) -> W + Send + Sync + 'static,
    W: Future<Output = O> + Send + 'static,
    O: IntoResponse,
{
    Box::new(move |request, node| {
        let work = call(request, node);
        Box::pin(async move { work.await.into_response() })
    })
}

/// The routes of a node.
#[derive(Default)]
pub(crate) struct Routes {
    routes: Vec<Route>,
}

struct Route {
    method: String,
    path: String,
    segments: Vec<Segment>,
    handler: Handler,
}

#[derive(Clone, PartialEq, Eq)]
enum Segment {
    /// This text.
    Literal(String),
    /// Any text that is not empty, under this name.
    Param(String),
}

/// A route that was found, and the parameters of its path.
pub(crate) struct Matched {
    pub(crate) number: usize,
    pub(crate) params: Vec<(String, String)>,
}

impl Routes {
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Adds a route, or says why it can't be one.
    pub(crate) fn add(&mut self, method: &str, path: &str, handler: Handler) -> Result<(), String> {
        let refuse = |why: String| Err(format!("the route {method} {path}: {why}"));
        if !METHODS.contains(&method) {
            return refuse(format!("the method is not one of {}", METHODS.join(", ")));
        }
        let segments = match segments(path) {
            Ok(segments) => segments,
            Err(why) => return refuse(why),
        };
        let is_same = |route: &&Route| route.method == method && same(&route.segments, &segments);
        if let Some(other) = self.routes.iter().find(is_same) {
            return refuse(format!("there is {} {} already", other.method, other.path));
        }
        let route = Route { method: method.into(), path: path.into(), segments, handler };
        // Those with a text before those that take any, so that the first that fits is the best.
        let after = |other: &Route| rank(&other.segments) > rank(&route.segments);
        let place = self.routes.iter().position(after).unwrap_or(self.routes.len());
        self.routes.insert(place, route);
        Ok(())
    }

    /// The route for a method and the decoded segments of a path. A `HEAD` is handled as a `GET`,
    /// unless it has a route of its own.
    pub(crate) fn find(&self, method: &str, path: &[Cow<'_, str>]) -> Option<Matched> {
        let find = |method: &str| {
            let fits = |route: &Route| route.method == method && fits(&route.segments, path);
            let number = self.routes.iter().position(fits)?;
            let pairs = self.routes[number].segments.iter().zip(path);
            let params = pairs.filter_map(|(segment, text)| match segment {
                Segment::Param(name) => Some((name.clone(), text.clone().into_owned())),
                Segment::Literal(_) => None,
            });
            Some(Matched { number, params: params.collect() })
        };
        find(method).or_else(|| if method == "HEAD" { find("GET") } else { None })
    }

    /// The methods that a path has routes for.
    pub(crate) fn methods<'a>(&'a self, path: &'a [Cow<'_, str>]) -> impl Iterator<Item = &'a str> {
        let fitting = self.routes.iter().filter(|route| fits(&route.segments, path));
        fitting.map(|route| route.method.as_str())
    }

    /// Whether there is a route for exactly this path.
    pub(crate) fn has(&self, method: &str, path: &str) -> bool {
        self.routes.iter().any(|route| route.method == method && route.path == path)
    }

    /// Calls the handler of a route.
    pub(crate) fn call(&self, number: usize, request: Request, node: NodeHandle) -> Handling {
        (self.routes[number].handler)(request, node)
    }
}

/// The segments of a request's path, decoded; `None` if one can't be.
pub(crate) fn decoded(path: &str) -> Option<Vec<Cow<'_, str>>> {
    path.strip_prefix('/')?.split('/').map(percent_decoded).collect()
}

fn segments(path: &str) -> Result<Vec<Segment>, String> {
    let rest = path.strip_prefix('/').ok_or("a path begins with a slash")?;
    if let Some(wrong) = path.chars().find(|char| "?#%".contains(*char) || char.is_control()) {
        return Err(format!("a path has no {wrong:?}; give it as it is when decoded"));
    }
    let mut segments = Vec::new();
    for text in rest.split('/') {
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let segment = match name {
            Some("") => return Err("a parameter needs a name, such as {id}".into()),
            Some(name) => Segment::Param(name.into()),
            None => Segment::Literal(text.into()),
        };
        if name.unwrap_or(text).contains(['{', '}']) {
            return Err(format!("{text:?} is neither a text nor one parameter, such as {{id}}"));
        }
        if matches!(segment, Segment::Param(_)) && segments.contains(&segment) {
            return Err(format!("there are two parameters {text}"));
        }
        segments.push(segment);
    }
    Ok(segments)
}

/// Whether two paths take the same requests.
fn same(one: &[Segment], other: &[Segment]) -> bool {
    let is_same = |(one, other): (&Segment, &Segment)| match (one, other) {
        (Segment::Param(_), Segment::Param(_)) => true,
        _ => one == other,
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

fn fits(segments: &[Segment], path: &[Cow<'_, str>]) -> bool {
    let is_fit = |(segment, text): (&Segment, &Cow<'_, str>)| match segment {
        Segment::Literal(literal) => literal == text,
        Segment::Param(_) => !text.is_empty(),
    };
    segments.len() == path.len() && segments.iter().zip(path).all(is_fit)
}

/// Of two routes that take the same path, the one with the lower rank is meant.
fn rank(segments: &[Segment]) -> Vec<bool> {
    segments.iter().map(|segment| matches!(segment, Segment::Param(_))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Routes, decoded, handler};

    fn routes(all: &[(&str, &str)]) -> Result<Routes, String> {
        let mut routes = Routes::default();
        for (method, path) in all {
            routes.add(method, path, handler(async |_, _| ()))?;
        }
        Ok(routes)
    }

    #[test]
    fn the_best_route_is_found_with_its_parameters() {
        let routes = routes(&[
            ("GET", "/rooms/{id}/{what}"),
            ("GET", "/rooms/{id}/score"),
            ("POST", "/rooms/{id}/score"),
            ("GET", "/rooms/best/{what}"),
            ("GET", "/"),
            ("GET", "/a b"),
        ])
        .unwrap();
        let find = |method: &str, path: &str| {
            let path = decoded(path).unwrap();
            let found = routes.find(method, &path)?;
            Some((routes.routes[found.number].path.clone(), found.params))
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (path, route, params) in [
            ("/rooms/7/score", "/rooms/{id}/score", vec![pair("id", "7")]),
            ("/rooms/7/x%2Fy", "/rooms/{id}/{what}", vec![pair("id", "7"), pair("what", "x/y")]),
            ("/rooms/best/score", "/rooms/best/{what}", vec![pair("what", "score")]),
            ("/", "/", vec![]),
            ("/a%20b", "/a b", vec![]),
        ] {
            assert_eq!(find("GET", path), Some((route.to_owned(), params.clone())), "{path}");
            assert_eq!(find("HEAD", path), Some((route.to_owned(), params)), "{path}");
        }
        for path in ["/rooms", "/rooms/", "/rooms//score", "/rooms/7/score/", "//", "/rooms/7"] {
            assert_eq!(find("GET", path), None, "{path}");
        }
        assert_eq!(find("DELETE", "/"), None);
        let path = decoded("/rooms/7/score").unwrap();
        let mut methods: Vec<_> = routes.methods(&path).collect();
        methods.dedup();
        assert_eq!(methods, ["GET", "POST", "GET"]);
        assert!(decoded("/%f").is_none() && decoded("*").is_none());
    }

    #[test]
    fn a_route_that_cant_be_is_an_error() {
        for (all, why) in [
            (&[("get", "/")][..], "the method is not one of GET, "),
            (&[("GET", "a")], "begins with a slash"),
            (&[("GET", "/a?b")], "has no '?'"),
            (&[("GET", "/a%20")], "has no '%'"),
            (&[("GET", "/{}")], "needs a name"),
            (&[("GET", "/a{b}")], "neither a text nor one parameter"),
            (&[("GET", "/{a")], "neither a text nor one parameter"),
            (&[("GET", "/{a}/{a}")], "two parameters {a}"),
            (&[("GET", "/{a}/b"), ("GET", "/{c}/b")], "there is GET /{a}/b already"),
        ] {
            let error = routes(all).err().unwrap_or_default();
            assert!(error.contains(why), "{all:?}: {error}");
        }
        assert!(routes(&[("GET", "/{a}"), ("POST", "/{a}"), ("GET", "/a")]).is_ok());
    }
}
