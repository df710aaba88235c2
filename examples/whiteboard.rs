//! A whiteboard for each key. It outlives the program, even `kill -9`.
//!
//! `BOARDS=boards.redb cargo run --bin whiteboard` serves it on 127.0.0.1:7350, and keeps all
//! boards in that file.

use std::collections::HashMap;

use playfield::prelude::*;

#[derive(State, Default)]
struct Board {
    strokes: Map<u32, Stroke>,
    next: u32,
    /// Strokes by the square in which they begin. It is made of the strokes, so it is no state: not
    /// sent, and not saved.
    #[sync(skip)]
    squares: HashMap<(i32, i32), Vec<u32>>,
}

#[derive(State, Default)]
struct Stroke {
    author: String,
    points: List<[f32; 2]>,
}

/// Replies with the number of the stroke.
#[derive(Message)]
#[reply(u32)]
struct Draw {
    points: Vec<Point>,
}

#[derive(Data)]
struct Point {
    x: f32,
    y: f32,
}

/// The strokes that begin in the square of this place.
#[derive(Message)]
#[reply(Vec<u32>)]
struct Near {
    x: f32,
    y: f32,
}

/// Is answered when all that was drawn before is on disk.
#[derive(Message)]
struct Keep;

/// The end of a save, with who waits for it.
#[derive(Message)]
struct OnDisk(Deferred<Keep>);

// A crash costs what was drawn in the last 10 seconds, unless someone asked to keep it.
#[room(messages(Draw, Near, Keep), internal(OnDisk), persist = 10, empty_ms = 5_000)]
impl Room for Board {
    /// There is no board with this key yet.
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        cx.key().ok_or("a board needs a key")?;
        Ok(Self::default())
    }

    /// The board is as it was saved; make the rest again.
    fn rebuild(&mut self, _: &mut Context<Self>) {
        for (number, stroke) in &self.strokes {
            if let Some(&[x, y]) = stroke.points.first() {
                self.squares.entry(square(x, y)).or_default().push(*number);
            }
        }
    }
}

impl Handle<Draw> for Board {
    fn handle(&mut self, draw: Draw, player: &Player, _: &mut Context<Self>) -> Result<u32> {
        let Point { x, y } = *draw.points.first().ok_or("a stroke has points")?;
        let number = self.next;
        self.next += 1;
        let points = draw.points.iter().map(|point| [point.x, point.y]).collect();
        self.strokes.insert(number, Stroke { author: player.name().into(), points });
        self.squares.entry(square(x, y)).or_default().push(number);
        Ok(number)
    }
}

impl Handle<Near> for Board {
    fn handle(&mut self, near: Near, _: &Player, _: &mut Context<Self>) -> Result<Vec<u32>> {
        Ok(self.squares.get(&square(near.x, near.y)).cloned().unwrap_or_default())
    }
}

impl Handle<Keep> for Board {
    fn handle(&mut self, _: Keep, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        let later = cx.defer();
        cx.save(OnDisk(later))?;
        Err(Error::deferred())
    }
}

impl On<OnDisk> for Board {
    fn on(&mut self, OnDisk(waiting): OnDisk, cx: &mut Context<Self>) -> Result<()> {
        cx.answer(waiting, Ok(()));
        Ok(())
    }
}

/// Squares are 100 units wide.
fn square(x: f32, y: f32) -> (i32, i32) {
    ((x / 100.0).floor() as i32, (y / 100.0).floor() as i32)
}

fn main() -> ExitCode {
    let file = std::env::var("BOARDS").unwrap_or_else(|_| "boards.redb".into());
    Server::new().room::<Board>("board").store_file(file).run()
}
