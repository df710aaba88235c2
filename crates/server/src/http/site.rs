//! Pages, handlers and folders that a node serves over HTTP, by method and path.

use std::path::Path;

use playfield_http::Request;

use super::folder::{Folder, Reply};
use super::pages::{Page, Pages, Readers};
use super::routes::{Handler, Handling, Routes, decoded};
use crate::handle::NodeHandle;

/// Pages, routes and folders.
#[derive(Default)]
pub(crate) struct Site {
    pages: Pages,
    routes: Routes,
    folders: Vec<Folder>,
}

/// The result of a lookup by method and path.
pub(crate) enum Found<'a> {
    Page(&'a Page),
    /// A handler, by the number of its route.
    Route {
        number: usize,
        params: Vec<(String, String)>,
    },
    /// A file, perhaps, in the folder of this number.
    File {
        folder: usize,
    },
    /// `OPTIONS` for a path with these methods.
    Options {
        allow: String,
    },
    /// The path has other methods than the request's.
    NotAllowed {
        allow: String,
    },
    Nothing,
    /// The path is not validly encoded.
    BadPath,
}

/// The methods of pages and files.
const READ: [&str; 2] = ["GET", "HEAD"];

impl Site {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && !self.has_work()
    }

    /// Whether anything of it is the worker's.
    pub(crate) fn has_work(&self) -> bool {
        !self.routes.is_empty() || !self.folders.is_empty()
    }

    /// Adds a page, or says why it can't be one.
    pub(crate) fn page(
        &mut self,
        path: String,
        content_type: String,
        body: Vec<u8>,
    ) -> Result<(), String> {
        self.pages.add(path, content_type, body, Readers::SameOrigin)
    }

    /// Adds a script that pages of any origin may load, or says why it can't be one.
    pub(crate) fn script(&mut self, path: String, body: Vec<u8>) -> Result<(), String> {
        let content_type = "text/javascript; charset=utf-8".into();
        self.pages.add(path, content_type, body, Readers::Everyone)
    }

    /// Adds a route, or says why it can't be one.
    pub(crate) fn route(
        &mut self,
        method: &str,
        path: &str,
        handler: Handler,
    ) -> Result<(), String> {
        self.routes.add(method, path, handler)
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

    /// Serves the files of a folder under `/`, in place of pages with the same paths and of the folder
    /// that is there, or says why it can't.
    pub(crate) fn take_pages_from(&mut self, folder: &Path) -> Result<(), String> {
        self.folders.retain(|other| !other.path().is_empty());
        self.folder("/", folder)?;
        let added = self.folders.last().expect("it was just added, with the shortest path");
        self.pages.retain(|path| !added.has_file(path));
        Ok(())
    }

    /// Checks its parts against each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let doubled = |path: &&str| READ.iter().any(|method| self.routes.has(method, path));
        match self.pages.paths().find(doubled) {
            Some(path) => Err(format!("the path {path:?} has a page and a route for GET or HEAD")),
            None => Ok(()),
        }
    }

    /// Calls the handler of the route with this number.
    pub(super) fn call(&self, number: usize, request: Request, node: NodeHandle) -> Handling {
        self.routes.call(number, request, node)
    }

    /// The answer with a file of the folder with this number. May block.
    pub(super) fn file(&self, folder: usize, request: &Request) -> Reply {
        self.folders[folder].answer(request)
    }

    /// Looks up a method and a path as it was sent.
    pub(crate) fn find(&self, method: &str, path: &str) -> Found<'_> {
        if path == "*" {
            return Found::Options { allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS".into() };
        }
        let Some(segments) = decoded(path) else { return Found::BadPath };
        let reads = READ.contains(&method);
        let page = if path.contains('%') {
            // An encoded slash is part of a segment, so it is in no page's path.
            let has_slash = segments.iter().any(|segment| segment.contains('/'));
            if has_slash { None } else { self.pages.find(&format!("/{}", segments.join("/"))) }
        } else {
            self.pages.find(path)
        };
        if let Some(page) = page.filter(|_| reads) {
            return Found::Page(page);
        }
        if let Some(found) = self.routes.find(method, &segments) {
            return Found::Route { number: found.number, params: found.params };
        }
        let folder = self.folders.iter().position(|folder| folder.holds(&segments));
        if let Some(folder) = folder.filter(|_| reads) {
            return Found::File { folder };
        }
        let mut methods: Vec<&str> = self.routes.methods(&segments).collect();
        if page.is_some() || folder.is_some() || methods.contains(&"GET") {
            methods.extend(READ);
        }
        if methods.is_empty() {
            return Found::Nothing;
        }
        methods.push("OPTIONS");
        methods.sort_unstable();
        methods.dedup();
        let allow = methods.join(", ");
        if method == "OPTIONS" { Found::Options { allow } } else { Found::NotAllowed { allow } }
    }
}

#[cfg(test)]
mod tests {
    use super::super::handler;
    use super::{Found, Site};

    fn found(site: &Site, method: &str, path: &str) -> String {
        match site.find(method, path) {
            Found::Page(page) => String::from_utf8_lossy(page.body()).into_owned(),
            Found::Route { params, .. } => format!("route {params:?}"),
            Found::File { folder } => format!("file {folder}"),
            Found::Options { allow } => format!("options {allow}"),
            Found::NotAllowed { allow } => format!("only {allow}"),
            Found::Nothing => "nothing".into(),
            Found::BadPath => "bad".into(),
        }
    }

    fn site() -> Site {
        let mut site = Site::default();
        site.page("/a b".into(), "text/plain".into(), b"a page".to_vec()).unwrap();
        site.route("POST", "/a b", handler(async |_, _| ())).unwrap();
        site.route("GET", "/r/{x}", handler(async |_, _| ())).unwrap();
        site
    }

    #[test]
    fn pages_come_before_routes_and_routes_before_folders() {
        let mut site = site();
        for (method, path, expected) in [
            ("GET", "/a%20b", "a page"),
            ("HEAD", "/a%20b", "a page"),
            ("POST", "/a%20b", "route []"),
            ("PUT", "/a%20b", "only GET, HEAD, OPTIONS, POST"),
            ("OPTIONS", "/a%20b", "options GET, HEAD, OPTIONS, POST"),
            ("HEAD", "/r/1", "route [(\"x\", \"1\")]"),
            ("POST", "/r/1", "only GET, HEAD, OPTIONS"),
            ("GET", "/%2", "bad"),
            ("GET", "/%ff", "bad"),
            ("GET", "/x", "nothing"),
            ("GET", "%2Fa%20b", "bad"),
            ("OPTIONS", "*", "options GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        ] {
            assert_eq!(found(&site, method, path), expected, "{method} {path}");
        }
        let here = std::env::temp_dir();
        site.folder("/", &here).unwrap();
        site.folder("/r", &here).unwrap();
        for (method, path, expected) in [
            ("GET", "/a%20b", "a page"),
            ("GET", "/r/1", "route [(\"x\", \"1\")]"),
            ("GET", "/r/1/2", "file 0"),
            ("GET", "/x", "file 1"),
            ("POST", "/x", "only GET, HEAD, OPTIONS"),
        ] {
            assert_eq!(found(&site, method, path), expected, "{method} {path}");
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
            let body = b"built in".to_vec();
            site.page(path.into(), "text/css".into(), body).unwrap();
        }
        site.folder("/", &std::env::temp_dir()).unwrap();
        site.folder("/r", &std::env::temp_dir()).unwrap();
        site.take_pages_from(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        for (path, expected) in [
            ("/", "file 1"),
            ("/style.css", "file 1"),
            ("/a/", "file 1"),
            ("/a", "built in"),
            ("/.hidden", "built in"),
            ("/other.css", "built in"),
            ("/a%20b", "a page"),
            ("/r/1", "route [(\"x\", \"1\")]"),
            ("/r/1/2", "file 0"),
            ("/x", "file 1"),
        ] {
            assert_eq!(found(&site, "GET", path), expected, "{path}");
        }
        let error = site.take_pages_from(&folder).unwrap_err();
        assert!(error.contains("playfield-pages-"), "{error}");
    }

    #[test]
    fn two_for_one_path_are_an_error() {
        let mut site = site();
        assert!(site.check().is_ok());
        site.route("HEAD", "/a b", handler(async |_, _| ())).unwrap();
        assert!(site.check().unwrap_err().contains("\"/a b\" has a page and a route"));
        let here = std::env::temp_dir();
        site.folder("/x", &here).unwrap();
        assert!(site.folder("/x/", &here).unwrap_err().contains("there is one at this path"));
    }
}
