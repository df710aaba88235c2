//! Figures that other projects have published.

use super::Table;

/// SwiftStateTree's estimate, as `docs/benchmarks.md` has it: players and hands, milliseconds of a
/// sync, rooms at 20 Hz a core and for 12 threads, and the same at 10 Hz.
const SWIFT_STATE_TREE: [[&str; 6]; 6] = [
    ["30, Low", "1.38", "19.2", "231", "38.5", "462"],
    ["30, Medium", "1.44", "18.5", "222", "37.0", "444"],
    ["30, High", "1.70", "15.7", "188", "31.3", "376"],
    ["50, Low", "2.99", "8.9", "107", "17.8", "214"],
    ["50, Medium", "3.17", "8.4", "101", "16.8", "202"],
    ["50, High", "3.53", "7.6", "91", "15.2", "182"],
];

/// The capacity that SwiftStateTree has published, and a sentence about its source.
#[must_use]
pub fn swift_state_tree() -> (Table, &'static str) {
    let mut table = Table::new([
        "players, hands",
        "ms a sync",
        "20 Hz, rooms a core",
        "20 Hz, 12 threads",
        "10 Hz, rooms a core",
        "10 Hz, 12 threads",
    ]);
    SWIFT_STATE_TREE.iter().for_each(|row| table.row(row.iter().copied()));
    let source = "SwiftStateTree's own estimate of January 2026, for one kind of room on an AMD \
                  Ryzen 5 7600X: sync times that are spread over 12 threads, at 80 % use, if all \
                  else takes half as long again. Nothing is sent in it. It is another room than \
                  the one above: docs/benchmarks.md, under Other projects, compares the same room.";
    (table, source)
}

#[cfg(test)]
mod tests {
    use super::SWIFT_STATE_TREE;

    #[test]
    fn the_documents_have_the_same_figures_beside_ours() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
        let text = std::fs::read_to_string(path).expect("the documents are beside the crates");
        for [size, sync, others @ ..] in SWIFT_STATE_TREE {
            let start = format!("| {size} | {sync} | ");
            let line = text.lines().rev().find(|line| line.starts_with(&start)).expect(&start);
            let cells: Vec<&str> = line.split(" | ").skip(3).collect();
            let theirs = cells.iter().map(|cell| cell.split(" / ").next().unwrap_or_default());
            assert_eq!(theirs.collect::<Vec<_>>(), others, "{line}");
        }
    }
}
