//! The newest of several rooms with the same key in a journal.

use std::collections::BTreeMap;

use playfield_room::recording::Recording;

/// A room of a journal that has a key.
pub(super) struct Claim<'a> {
    room_type: &'a str,
    key: &'a str,
    id: &'a str,
    /// The fence of its save. Rooms that open the save later have greater ones.
    fence: Option<u64>,
    /// The last file that may have it.
    file: &'a str,
}

impl<'a> Claim<'a> {
    /// The claim of a room; `None` if it has no key.
    pub(super) fn of(room: &'a Recording) -> Option<Self> {
        let about = room.about();
        Some(Self {
            room_type: &about.room_type,
            key: about.key.as_deref()?,
            id: &about.room_id,
            fence: room.fence(),
            file: room.files().last().map_or("", String::as_str),
        })
    }
}

/// The rooms that are superseded by newer ones with the same keys: the id of each, and of the
/// newest room with its key.
///
/// # Errors
/// Fails if the newest one can't be determined. The text names the key, the rooms and the files.
pub(super) fn superseded<'a>(
    claims: impl Iterator<Item = Claim<'a>>,
) -> Result<BTreeMap<String, String>, String> {
    let mut by_key = BTreeMap::<_, Vec<Claim<'_>>>::new();
    for claim in claims {
        by_key.entry((claim.room_type, claim.key)).or_default().push(claim);
    }
    let mut superseded = BTreeMap::new();
    for ((room_type, key), mut claims) in by_key {
        claims.sort_by_key(|claim| claim.fence);
        if let [.., other, newest] = &claims[..]
            && other.fence == newest.fence
        {
            let named = |claim: &Claim<'_>| format!("{} in {}", claim.id, claim.file);
            let rooms: Vec<_> = claims.iter().map(named).collect();
            return Err(format!(
                "several rooms have the key {key:?} of the type {room_type:?}, and which is the \
                 newest is not known: {}",
                rooms.join(", ")
            ));
        }
        if let Some(newest) = claims.pop() {
            let older = claims.iter().map(|claim| (claim.id.to_owned(), newest.id.to_owned()));
            superseded.extend(older);
        }
    }
    Ok(superseded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim<'a>(key: &'a str, id: &'a str, fence: Option<u64>) -> Claim<'a> {
        Claim { room_type: "till", key, id, fence, file: "a file" }
    }

    #[test]
    fn the_room_that_opened_the_save_last_is_the_newest() {
        let claims = [
            claim("one", "a", Some(3)),
            claim("two", "b", None),
            claim("one", "c", Some(7)),
            claim("one", "d", None),
            claim("three", "e", Some(3)),
        ];
        let superseded = superseded(claims.into_iter()).unwrap();
        let superseded: Vec<_> = superseded.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        assert_eq!(superseded, [("a", "c"), ("d", "c")]);
    }

    #[test]
    fn rooms_of_which_none_is_newer_are_named() {
        for fence in [None, Some(3)] {
            let claims = [claim("one", "a", fence), claim("one", "b", fence)];
            let error = superseded(claims.into_iter()).unwrap_err();
            for named in ["\"one\"", "\"till\"", "a in a file", "b in a file"] {
                assert!(error.contains(named), "{error}");
            }
        }
    }
}
