//! Pages, routers and folders that a node serves over HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use playfield_room::caught;

use super::folder::{self, Folder};
use super::pages::{Pages, Readers};
use super::path::encoded;

/// The methods that a route may have.
const METHODS: [(&str, MethodFilter); 7] = [
    ("GET", MethodFilter::GET),
    ("HEAD", MethodFilter::HEAD),
    ("POST", MethodFilter::POST),
    ("PUT", MethodFilter::PUT),
    ("PATCH", MethodFilter::PATCH),
    ("DELETE", MethodFilter::DELETE),
    ("OPTIONS", MethodFilter::OPTIONS),
];

/// The site of a node: its pages first, then its routes, then the program's own routers, then the
/// files of folders.
#[derive(Default)]
pub(crate) struct Site {
    pages: Pages,
    routes: Vec<Route>,
    routers: Vec<Router>,
    folders: Vec<Folder>,
}

/// A route, and its handler.
struct Route {
    method: String,
    path: String,
    handler: MethodRouter,
}

/// A site that is complete.
pub(crate) struct Built {
    pub(crate) pages: Pages,
    pub(crate) router: Router,
}

impl Site {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
            && self.routes.is_empty()
            && self.routers.is_empty()
            && self.folders.is_empty()
    }

    /// Adds a page, or says why it can't be one.
    pub(crate) fn page(
        &mut self,
        path: String,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<(), String> {
        self.pages.add(path, content_type, body, Readers::SameOrigin)
    }

    /// Adds a script that pages of any origin may load, or says why it can't be one.
    pub(crate) fn script(&mut self, path: String, body: Vec<u8>) -> Result<(), String> {
        self.pages.add(path, "text/javascript; charset=utf-8", body, Readers::Everyone)
    }

    /// Adds a route, or says why it can't be one.
    pub(crate) fn route<H, T>(&mut self, method: &str, path: &str, handler: H) -> Result<(), String>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let refuse = |why: String| Err(format!("the route {method} {path}: {why}"));
        let Some((_, filter)) = METHODS.iter().find(|(name, _)| *name == method) else {
            let names: Vec<_> = METHODS.iter().map(|(name, _)| *name).collect();
            return refuse(format!("the method is not one of {}", names.join(", ")));
        };
        if let Err(why) = check(path) {
            return refuse(why);
        }
        if let Some(other) = self.routes.iter().find(|other| shape(&other.path) == shape(path)) {
            if other.path != path {
                let names = "name the parameters alike";
                return refuse(format!(
                    "there is {} {} already; {names}",
                    other.method, other.path
                ));
            }
            if self.has_route(method, path) {
                return refuse(format!("there is {method} {path} already"));
            }
        }
        let (method, path) = (method.to_owned(), path.to_owned());
        self.routes.push(Route { method, path, handler: on(*filter, handler) });
        Ok(())
    }

    /// Adds a router of the program.
    pub(crate) fn router(&mut self, router: Router) {
        self.routers.push(router);
    }

    /// Adds a folder, or says why it can't be one.
    pub(crate) fn folder(&mut self, path: &str, folder: &Path) -> Result<(), String> {
        let folder = Folder::new(path, folder)?;
        if self.folders.iter().any(|other| other.path() == folder.path()) {
            return Err(format!("the folder at {path:?}: there is one at this path already"));
        }
        // The longest path first, so that the first that fits is the best.
        let after = |other: &Folder| other.path().len() < folder.path().len();
        let place = self.folders.iter().position(after).unwrap_or(self.folders.len());
        self.folders.insert(place, folder);
        Ok(())
    }

    /// Serves the files of a folder under `/`, in place of pages with the same paths and of the
    /// folder that is there, or says why it can't.
    pub(crate) fn take_pages_from(&mut self, folder: &Path) -> Result<(), String> {
        self.folders.retain(|other| !other.path().is_empty());
        self.folder("/", folder)?;
        let added = self.folders.last().expect("it was just added, with the shortest path");
        self.pages.retain(|path| !added.has_file(path));
        Ok(())
    }

    /// Checks its parts against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let doubled = |path: &&str| ["GET", "HEAD"].iter().any(|of| self.has_route(of, path));
        match self.pages.paths().find(doubled) {
            Some(path) => Err(format!("the path {path:?} has a page and a route for GET or HEAD")),
            None => Ok(()),
        }
    }

    fn has_route(&self, method: &str, path: &str) -> bool {
        self.routes.iter().any(|route| route.method == method && route.path == path)
    }

    /// Puts the parts together, or says which can't be served beside another.
    pub(crate) fn build(self) -> Result<Built, String> {
        let Self { pages, routes, routers, folders } = self;
        let folders: Arc<[Folder]> = folders.into();
        let has_folders = !folders.is_empty();
        let files = move |request: Request| {
            let folders = Arc::clone(&folders);
            async move { folder::answer(&folders, request).await }
        };
        let mut routers = routers.into_iter();
        let first = routers.next();
        // A router's own fallback stays, where no folder takes its place.
        let has_own = first.is_some() && !has_folders;
        let mut behind = first.unwrap_or_default();
        for router in routers {
            // Axum has no other way to say that routers overlap.
            behind = caught(|| behind.merge(router)).map_err(|why| {
                format!(
                    "the routers of Server::http can't be served together: {why}; give each path \
                     and method to one of them, with the same names in braces, such as /{{id}}, \
                     and a fallback to one"
                )
            })?;
        }
        if !has_own {
            behind = behind.fallback(files);
        }
        let mut by_path: BTreeMap<String, MethodRouter> = BTreeMap::new();
        for route in routes {
            let path = encoded(&route.path);
            let handlers = by_path.remove(&path).unwrap_or_default().merge(route.handler);
            by_path.insert(path, handlers);
        }
        let mut router = Router::new();
        for (path, handlers) in by_path {
            router = caught(|| router.route(&path, handlers)).map_err(|why| {
                format!("the route {path} can't be served beside the others: {why}")
            })?;
        }
        // Bodies are limited already, by `http.body_bytes`.
        let router = router.fallback_service(behind).layer(DefaultBodyLimit::disable());
        Ok(Built { pages, router })
    }
}

/// Refuses what can't be the path of a route.
fn check(path: &str) -> Result<(), String> {
    let rest = path.strip_prefix('/').ok_or("a path begins with a slash")?;
    if let Some(wrong) = path.chars().find(|char| "?#%".contains(*char) || char.is_control()) {
        return Err(format!("a path has no {wrong:?}; give it as it is when decoded"));
    }
    let mut names = Vec::new();
    for text in rest.split('/') {
        let Some(name) = param(text) else {
            if text.contains(['{', '}']) {
                let text = format!("{text:?} is neither a text nor one parameter, such as {{id}}");
                return Err(text);
            }
            if let Some((sign, name)) = text.split_at_checked(1).filter(|_| is_old(text)) {
                let name = format!("{{{}{name}}}", sign.trim_start_matches(':'));
                return Err(format!("a parameter is in braces: write {name} in place of {text:?}"));
            }
            continue;
        };
        if name.trim_start_matches('*').is_empty() {
            return Err("a parameter needs a name, such as {id}".into());
        }
        if name.contains(['{', '}']) {
            return Err(format!("{text:?} is neither a text nor one parameter, such as {{id}}"));
        }
        if names.contains(&name) {
            return Err(format!("there are two parameters {text}"));
        }
        names.push(name);
    }
    Ok(())
}

/// Returns whether a segment is a parameter as other routers write it, such as `:id` or `*rest`.
fn is_old(segment: &str) -> bool {
    segment.starts_with([':', '*'])
}

/// The name of a parameter, such as `id` of `{id}`.
fn param(segment: &str) -> Option<&str> {
    segment.strip_prefix('{').and_then(|text| text.strip_suffix('}'))
}

/// The segments of a path, without the names of parameters: paths of one shape take the same
/// requests.
fn shape(path: &str) -> Vec<Option<&str>> {
    let named = |segment| if param(segment).is_some() { None } else { Some(segment) };
    path.split('/').map(named).collect()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::extract::{Path, Request};
    use axum::routing::get;
    use tower::Service;

    use super::{Built, Site};

    async fn params(Path(params): Path<Vec<(String, String)>>) -> String {
        format!("route {params:?}")
    }

    async fn nothing() {}

    fn site() -> Site {
        let mut site = Site::default();
        site.page("/a b".into(), "text/plain", b"a page".to_vec()).unwrap();
        site.route("POST", "/a b", async || "posted").unwrap();
        site.route("GET", "/r/{x}", params).unwrap();
        site
    }

    /// The answers of a site: the status and the body of each.
    fn answers(built: &Built, requests: &[(&str, &str)]) -> Vec<(u16, String)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = async |&(method, path): &(&str, &str)| {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(Body::empty()).unwrap();
            if let Some(page) = built.pages.find(path).filter(|_| method == "GET") {
                return (200, String::from_utf8_lossy(page.body()).into_owned());
            }
            let response = built.router.clone().call(request).await.unwrap();
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            (status, String::from_utf8(body.to_vec()).unwrap())
        };
        requests.iter().map(|request| runtime.block_on(answer(request))).collect()
    }

    #[test]
    fn pages_come_before_routes_routes_before_routers_and_those_before_folders() {
        let folder = std::env::temp_dir().join(format!("playfield-site-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("r")).unwrap();
        std::fs::write(folder.join("file.txt"), "a file").unwrap();
        std::fs::write(folder.join("own.txt"), "a file").unwrap();
        let mut site = site();
        let own = async || "of the program";
        site.router(Router::new().route("/own.txt", get(own)).route("/r/{x}", get(own)));
        site.folder("/", &folder).unwrap();
        let built = site.build().unwrap();
        let expected = [
            ("GET", "/a%20b", 200, "a page"),
            ("POST", "/a%20b", 200, "posted"),
            ("PUT", "/a%20b", 405, ""),
            ("GET", "/r/1%2F", 200, "route [(\"x\", \"1/\")]"),
            ("HEAD", "/r/1", 200, ""),
            ("POST", "/r/1", 405, ""),
            ("GET", "/own.txt", 200, "of the program"),
            ("GET", "/file.txt", 200, "a file"),
            ("POST", "/file.txt", 405, "this path takes GET and HEAD only\n"),
            ("GET", "/none.txt", 404, "nothing is served at this path\n"),
            ("GET", "/%2", 400, "the path is not validly encoded\n"),
        ];
        let requests = expected.map(|(method, path, ..)| (method, path));
        let answers = answers(&built, &requests);
        std::fs::remove_dir_all(&folder).unwrap();
        for ((method, path, status, body), answer) in expected.iter().zip(answers) {
            assert_eq!(answer, (*status, (*body).to_owned()), "{method} {path}");
        }
    }

    #[test]
    fn a_folder_takes_the_place_of_pages_that_it_has_files_for() {
        let folder = std::env::temp_dir().join(format!("playfield-pages-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("a")).unwrap();
        for file in ["index.html", "style.css", "a/index.html", ".hidden"] {
            std::fs::write(folder.join(file), file).unwrap();
        }
        let mut site = site();
        for path in ["/", "/style.css", "/a/", "/a", "/.hidden", "/other.css"] {
            site.page(path.into(), "text/css", b"built in".to_vec()).unwrap();
        }
        site.folder("/", &std::env::temp_dir()).unwrap();
        site.take_pages_from(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        for (path, stays) in [
            ("/", false),
            ("/style.css", false),
            ("/a/", false),
            ("/a", true),
            ("/.hidden", true),
            ("/other.css", true),
            ("/a b", true),
        ] {
            assert_eq!(site.pages.find(path).is_some(), stays, "{path}");
        }
        let error = site.take_pages_from(&folder).unwrap_err();
        assert!(error.contains("playfield-pages-"), "{error}");
    }

    #[test]
    fn two_for_one_path_are_an_error() {
        let mut site = site();
        assert!(site.check().is_ok());
        site.route("HEAD", "/a b", nothing).unwrap();
        assert!(site.check().unwrap_err().contains("\"/a b\" has a page and a route"));
        let here = std::env::temp_dir();
        site.folder("/x", &here).unwrap();
        assert!(site.folder("/x/", &here).unwrap_err().contains("there is one at this path"));
    }

    #[test]
    fn a_route_that_cant_be_is_an_error() {
        let routes = |all: &[(&str, &str)]| {
            let mut site = Site::default();
            let added = all.iter().try_for_each(|(method, path)| site.route(method, path, nothing));
            added.and_then(|()| site.build().map(drop))
        };
        for (all, why) in [
            (&[("get", "/")][..], "the method is not one of GET, "),
            (&[("GET", "a")], "begins with a slash"),
            (&[("GET", "/a?b")], "has no '?'"),
            (&[("GET", "/a%20")], "has no '%'"),
            (&[("GET", "/{}")], "needs a name"),
            (&[("GET", "/a{b}")], "neither a text nor one parameter"),
            (&[("GET", "/{a")], "neither a text nor one parameter"),
            (&[("GET", "/{a}/{a}")], "two parameters {a}"),
            (&[("GET", "/{a}/b"), ("GET", "/{a}/b")], "there is GET /{a}/b already"),
            (&[("GET", "/{a}/b"), ("POST", "/{c}/b")], "GET /{a}/b already; name the parameters"),
            (&[("GET", "/{*a}"), ("GET", "/{*a}/b")], "can't be served beside the others"),
        ] {
            let error = routes(all).err().unwrap_or_default();
            assert!(error.contains(why), "{all:?}: {error}");
        }
        assert!(routes(&[("GET", "/{a}"), ("POST", "/{a}"), ("GET", "/a")]).is_ok());
    }
}
