//! Saving and loading a state of 1 MB, beside a copy of the same bytes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use playfield_state::{State, load, save, save_to};

use super::states::{Game, Text, Whiteboard};
use crate::rounds::{Body, Form, Run, run};

/// A row.
pub(super) struct Row {
    pub(super) name: String,
    body: Box<dyn Fn(Form, u64) -> Run>,
}

impl Body for Row {
    fn run(&self, form: Form, times: u64) -> Run {
        (self.body)(form, times)
    }
}

/// For each state: a copy of its save, saving into a new and into a used buffer, and loading.
pub(super) fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    of("game", &Game::new(25_000), &mut rows);
    of("whiteboard", &Whiteboard::new(3_850), &mut rows);
    of("text", &Text::new(2_600), &mut rows);
    rows
}

fn of<S: State + Clone + PartialEq>(name: &str, state: &S, rows: &mut Vec<Row>) {
    let saved = save(state);
    let length = saved.len();
    let mut add = |what: &str, body: Box<dyn Fn(Form, u64) -> Run>| {
        rows.push(Row { name: format!("{name}, {what}"), body });
    };
    let source = saved.clone();
    add(
        "memcpy",
        Box::new(move |_, times| {
            let mut target = vec![0; length];
            run(times, length, |_| {
                black_box(&mut target[..]).copy_from_slice(black_box(&source));
                true
            })
        }),
    );
    let (one, expected) = (state.clone(), saved.clone());
    add(
        "save",
        Box::new(move |form, times| {
            run(times, length, |_| {
                let bytes = save(black_box(&one));
                form == Form::Same || bytes == expected
            })
        }),
    );
    let (one, expected) = (state.clone(), saved.clone());
    add(
        "save again",
        Box::new(move |form, times| {
            let mut bytes = Vec::new();
            run(times, length, |_| {
                save_to(black_box(&one), &mut bytes);
                form == Form::Same || bytes == expected
            })
        }),
    );
    let one = state.clone();
    add(
        "load",
        Box::new(move |form, times| {
            // Comparing and dropping what was loaded is not part of it.
            let mut took = Duration::ZERO;
            let mut right = true;
            for _ in 0..times {
                let began = Instant::now();
                let loaded = load::<S>(black_box(&saved));
                took += began.elapsed();
                right &= loaded.is_ok_and(|loaded| form == Form::Same || loaded == one);
            }
            Run { took, bytes_per_op: length as u64, right, allocations: None }
        }),
    );
}
