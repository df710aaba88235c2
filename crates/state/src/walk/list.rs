//! Lists: changes of shape, then those elements that came or changed.

use std::slice;

use super::{Done, PatchSink, Shape, Walk, refused};
use crate::Part;
use crate::list::op::read_ops;
use crate::list::state::{ListPatch, next_index};

/// So many elements in a row that came, or that were there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) came: bool,
    pub(crate) count: u64,
}

impl<S: PatchSink> Walk<'_, S> {
    pub(super) fn patch_list(
        &mut self,
        shape: &Shape,
        of: &Shape,
        mut at: S::At<'_>,
        part: Part,
    ) -> Done {
        let how = ListPatch::read(&mut self.reader)?;
        if let ListPatch::Whole = how {
            let made = self.whole(shape, part)?;
            self.sink.replace(shape, &mut at, made);
            return Ok(());
        }
        self.sink.begin_collection(shape, &mut at);
        let mut length = self.sink.length(&mut at);
        let runs = if let ListPatch::ShapeAndElements = how {
            let ops = read_ops(&mut self.reader, length)?;
            let runs = self.sink.reshape(&mut at, &ops);
            length = self.sink.length(&mut at);
            runs
        } else {
            vec![Run { came: false, count: length as u64 }]
        };
        let mut arrivals = Arrivals::new(&runs);
        let mut next = 0;
        loop {
            let named = next_index(&mut self.reader, &mut next, length)?;
            if !arrivals.are_named_before(named) {
                let what = "an element that came to a list was not sent";
                return refused(self.reader.offset(), what);
            }
            let Some(index) = named else { return Ok(()) };
            if arrivals.came {
                let made = self.whole(of, part)?;
                self.sink.put_element(&mut at, index, made);
            } else {
                self.patch_at(of, &mut at, index, part)?;
            }
        }
    }
}

/// Which elements came, while those that are named are read in rising order.
struct Arrivals<'a> {
    runs: slice::Iter<'a, Run>,
    /// Of the present run.
    came: bool,
    end: u64,
    /// The first element of the present run that has not been named.
    next: u64,
}

impl<'a> Arrivals<'a> {
    fn new(runs: &'a [Run]) -> Self {
        Self { runs: runs.iter(), came: false, end: 0, next: 0 }
    }

    /// Goes to an element, or to the end. Returns whether all that came before it were named.
    fn are_named_before(&mut self, index: Option<usize>) -> bool {
        let index = index.map_or(u64::MAX, |index| index as u64);
        while index >= self.end {
            if self.came && self.next < self.end {
                return false;
            }
            let Some(run) = self.runs.next() else { return true };
            self.next = self.end;
            self.end = self.end.saturating_add(run.count);
            self.came = run.came;
        }
        let is_next = !self.came || self.next == index;
        self.next = index + 1;
        is_next
    }
}
