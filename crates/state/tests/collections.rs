//! The behavior of maps and lists as plain collections.

use playfield_state::{Format, List, Map, PlayerId, Set, State, Tracker, Tracking};

fn map(entries: &[(u32, &str)]) -> Map<u32, String> {
    entries.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

#[test]
fn a_map_is_iterated_in_the_order_of_its_keys() {
    let mut map = map(&[(30, "c"), (10, "a"), (20, "b")]);
    map.remove(&20);
    map.insert(5, "first".into());
    map.insert(25, "between".into());
    assert_eq!(map.keys().copied().collect::<Vec<_>>(), [5, 10, 25, 30]);
    assert_eq!(map.values().collect::<Vec<_>>(), ["first", "a", "between", "c"]);
    assert_eq!(map.iter().rev().map(|(key, _)| *key).collect::<Vec<_>>(), [30, 25, 10, 5]);
    assert_eq!(map.iter_mut().map(|(key, _)| *key).collect::<Vec<_>>(), [5, 10, 25, 30]);
    assert_eq!(
        map.values_mut().map(|value| value.as_str()).collect::<Vec<_>>(),
        ["first", "a", "between", "c"]
    );
    assert_eq!((map.len(), map.iter().len()), (4, 4));
}

#[test]
fn for_loops_take_collections_by_reference() {
    let mut map = map(&[(30, "c"), (10, "a")]);
    let mut list = List::from_iter([3, 1, 2]);
    let set = Set::from_iter([3_u32, 1, 2]);
    let (mut keys, mut values, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    for (key, value) in &map {
        keys.push((*key, value.as_str()));
    }
    for value in &list {
        values.push(*value);
    }
    for element in &set {
        elements.push(*element);
    }
    assert_eq!(keys, [(10, "a"), (30, "c")]);
    assert_eq!((values, elements), (vec![3, 1, 2], vec![1, 2, 3]));
    assert_eq!(set.iter().rev().copied().collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!((set.iter().len(), list.iter().len(), list.iter_mut().len()), (3, 3, 3));
    for (key, value) in &mut map {
        *value = key.to_string();
    }
    for value in &mut list {
        *value *= 10;
    }
    assert_eq!(map.values().collect::<Vec<_>>(), ["10", "30"]);
    assert_eq!(list.into_iter().rev().collect::<Vec<_>>(), [20, 10, 30]);
}

#[test]
fn for_loops_take_collections_by_value() {
    let mut map = map(&[(30, "c"), (10, "a"), (40, "d")]);
    map.remove(&10);
    map.insert(20, "b".into());
    let set = Set::from_iter(["c".to_owned(), "a".to_owned()]);
    let (mut entries, mut elements) = (Vec::new(), Vec::<String>::new());
    for (key, value) in map.clone() {
        entries.push((key, value));
    }
    for element in set.clone() {
        elements.push(element);
    }
    assert_eq!(entries, [(20, "b".to_owned()), (30, "c".into()), (40, "d".into())]);
    assert_eq!(elements, ["a", "c"]);

    let (mut entries, mut elements) = (map.into_iter(), set.into_iter());
    assert_eq!((entries.len(), elements.len()), (3, 2));
    assert_eq!(entries.next_back(), Some((40, "d".into())));
    assert_eq!(entries.next(), Some((20, "b".into())));
    assert_eq!(entries.collect::<Vec<_>>(), [(30, "c".into())]);
    assert_eq!(elements.next_back().as_deref(), Some("c"));
}

#[test]
fn what_a_mutable_loop_changes_is_sent() {
    #[derive(State, Default)]
    struct Table {
        list: List<u32>,
        map: Map<u32, u32>,
    }
    let mut table = Table::default();
    table.list.extend([1, 2, 3]);
    table.map.extend([(2, 2), (1, 1)]);
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    for value in (&mut table.list).into_iter().take(1) {
        *value += 1;
    }
    for (_, value) in &mut table.map {
        *value += 1;
    }
    tracker.sync(&mut table);
    let mut patch = Vec::new();
    assert!(tracker.patch(PlayerId(1), 1, Format::Json, &mut patch));
    let patch = String::from_utf8(patch).unwrap();
    assert_eq!(patch, r#"[[["list",0],2],[["map","1"],2],[["map","2"],3]]"#);
}

#[test]
fn players_come_in_the_order_of_their_numbers() {
    let seats: Map<PlayerId, u8> = [10, 9, 100].map(|id| (PlayerId(id), 0)).into_iter().collect();
    assert_eq!(seats.keys().map(|id| id.0).collect::<Vec<_>>(), [9, 10, 100]);
}

#[test]
fn a_map_gets_inserts_and_removes() {
    let mut map = Map::<String, u32>::new();
    assert!(map.is_empty());
    assert_eq!(map.insert("a".into(), 1), None);
    assert_eq!(map.insert("a".into(), 2), Some(1));
    assert_eq!(map.get("a"), Some(&2));
    assert_eq!(map.get("b"), None);
    assert!(map.contains_key("a") && !map.contains_key("b"));
    *map.get_mut("a").unwrap() += 1;
    assert_eq!(map.get_mut("b"), None);
    assert_eq!(map.remove("a"), Some(3));
    assert_eq!(map.remove("a"), None);
    assert!(map.is_empty());
}

#[test]
fn an_entry_is_inserted_only_if_it_is_absent() {
    let mut map = Map::<u32, u32>::new();
    *map.get_or_default(1) += 5;
    *map.get_or_default(1) += 5;
    assert_eq!(map.get(&1), Some(&10));
    assert_eq!(*map.get_or_insert_with(1, || unreachable!("it exists")), 10);
    assert_eq!(*map.get_or_insert_with(2, || 7), 7);
}

#[test]
fn a_map_retains_the_chosen_entries() {
    let mut map = map(&[(1, "a"), (2, "b"), (3, "c")]);
    map.retain(|key, value| {
        value.push('!');
        key % 2 == 1
    });
    assert_eq!(map.values().collect::<Vec<_>>(), ["a!", "c!"]);
    map.clear();
    assert!(map.is_empty() && map.iter().next().is_none());
    map.extend([(9, "z".to_owned()), (9, "y".to_owned())]);
    assert_eq!(map.get(&9).map(String::as_str), Some("y"));
}

#[test]
fn maps_are_equal_by_their_entries() {
    let mut one = map(&[(1, "a"), (2, "b")]);
    let other = map(&[(2, "b"), (1, "a")]);
    assert_eq!(one, other);
    assert_eq!(one, one.clone());
    one.remove(&1);
    assert_ne!(one, other);
    assert_eq!(format!("{other:?}"), r#"{1: "a", 2: "b"}"#);
}

#[test]
fn a_list_has_the_operations_of_a_vector() {
    let mut list = List::new();
    list.extend([1, 2, 3]);
    list.push(4);
    list.insert(0, 0);
    list.insert(5, 5);
    assert_eq!(list.iter().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!((list.first(), list.last(), list.get(6)), (Some(&0), Some(&5), None));
    assert_eq!(list.pop(), Some(5));
    assert_eq!(list.remove(1), Some(1));
    assert_eq!(list.swap_remove(0), Some(0));
    assert_eq!(list, List::from_iter([4, 2, 3]));
    assert_eq!((list.remove(3), list.swap_remove(3)), (None, None));
    list.swap(0, 2);
    assert_eq!(list, List::from_iter([3, 2, 4]));
    list.sort_by(|a, b| a.cmp(b));
    list[0] += 10;
    *list.get_mut(1).unwrap() += 10;
    assert_eq!(list.get_mut(9), None);
    assert_eq!((list[0], list[1], list[2]), (12, 13, 4));
    list.iter_mut().rev().take(2).for_each(|value| *value = 0);
    assert_eq!(format!("{list:?}"), "[12, 0, 0]");
    list.retain(|value| *value > 0);
    assert_eq!(list.len(), 1);
    list.truncate(5);
    list.truncate(0);
    assert!(list.is_empty());
    assert_eq!(list.pop(), None);
    list.clear();
    assert_eq!(list, List::default());
}

#[test]
fn a_list_moves_its_elements() {
    let mut list = List::from([1, 2, 3, 4, 5]);
    list.move_to(0, 3);
    assert_eq!(list, List::from([2, 3, 4, 1, 5]));
    list.move_to(4, 1);
    assert_eq!(list, List::from([2, 5, 3, 4, 1]));
    list.move_to(2, 2);
    list.reverse();
    assert_eq!(list, List::from(vec![1, 4, 3, 5, 2]));
    assert_eq!(list.drain(1..3).rev().collect::<Vec<_>>(), [3, 4]);
    list.sort();
    assert_eq!(list, List::from([1, 2, 5]));
    list.sort_by_key(|value| std::cmp::Reverse(*value));
    assert_eq!(list.into_iter().collect::<Vec<_>>(), [5, 2, 1]);
}

#[test]
fn an_element_keeps_its_id_until_it_is_removed() {
    let mut list = List::from(["a", "b", "c", "d"]);
    let ids: Vec<_> = list.ids().collect();
    list.swap(0, 3);
    list.move_to(1, 2);
    list.insert(0, "e");
    list.retain(|value| *value != "a");
    list.sort_by_key(|value| std::cmp::Reverse(*value));
    assert_eq!(list, List::from(["e", "d", "c", "b"]));
    assert_eq!(list.ids().skip(1).collect::<Vec<_>>(), [ids[3], ids[2], ids[1]]);
    assert_eq!((list.index_of(ids[2]), list.index_of(ids[0])), (Some(2), None));
    assert_eq!((list.get_by_id(ids[1]), list.get_by_id(ids[0])), (Some(&"b"), None));
    *list.get_by_id_mut(ids[3]).unwrap() = "f";
    assert_eq!((list[1], list.id_at(1), list.id_at(4)), ("f", Some(ids[3]), None));
    // An inserted element has a new id.
    let one = list.remove(0).unwrap();
    list.clear();
    list.push(one);
    assert!(!ids.contains(&list.id_at(0).unwrap()));
}

#[test]
fn a_list_is_sorted_stably() {
    let mut list = List::from_iter([(2, 'a'), (1, 'b'), (2, 'c'), (1, 'd')]);
    list.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(list, List::from_iter([(1, 'b'), (1, 'd'), (2, 'a'), (2, 'c')]));
}

#[test]
#[should_panic(expected = "index 3 is past the end of a list of 2")]
fn an_insertion_past_the_end_panics() {
    List::from_iter([1, 2]).insert(3, 0);
}

#[test]
#[should_panic(expected = "index 2 is past the end of a list of 2")]
fn an_index_past_the_end_panics() {
    List::from_iter([1, 2])[2] = 0;
}

#[test]
#[should_panic(expected = "index 2 is past the end of a list of 2")]
fn a_move_past_the_end_panics() {
    List::from_iter([1, 2]).move_to(0, 2);
}
