//! The name that a misspelt one was meant to be.

/// Longer names are not compared: the time grows with the length.
const NAME_BYTES_MAX: usize = 64;

/// The known name that is closest to a wrong one, if one is close enough for a typing error: up to
/// a third of its characters differ. Dashes equal underscores, and the words may be in another
/// order.
#[must_use]
pub fn closest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.len() > NAME_BYTES_MAX {
        return None;
    }
    let wrong = wrong.to_ascii_lowercase().replace('-', "_");
    let distance = |name: &str| {
        let name = name.replace('-', "_");
        edits(&wrong, &name).min(edits(&in_order(&wrong), &in_order(&name)))
    };
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= name.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A name with its words in alphabetical order.
fn in_order(name: &str) -> String {
    let mut words: Vec<&str> = name.split('_').collect();
    words.sort_unstable();
    words.join("_")
}

/// Returns the number of characters that must be put in, taken out, replaced or swapped with the
/// next one to get from one text to the other (the optimal string alignment distance).
fn edits(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &byte) in from.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, &other) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(byte != other);
            let mut least = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && byte == to[column - 1] && from[row - 1] == other {
                let swapped: &Vec<usize> = &before;
                least = least.min(swapped[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, closest, edits};

    const KNOWN: [&str; 4] = ["connections_max", "shards", "list_max", "log"];

    #[test]
    fn the_closest_name_is_found() {
        for (wrong, meant) in [
            ("conections_max", "connections_max"),
            ("connections-max", "connections_max"),
            ("max_connections", "connections_max"),
            ("shrads", "shards"),
            ("SHARD", "shards"),
            ("lgo", "log"),
        ] {
            assert_eq!(closest(wrong, KNOWN), Some(meant), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_close_to_another_word_or_to_a_long_one() {
        for wrong in ["", "verbose", "port", "é"] {
            assert_eq!(closest(wrong, KNOWN), None, "{wrong}");
        }
        let most = "x".repeat(NAME_BYTES_MAX);
        assert_eq!(closest(&most, [&*most]), Some(&*most));
        let longer = most.clone() + "x";
        assert_eq!(closest(&longer, [&*most]), None);
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in
            [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("abcd", "acbd", 1), ("ab", "xb", 1)]
        {
            assert_eq!(edits(from, to), count, "{from} {to}");
        }
    }
}
