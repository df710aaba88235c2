//! Saving and loading a state of 1 MB, beside a copy of the same bytes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use playfield_state::{State, load, save, save_to};

use super::states::{Game, Text, Whiteboard};
use crate::harness::rounds::{Body, Form, Run, run};

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

/// The states that are measured, and the work measured of each.
const STATES: [&str; 3] = ["game", "whiteboard", "text"];
const WORK: [&str; 4] = ["memcpy", "save", "save again", "load"];

/// The names of all rows.
pub(super) fn names() -> impl Iterator<Item = String> {
    STATES.into_iter().flat_map(|state| WORK.map(|work| format!("{state}, {work}")))
}

/// For each state: a copy of its save, saving into a new and into a used buffer, and loading.
pub(super) fn all(corrupt_one: bool) -> Vec<Row> {
    let bodies = of(&Game::new(25_000), corrupt_one)
        .into_iter()
        .chain(of(&Whiteboard::new(3_850), corrupt_one))
        .chain(of(&Text::new(2_600), corrupt_one));
    names().zip(bodies).map(|(name, body)| Row { name, body }).collect()
}

type Work = Box<dyn Fn(Form, u64) -> Run>;

/// The work of one state. To test the check, one byte of what is expected may be wrong.
fn of<S: State + Clone + PartialEq>(state: &S, corrupt_one: bool) -> [Work; WORK.len()] {
    let saved = save(state);
    let length = saved.len();
    let mut expected = saved.clone();
    expected[length / 2] ^= u8::from(corrupt_one);
    let copy = {
        let (source, expected) = (saved.clone(), expected.clone());
        move |form, times| {
            let mut target = vec![0; length];
            run(times, length, |_| {
                black_box(&mut target[..]).copy_from_slice(black_box(&source));
                form == Form::Same || target == expected
            })
        }
    };
    let save_new = {
        let (one, expected) = (state.clone(), expected.clone());
        move |form, times| {
            run(times, length, |_| {
                let bytes = save(black_box(&one));
                form == Form::Same || bytes == expected
            })
        }
    };
    let save_again = {
        let (one, expected) = (state.clone(), expected.clone());
        move |form, times| {
            let mut bytes = Vec::new();
            run(times, length, |_| {
                save_to(black_box(&one), &mut bytes);
                form == Form::Same || bytes == expected
            })
        }
    };
    let load_one = {
        let one = state.clone();
        move |form, times| {
            // Comparing and dropping what was loaded is not part of it.
            let mut took = Duration::ZERO;
            let mut right = true;
            for _ in 0..times {
                let began = Instant::now();
                let loaded = load::<S>(black_box(&saved));
                took += began.elapsed();
                right &= loaded.is_ok_and(|loaded| {
                    form == Form::Same || (loaded == one && save(&loaded) == expected)
                });
            }
            Run { took, bytes_per_op: length as u64, right, allocations: None }
        }
    };
    [Box::new(copy), Box::new(save_new), Box::new(save_again), Box::new(load_one)]
}
