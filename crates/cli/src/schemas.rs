//! Sources of schemas for commands: this program, a file or a node.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use playfield_client::{Error, connect};
use playfield_server::Server;
use playfield_wire::schema::{RoomSchema, Type};
use serde_json::{Map, Value};

/// Room types by name, each with its schema.
pub(crate) type Schemas = Vec<(String, RoomSchema)>;

/// The schemas of the program's own room types. The server is made, and not started.
pub(crate) fn of_program(make: impl FnOnce() -> io::Result<Server>) -> io::Result<Schemas> {
    of_server(&make()?)
}

/// The schemas of a server's room types.
pub(crate) fn of_server(server: &Server) -> io::Result<Schemas> {
    let read = |(name, text): (&str, &str)| {
        let schema = RoomSchema::from_json(text.as_bytes()).map_err(io::Error::other)?;
        Ok((name.to_owned(), schema))
    };
    server.schemas().map(read).collect()
}

/// The schemas in a file that the command `schema` wrote: those of a program, or that of one room
/// type, which then has this name.
pub(crate) fn of_file(path: &Path, room_type: Option<&str>) -> io::Result<Schemas> {
    SchemaFile::read(path)?.schemas(room_type)
}

/// The member of a room type's schema with the type of its state in saves. No node sends it: it has
/// hidden fields.
pub(crate) const SAVE: &str = "save";

/// A file that the command `schema` wrote. It is read only once, since it may be a pipe.
pub(crate) struct SchemaFile<'a> {
    path: &'a Path,
    text: Vec<u8>,
    members: Map<String, Value>,
}

impl<'a> SchemaFile<'a> {
    pub(crate) fn read(path: &'a Path) -> io::Result<Self> {
        let wrong = |what: &dyn Display| io::Error::other(format!("{}: {what}", path.display()));
        let text = std::fs::read(path).map_err(|error| wrong(&error))?;
        if text.trim_ascii().is_empty() {
            let why = "it is empty, so the command that was to write it may have failed: it should \
                       have what `schema` prints";
            return Err(wrong(&why));
        }
        match serde_json::from_slice(&text) {
            Ok(Value::Object(members)) => Ok(Self { path, text, members }),
            Ok(_) => Err(wrong(&"it has no schema")),
            Err(error) => Err(wrong(&format!("it is not what `schema` prints: {error}"))),
        }
    }

    fn wrong(&self, what: &dyn Display) -> io::Error {
        io::Error::other(format!("{}: {what}", self.path.display()))
    }

    /// The schemas of a program, or that of one room type, which then has this name.
    pub(crate) fn schemas(&self, room_type: Option<&str>) -> io::Result<Schemas> {
        let read = |name: &str, text: &[u8]| {
            let schema = RoomSchema::from_json(text);
            Ok((name.to_owned(), schema.map_err(|error| self.wrong(&error))?))
        };
        if self.members.contains_key("fingerprint") {
            let Some(name) = room_type else {
                let why = "it has the schema of one room type: say which one after the file";
                return Err(self.wrong(&why));
            };
            return Ok(vec![read(name, &self.text)?]);
        }
        self.members
            .iter()
            .filter(|(name, _)| room_type.is_none_or(|wanted| wanted == name.as_str()))
            .map(|(name, schema)| read(name, schema.to_string().as_bytes()))
            .collect()
    }

    /// The types of states in saves, by room type. Files of nodes, and of older releases of
    /// Playfield, have none.
    pub(crate) fn saves(&self) -> io::Result<BTreeMap<String, Type>> {
        let saves = self.members.iter();
        let saves = saves.filter_map(|(name, schema)| Some((name, schema.get(SAVE)?)));
        let read = |(name, of): (&String, &Value)| {
            let of = Type::from_json(of.to_string().as_bytes());
            Ok((name.clone(), of.map_err(|error| self.wrong(&format!("{name}: {SAVE}: {error}")))?))
        };
        saves.map(read).collect()
    }
}

/// The schema of a room type of a running node, over TLS trusting these certificates.
pub(crate) fn of_node(url: &str, room_type: &str, roots: &[Vec<u8>]) -> io::Result<RoomSchema> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime
        .block_on(ask(url, room_type, roots))
        // Errors name the setting of the client's API.
        .map_err(|error| explained(&error).replace("root_certificate", "--root-certificate"))
        .map_err(io::Error::other)
}

async fn ask(url: &str, room_type: &str, roots: &[Vec<u8>]) -> Result<RoomSchema, Error> {
    let connect = connect(url).reconnect_timeout(Duration::ZERO);
    let connect = roots.iter().fold(connect, |connect, root| connect.root_certificate(root));
    let connection = connect.await?;
    let schema = connection.schema(room_type).await?;
    connection.close().await;
    Ok(schema)
}

/// An error with its causes.
fn explained(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
