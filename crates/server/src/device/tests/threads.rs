//! Several threads at once: what is counted is what is there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::device::{Cursor, Registration, Registry};

use crate::device::tests::registry::{LIMITS, place};

/// Threads fight for few ids, change tags and leave. In the end nothing is left, and of each id
/// there was one at most.
#[test]
fn those_that_fight_for_one_id_leave_nothing_behind() {
    let registry = Registry::new(LIMITS, Default::default());
    let replaced = AtomicUsize::new(0);
    let removed = AtomicUsize::new(0);
    let rounds = 2000;
    thread::scope(|scope| {
        for number in 0..4_usize {
            let (registry, replaced, removed) = (&registry, &replaced, &removed);
            scope.spawn(move || {
                for round in 0..rounds {
                    let id = format!("d{}", (round + number) % 3);
                    let registration = Registration::new(id).tag("all").tag(format!("{number}"));
                    let device =
                        registry.prepare(registration, place(number as u64), Duration::ZERO);
                    let registered = registry.insert(device.unwrap(), |_, _| true).unwrap();
                    replaced
                        .fetch_add(usize::from(registered.replaced.is_some()), Ordering::Relaxed);
                    let _ = registry.set_tags(&registered.device, vec!["all".into()]);
                    assert!(registry.count() <= 3 && registry.count_of_tag("all") <= 3 + 4);
                    if round % 2 == 0 {
                        let is_removed = registry.remove(&registered.device);
                        removed.fetch_add(usize::from(is_removed), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let left = registry.list(Cursor::default(), usize::MAX).devices;
    assert_eq!((left.len(), registry.count_of_tag("all")), (registry.count(), left.len()));
    let gone = replaced.into_inner() + removed.into_inner();
    assert_eq!(gone + left.len(), 4 * rounds, "each was replaced, removed or is left");
    for device in left {
        assert!(registry.remove(&device));
    }
    assert_eq!((registry.count(), registry.count_of_tag("all")), (0, 0));
    assert_eq!((0..4).map(|tag| registry.count_of_tag(&tag.to_string())).sum::<usize>(), 0);
}
