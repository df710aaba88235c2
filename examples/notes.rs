//! Notes: a text for each key, which is loaded before anyone enters and saved before the room ends.
//!
//! `NOTES=folder cargo run --bin notes` serves it on 127.0.0.1:7350, and keeps the texts in that
//! folder.

use std::{env, fs, io};

use playfield::prelude::*;

#[derive(State, Default)]
struct Note {
    text: String,
    /// The path of the file with the text.
    #[sync(hidden)]
    path: String,
}

#[derive(Message)]
struct Write {
    text: String,
}

/// The end of reading the file; with the text, unless it can't be read.
#[derive(Message)]
struct Loaded(Option<String>);

/// The end of writing it.
#[derive(Message)]
struct Saved(bool);

#[room(messages(Write), internal(Loaded, Saved), empty_ms = 1_000, closing_ms = 10_000)]
impl Room for Note {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let key = cx.key().ok_or("a note needs a key")?;
        if !key.chars().all(char::is_alphanumeric) {
            return Err("the key of a note has letters and digits alone".into());
        }
        let folder = env::var("NOTES").unwrap_or_else(|_| ".".into());
        let path = format!("{folder}/{key}.txt");
        let from = path.clone();
        // Nobody enters before this has ended in `Loaded`. (What may take long, such as a large
        // file, belongs in `tokio::task::spawn_blocking`.)
        cx.hold(async move { Loaded(load(&from)) })?;
        Ok(Self { path, ..Self::default() })
    }

    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        let (path, text) = (self.path.clone(), self.text.clone());
        // The room, and at its shutdown the node, waits for this.
        if let Err(error) = cx.compute(move || Saved(fs::write(path, text).is_ok())) {
            eprintln!("{} is not saved: {error}", self.path);
        }
    }
}

/// A new note is empty.
fn load(path: &str) -> Option<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(String::new()),
        text => text.ok(),
    }
}

impl On<Loaded> for Note {
    fn on(&mut self, Loaded(text): Loaded, _: &mut Context<Self>) -> Result<()> {
        // An error refuses all who wait.
        self.text = text.ok_or("the note can't be read")?;
        Ok(())
    }
}

impl On<Saved> for Note {
    fn on(&mut self, Saved(ok): Saved, _: &mut Context<Self>) -> Result<()> {
        if ok { Ok(()) } else { Err(format!("{} is not saved", self.path).into()) }
    }
}

impl Handle<Write> for Note {
    fn handle(&mut self, write: Write, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.text = write.text;
        Ok(())
    }
}

fn main() -> ExitCode {
    Server::new().room::<Note>("note").run()
}
