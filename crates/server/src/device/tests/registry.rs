//! One thread: what is registered is found, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::device::registry::Registered;
use crate::device::{Cursor, Device, Limits, Page, Place, RegisterError, Registration, Registry};

pub(crate) const LIMITS: Limits =
    Limits { devices_max: 1000, tags_max: 4, metadata_bytes_max: 16, id_bytes_max: 8 };

pub(crate) fn place(connection: u64) -> Place {
    Place { shard: 0, connection, is_service: false }
}

fn register(registry: &Registry, registration: Registration) -> Result<Registered, RegisterError> {
    let device = registry.prepare(registration, place(1), Duration::from_secs(1))?;
    registry.insert(device, |_, _| true)
}

fn tagged(registry: &Registry, tag: &str) -> BTreeSet<String> {
    let page = registry.list_tag(tag, Cursor::default(), usize::MAX);
    assert_eq!((page.devices.len(), page.next), (registry.count_of_tag(tag), None));
    page.devices.iter().map(|device| device.id().to_owned()).collect()
}

fn set<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.into_iter().map(Into::into).collect()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

#[test]
fn a_device_is_found_by_its_id_and_its_tags_until_it_is_removed() {
    let registry = Registry::new(LIMITS, Default::default());
    let one = Registration::new("one").tag("a").tag("b").metadata("fw", "7").user("ann");
    let one = register(&registry, one).unwrap();
    assert!(one.replaced.is_none());
    register(&registry, Registration::new("two").tag("b")).unwrap();
    let found = registry.get("one").unwrap();
    assert_eq!((found.id(), found.user(), found.tags()), ("one", Some("ann"), texts(["a", "b"])));
    assert_eq!(found.metadata_of("fw").as_deref(), Some("7"));
    assert_eq!(found.registered_at(), Duration::from_secs(1));
    assert_eq!(
        (tagged(&registry, "a"), tagged(&registry, "b")),
        (set(["one"]), set(["one", "two"]))
    );
    assert_eq!(registry.count(), 2);
    assert!(registry.remove(&found) && !registry.remove(&found));
    assert!(registry.get("one").is_none());
    assert_eq!((tagged(&registry, "a"), tagged(&registry, "b")), (set([]), set(["two"])));
    assert_eq!(registry.count(), 1);
}

#[test]
fn one_that_takes_the_place_of_another_is_the_only_one_of_its_id() {
    let registry = Registry::new(LIMITS, Default::default());
    let first = register(&registry, Registration::new("one").tag("old")).unwrap().device;
    let second = register(&registry, Registration::new("one").tag("new")).unwrap();
    assert_eq!(second.replaced.unwrap().number(), first.number());
    assert_eq!((tagged(&registry, "old"), tagged(&registry, "new")), (set([]), set(["one"])));
    assert!(!registry.remove(&first), "the first is not the one that is registered");
    assert_eq!(registry.get("one").unwrap().number(), second.device.number());
    assert_eq!(registry.count(), 1);
    let third = registry.prepare(Registration::new("one"), place(3), Duration::ZERO).unwrap();
    let refused = registry.insert(third, |known, _| known.number() == first.number());
    assert_eq!(refused.unwrap_err(), RegisterError::Taken);
    assert_eq!(registry.get("one").unwrap().number(), second.device.number());
}

#[test]
fn tags_and_metadata_change_while_it_is_registered() {
    let registry = Registry::new(LIMITS, Default::default());
    let device = register(&registry, Registration::new("one").tag("a").tag("b")).unwrap().device;
    registry.set_tags(&device, texts(["b", "c", "b"])).unwrap();
    assert_eq!(["a", "b", "c"].map(|tag| registry.count_of_tag(tag)), [0, 1, 1]);
    assert!(device.has_tag("c") && !device.has_tag("a"));
    registry.update(&device, vec![("k".into(), "v".into())], texts(["d"])).unwrap();
    assert_eq!((device.tags(), device.metadata()), (texts(["d"]), vec![("k".into(), "v".into())]));
    let refused = registry.update(&device, Vec::new(), texts(["a", "b", "c", "d", "e"]));
    assert_eq!(refused, Err(RegisterError::TagsMax(5, 4)));
    assert_eq!(device.metadata().len(), 1, "nothing is changed then");
    registry.remove(&device);
    assert_eq!(registry.set_tags(&device, texts(["a"])), Err(RegisterError::Gone));
    assert_eq!(["a", "d"].map(|tag| registry.count_of_tag(tag)), [0, 0]);
}

#[test]
fn one_more_than_a_limit_is_refused() {
    let registry = Registry::new(Limits { devices_max: 2, ..LIMITS }, Default::default());
    let refuse = |registration| register(&registry, registration).unwrap_err();
    assert_eq!(refuse(Registration::new("")), RegisterError::Empty);
    assert_eq!(refuse(Registration::new("one").tag("")), RegisterError::Empty);
    assert_eq!(refuse(Registration::new("123456789")), RegisterError::IdBytesMax(9, 8));
    assert_eq!(refuse(Registration::new("1").tag("123456789")), RegisterError::IdBytesMax(9, 8));
    let with_tags = |count: usize| {
        let tags = (0..count).map(|tag| tag.to_string()).collect();
        Registration { tags, ..Registration::new("12345678") }
    };
    assert_eq!(refuse(with_tags(5)), RegisterError::TagsMax(5, 4));
    let too_much = with_tags(4).metadata("name", "1234567890123");
    assert_eq!(refuse(too_much), RegisterError::MetadataBytesMax(17, 16));
    let empty = Registration { metadata: vec![Default::default(); 17], ..with_tags(4) };
    assert_eq!(refuse(empty), RegisterError::MetadataBytesMax(17, 16));
    assert_eq!(registry.count(), 0);

    let fits = with_tags(4).metadata("name", "123456789012");
    let first = register(&registry, fits).unwrap().device;
    register(&registry, Registration::new("two")).unwrap();
    assert_eq!(refuse(Registration::new("three")), RegisterError::DevicesMax(2));
    assert!(register(&registry, Registration::new("two")).unwrap().replaced.is_some());
    registry.remove(&first);
    assert!(register(&registry, Registration::new("three")).is_ok());
}

#[test]
fn pages_hold_each_device_once_while_others_come_and_go() {
    let registry = Registry::new(LIMITS, Default::default());
    let devices: Vec<Arc<Device>> = (0..500)
        .map(|id| register(&registry, Registration::new(format!("d{id}")).tag("t")).unwrap().device)
        .collect();
    let page_through = |list: &dyn Fn(Cursor) -> Page| {
        let (mut seen, mut next) = (BTreeMap::<u64, usize>::new(), Some(Cursor::default()));
        let mut others = 500;
        while let Some(from) = next {
            let page = list(from);
            assert!(page.devices.len() <= 7);
            for device in page.devices {
                *seen.entry(device.number()).or_default() += 1;
            }
            // One comes, and goes.
            others += 1;
            let other = Registration::new(format!("d{others}")).tag("t");
            let other = register(&registry, other).unwrap().device;
            registry.remove(&other);
            next = page.next;
        }
        for device in &devices {
            assert_eq!(seen.get(&device.number()), Some(&1));
        }
    };
    page_through(&|from| registry.list(from, 7));
    page_through(&|from| registry.list_tag("t", from, 7));
    assert!(registry.list_tag("none", Cursor::default(), 7).devices.is_empty());
    for device in &devices {
        assert!(registry.remove(device));
    }
    assert_eq!((registry.count(), registry.count_of_tag("t")), (0, 0));
    assert!(registry.list(Cursor::default(), 7).devices.is_empty());
}

#[test]
fn what_was_heard_is_seen_without_a_lock() {
    let registry = Registry::new(LIMITS, Default::default());
    let device = register(&registry, Registration::new("one")).unwrap().device;
    device.heard(Duration::from_micros(1_500_001));
    assert_eq!(registry.get("one").unwrap().last_seen(), Duration::from_micros(1_500_001));
    assert!(device.set_silent(true) && !device.set_silent(true) && device.is_silent());
}
