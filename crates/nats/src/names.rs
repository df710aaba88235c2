//! The names of a cluster's stream, subjects and records.

use playfield_cluster::{Incarnation, Slot};

/// The names of one cluster.
#[derive(Debug)]
pub(crate) struct Names {
    /// The stream of all records, as tools for key-value buckets expect it: `KV_<bucket>`.
    pub(crate) stream: String,
    /// The subject of messages to all nodes.
    pub(crate) all: String,
    bucket: String,
    cluster: String,
}

impl Names {
    pub(crate) fn new(cluster: &str) -> Self {
        let bucket = format!("pf_{cluster}");
        Self {
            stream: format!("KV_{bucket}"),
            all: format!("pf.{cluster}.all"),
            bucket,
            cluster: cluster.to_owned(),
        }
    }

    /// The bucket, as people see it.
    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The subject of a record.
    pub(crate) fn record(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.bucket)
    }

    /// The record of a subject.
    pub(crate) fn key<'a>(&self, subject: &'a str) -> Option<&'a str> {
        subject.strip_prefix("$KV.")?.strip_prefix(self.bucket.as_str())?.strip_prefix('.')
    }

    /// The subject of messages to one incarnation of a node.
    pub(crate) fn node(&self, slot: Slot, incarnation: Incarnation) -> String {
        format!("pf.{}.n.{slot}.{incarnation:?}", self.cluster)
    }
}

/// Returns whether a key can be the name of a record. The host encodes what people chose.
pub(crate) fn is_valid_key(key: &str) -> bool {
    let is_valid =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'/');
    key.split('.').all(|part| !part.is_empty() && part.bytes().all(is_valid))
}

/// Returns whether a name can be that of a cluster.
pub(crate) fn is_valid_cluster(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_name_records_and_nodes() {
        let names = Names::new("game_1");
        assert_eq!(names.stream, "KV_pf_game_1");
        assert_eq!(names.record("n.5"), "$KV.pf_game_1.n.5");
        assert_eq!(names.key("$KV.pf_game_1.n.5"), Some("n.5"));
        assert_eq!(names.key("$KV.pf_game_12.n.5"), None);
        assert_eq!(names.node(5, Incarnation(0xab)), "pf.game_1.n.5.00000000000000ab");
    }

    #[test]
    fn what_subjects_cannot_have_is_no_key() {
        for key in ["n.5", "r.bWF0Y2g.cm9vbQ", "meta.secret", "r.a_b.-"] {
            assert!(is_valid_key(key), "{key}");
        }
        for key in ["", ".", "n.", "n..5", "r.*", "r.>", "r.a b", "r.ü", "r.a\n"] {
            assert!(!is_valid_key(key), "{key}");
        }
        for name in ["", "Game", "a.b", "a-b", "a*", &"a".repeat(33)] {
            assert!(!is_valid_cluster(name), "{name}");
        }
        assert!(is_valid_cluster("playfield"));
    }
}
