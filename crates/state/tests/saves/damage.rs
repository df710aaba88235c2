//! Saves that are torn or changed.

use playfield_state::{List, LoadError, Map, State, load, save};
use proptest::prelude::*;

use crate::common::Model as _;
use crate::common::world::{Root as _, World};

#[derive(State, Default, Debug, PartialEq)]
struct Shelf {
    size: u16,
    books: Map<u32, Book>,
}

#[derive(State, Default, Debug, PartialEq)]
struct Book {
    title: String,
    pages: List<u8>,
}

fn shelf(books: u32) -> Shelf {
    let book = |number| Book { title: format!("Book {number}"), pages: List::from([1, 2, 3]) };
    Shelf { size: 7, books: (0..books).map(|number| (number, book(number))).collect() }
}

/// The same save with the checksums that its bytes have now.
pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let word = |bytes: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
    };
    let end = 44 + word(&bytes, 16) + word(&bytes, 24);
    let check = crc32fast::hash(&bytes[..40]);
    bytes[40..44].copy_from_slice(&check.to_le_bytes());
    bytes.truncate(end);
    for start in (44..end).step_by(1 << 16) {
        let check = crc32fast::hash(&bytes[start..end.min(start + (1 << 16))]);
        bytes.extend(check.to_le_bytes());
    }
    bytes
}

#[test]
fn a_save_that_is_cut_anywhere_is_refused_and_says_where_it_ends() {
    let whole = save(&shelf(3));
    for length in 0..whole.len() {
        let error = load::<Shelf>(&whole[..length]).unwrap_err();
        match error {
            LoadError::NotASave => assert_eq!(length, 0),
            LoadError::Truncated { bytes, .. } => assert_eq!(bytes, length),
            other => panic!("{other}"),
        }
    }
    let cut = load::<Shelf>(&whole[..whole.len() - 7]).unwrap_err().to_string();
    let length = whole.len();
    assert_eq!(
        cut,
        format!("the save ends at byte {} of {length}, in the field books.2.pages.0", length - 7)
    );
    let more = load::<Shelf>(&[&whole[..], &[0]].concat()).unwrap_err().to_string();
    assert_eq!(more, format!("the save has {} bytes, but ends at byte {length}", length + 1));
}

#[test]
fn a_save_with_any_changed_bit_is_refused() {
    let whole = save(&shelf(3));
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = load::<Shelf>(&bytes).unwrap_err();
        match error {
            LoadError::NotASave => assert!(bit < 7 * 8),
            LoadError::Format { .. } => assert_eq!(bit / 8, 7),
            LoadError::Damaged { bytes, .. } if bytes.start == 0 => assert!(bit < 44 * 8),
            LoadError::Damaged { bytes, .. } => assert_eq!(bytes, 44..whole.len() - 4),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn damage_is_located_by_block_and_field() {
    let whole = save(&shelf(20_000));
    let mut bytes = whole.clone();
    bytes[150_000] ^= 4;
    let error = load::<Shelf>(&bytes).unwrap_err();
    let LoadError::Damaged { bytes: block, place } = &error else { panic!("{error}") };
    assert_eq!(*block, 44 + (2 << 16)..44 + (3 << 16));
    let place = place.as_deref().unwrap();
    assert!(place.starts_with("books."), "{place}");
    assert_eq!(
        error.to_string(),
        format!(
            "the save is damaged between the bytes 131116 and 196652, from the field {place} on"
        )
    );
}

#[test]
fn bytes_that_are_no_save_and_newer_formats_are_refused() {
    let say = |bytes: &[u8]| load::<Shelf>(bytes).unwrap_err().to_string();
    assert_eq!(
        say(b"{\"size\": 7}"),
        "these bytes are not a save: they do not begin with \"PFSAVE\""
    );
    let mut newer = save(&shelf(0));
    newer[7] = 3;
    assert_eq!(
        say(&newer),
        "the save has the format 3; this build reads the formats 1 and 2: update Playfield"
    );
}

#[test]
fn forged_contents_are_refused_with_byte_and_field() {
    let whole = save(&shelf(1));
    let title = whole.windows(6).position(|bytes| bytes == b"Book 0").unwrap();
    let mut bytes = whole.clone();
    bytes[title + 2] = 0xff;
    let error = load::<Shelf>(&sealed(bytes)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the save is not valid: at byte {}: a text is not UTF-8, in the field books.0.title",
            title + 2
        )
    );
    // The same in a save of an older build, whose bytes are converted.
    let mut bytes = whole;
    let name = bytes.windows(4).position(|bytes| bytes == b"size").unwrap();
    bytes[name..name + 4].copy_from_slice(b"span");
    let error = load::<Shelf>(&sealed(bytes)).unwrap_err();
    assert!(error.to_string().starts_with("span: the save has this field"), "{error}");
}

/// An empty save whose description of types is this one, and whose body is this one.
fn forged(description: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = save(&Map::<u8, u8>::default())[..44].to_vec();
    bytes[8..16].fill(0);
    bytes[16..24].copy_from_slice(&(description.len() as u64).to_le_bytes());
    bytes[24..32].copy_from_slice(&(body.len() as u64).to_le_bytes());
    sealed([&bytes, description, body].concat())
}

/// The bytes of types in a description.
const UNIT: u8 = 0;
const U8: u8 = 2;
const LIST: u8 = 33;
const ARRAY: u8 = 34;
const MAP: u8 = 35;
const STRUCT: u8 = 37;
const ENUM: u8 = 38;
/// 2^32 - 1 and 2^63, as varints.
const MOST: [u8; 5] = [255, 255, 255, 255, 15];
const HUGE: [u8; 10] = [128, 128, 128, 128, 128, 128, 128, 128, 128, 1];

/// Loading takes time by the bytes of a save, not by the numbers in it.
#[test]
fn announced_values_that_take_no_bytes_are_refused() {
    let nothing = [ARRAY, UNIT, 0];
    let arrays = |of: &[u8], times: usize| [&vec![ARRAY; times], of, &MOST.repeat(times)].concat();
    let no_field = [STRUCT, 0];
    let nothing_twice = [&[STRUCT, 2, 1, b'a'], &nothing[..], &[1, b'b'], &nothing].concat();
    let cases: Vec<(Vec<u8>, Vec<u8>)> = vec![
        (arrays(&nothing, 1), vec![]),
        (arrays(&nothing, 5), vec![]),
        (arrays(&nothing_twice, 2), vec![]),
        ([&[LIST], &nothing[..]].concat(), HUGE.to_vec()),
        ([&[MAP, U8], &arrays(&nothing, 2)[..]].concat(), vec![1, 7]),
        ([&[ENUM, 1, 1, b'v', 1, 1, b'a'], &arrays(&nothing, 2)[..]].concat(), vec![0]),
        // These take a byte each, and there are too few.
        (arrays(&no_field, 3), vec![0; 9]),
        (arrays(&[UNIT], 3), vec![0; 9]),
        ([&[LIST], &no_field[..]].concat(), [&HUGE[..], &[0; 9]].concat()),
        (arrays(&[ENUM, 1, 1, b'v', 0], 3), vec![0; 9]),
    ];
    for (of, body) in cases {
        // Without a name, the type of a root is a collection's.
        let whole = forged(&[&[0], &of[..]].concat(), &body);
        let error = load::<List<u8>>(&whole).unwrap_err();
        assert!(
            matches!(error, LoadError::Invalid { .. } | LoadError::Incompatible { .. }),
            "{error}"
        );
        // The place of the damage is looked for by the types in the save.
        for at in 44..whole.len() {
            assert!(load::<List<u8>>(&whole[..at]).is_err());
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(load::<List<u8>>(&bytes).is_err());
        }
    }
    let error = load::<List<u8>>(&forged(&[&[0], &nothing[..]].concat(), &[])).unwrap_err();
    assert_eq!(error.to_string(), "the save is not valid: at byte 47: an array has no elements");
}

#[test]
fn a_key_that_occurs_twice_is_refused_and_an_order_of_keys_is_not_required() {
    type Numbers = Map<u8, u8>;
    let map: Numbers = [(1, 10), (2, 20), (3, 30)].into_iter().collect();
    let whole = save(&map);
    let at = whole.windows(6).position(|bytes| bytes == [1, 10, 2, 20, 3, 30]).unwrap();
    let with = |entries: [u8; 6]| {
        let mut bytes = whole.clone();
        bytes[at..at + 6].copy_from_slice(&entries);
        load::<Numbers>(&sealed(bytes))
    };
    let mut turned = with([3, 30, 1, 10, 2, 20]).unwrap();
    assert_eq!(turned, map);
    turned.insert(0, 5);
    assert_eq!(turned.iter_mut().map(|(key, _)| *key).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let error = with([1, 10, 2, 20, 1, 30]).unwrap_err().to_string();
    assert!(error.contains("a key occurs twice in one map"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_load_panic(
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        cut in any::<Option<u16>>(),
        times in 0..40_u64,
    ) {
        let mut bytes = save(&World::changed(times));
        // Behind the header, so that the checksums can be made right again.
        let length = bytes.len() - 44;
        for (at, byte) in changes {
            bytes[44 + usize::from(at) % length] = byte;
        }
        let sealed = sealed(bytes.clone());
        if let Ok(world) = load::<World>(&sealed) {
            let again: World = load(&save(&world)).unwrap();
            prop_assert!(again.equals(&world));
        }
        let _ = load::<World>(&bytes);
        if let Some(cut) = cut {
            let _ = load::<World>(&bytes[..usize::from(cut) % bytes.len()]);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(load::<World>(&bytes).is_err());
        let after = [&save(&World::default())[..44], &bytes[..]].concat();
        prop_assert!(load::<World>(&after).is_err());
    }
}
