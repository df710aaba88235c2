use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use playfield_wire::ErrorCode;

use super::{Addresses, BytesHeld, Crowded, MEMORY, Pace, SWEEP_MIN, Tally};
use crate::config::Config;

const NOW: Duration = Duration::from_secs(1);

fn addresses(settings: &[(&str, &str)]) -> Arc<Addresses> {
    let mut config = Config::default();
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    Addresses::new(&config)
}

fn admit(addresses: &Addresses, ip: &str) -> Result<Tally, Crowded> {
    addresses.admit(ip.parse().unwrap(), NOW)
}

#[test]
fn an_address_has_so_many_connections_and_not_one_more() {
    let addresses = addresses(&[("limits.connections.per_address", "2")]);
    let mut held = Vec::new();
    for (one, same) in [("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8::1", "2001:db8::ffff:1")] {
        held.push(admit(&addresses, one).unwrap());
        held.push(admit(&addresses, same).unwrap());
        assert_eq!(admit(&addresses, one).err(), Some(Crowded::Connections));
    }
    held.push(admit(&addresses, "2001:db8:0:1::1").unwrap());
    held.remove(0);
    held.push(admit(&addresses, "10.0.0.1").unwrap());
    for _ in 0..10 {
        held.push(admit(&addresses, "127.0.0.1").unwrap());
        held.push(admit(&addresses, "::1").unwrap());
    }
}

#[test]
fn rates_go_on_in_another_process() {
    let settings = [("limits.address.sessions.per_minute", "2")];
    let [one, other] = [addresses(&settings), addresses(&settings)];
    let take = |of: &Addresses, ip: &str| of.at(ip.parse().unwrap(), NOW).take(Pace::Session, NOW);
    for _ in 0..2 {
        take(&one, "10.0.0.1").unwrap();
    }
    let rates = one.rates(NOW);
    assert_eq!(rates.len(), 1);
    other.restore(&rates[0], NOW);
    let refused = take(&one, "10.0.0.1").unwrap_err();
    assert_eq!(take(&other, "10.0.0.1"), Err(refused));
    assert_eq!(take(&other, "10.0.0.2"), Ok(()));
}

#[test]
fn the_prefix_of_ipv6_is_a_setting() {
    let addresses = addresses(&[
        ("limits.connections.per_address", "1"),
        ("limits.address.ipv6_prefix_bits", "48"),
    ]);
    let _one = admit(&addresses, "2001:db8:1:1::1").unwrap();
    assert!(admit(&addresses, "2001:db8:1:2::1").is_err());
    assert!(admit(&addresses, "2001:db8:2::1").is_ok());
}

#[test]
fn one_trusted_address_does_not_exempt_its_neighbors() {
    let addresses = addresses(&[
        ("limits.connections.per_address", "1"),
        ("limits.address.trusted", "2001:db8::5"),
    ]);
    let _trusted = [(); 3].map(|()| admit(&addresses, "2001:db8::5").unwrap());
    let _stranger = admit(&addresses, "2001:db8::6").unwrap();
    assert!(admit(&addresses, "2001:db8::7").is_err());
    assert!(admit(&addresses, "2001:db8::5").is_ok());
}

#[test]
fn so_many_are_in_handshake_of_an_address_and_in_all() {
    let addresses =
        addresses(&[("limits.handshakes.per_address", "2"), ("limits.handshakes.total", "3")]);
    let mut one = admit(&addresses, "10.0.0.1").unwrap();
    let _two = admit(&addresses, "10.0.0.1").unwrap();
    assert_eq!(admit(&addresses, "10.0.0.1").err(), Some(Crowded::Handshakes));
    let _three = admit(&addresses, "10.0.0.2").unwrap();
    assert_eq!(admit(&addresses, "10.0.0.3").err(), Some(Crowded::AllHandshakes));
    assert_eq!(admit(&addresses, "127.0.0.1").err(), Some(Crowded::AllHandshakes));
    one.settle();
    one.settle();
    let _four = admit(&addresses, "10.0.0.1").unwrap();
    assert_eq!(one.begin_handshake(), Err(Crowded::Handshakes));
    drop(one);
    assert_eq!(addresses.shared.handshakes.load(Ordering::Relaxed), 3);
}

#[test]
fn a_connection_counts_where_a_proxy_says_that_it_comes_from() {
    let addresses = addresses(&[
        ("limits.connections.per_address", "1"),
        ("trusted_proxies", "10.0.0.0/8"),
        ("limits.handshakes.total", "3"),
    ]);
    let mut proxied: Vec<_> = (0..3).map(|_| admit(&addresses, "10.0.0.1").unwrap()).collect();
    proxied[0].holds(5000);
    let client = addresses.at("203.0.113.5".parse().unwrap(), NOW);
    assert_eq!(proxied[0].come_from(Arc::clone(&client)), Ok(()));
    assert_eq!(client.bytes(), 5000);
    assert_eq!(proxied[1].come_from(Arc::clone(&client)), Err(Crowded::Connections));
    proxied.remove(0);
    assert_eq!(client.bytes(), 0);
    assert_eq!(proxied[1].come_from(client), Ok(()));
    drop(proxied);
    assert_eq!(addresses.shared.handshakes.load(Ordering::Relaxed), 0);
    assert_eq!(addresses.shared.bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn each_pace_has_its_own_limit_which_outlasts_the_connections() {
    let addresses = addresses(&[
        ("limits.address.sessions.per_minute", "3"),
        ("limits.address.resumes.per_minute", "7"),
        ("limits.address.joins.per_minute", "4"),
        ("limits.address.rooms_created.per_minute", "5"),
        ("limits.address.keys_missed.per_minute", "6"),
        ("limits.address.channels_opened.per_minute", "2"),
    ]);
    for (pace, max, setting) in [
        (Pace::Session, 3, "limits.address.sessions"),
        (Pace::Resume, 7, "limits.address.resumes"),
        (Pace::Join, 4, "limits.address.joins"),
        (Pace::Room, 5, "limits.address.rooms_created"),
        (Pace::MissedKey, 6, "limits.address.keys_missed"),
        (Pace::Channel, 2, "limits.address.channels_opened"),
    ] {
        let take = |ip: &str, now| addresses.at(ip.parse().unwrap(), now).take(pace, now);
        for _ in 0..max {
            assert_eq!(take("10.0.0.1", NOW), Ok(()));
        }
        let error = take("10.0.0.1", NOW).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit);
        let text = format!("{setting}: the limit is {max} per minute and address; try again");
        assert!(error.text().starts_with(&text), "{error}");
        assert!(error.retry_after_ms().is_some());
        assert_eq!(take("10.0.0.2", NOW), Ok(()));
        assert!(take("10.0.0.1", NOW + MEMORY).is_ok());
        assert!((0..100).all(|_| take("127.0.0.1", NOW).is_ok()));
    }
}

#[test]
fn addresses_are_forgotten_a_minute_later_or_when_there_are_too_many() {
    let many = SWEEP_MIN as u32;
    for (addresses_max, now, kept) in
        [("1000000", NOW, many + 2), ("1000000", NOW + MEMORY, 2), ("1024", NOW, 2)]
    {
        let addresses = addresses(&[("tuning.addresses", addresses_max)]);
        let _stays = admit(&addresses, "192.0.2.1").unwrap();
        for number in 1..many {
            let address = addresses.at((0x0A00_0000 + number).to_be_bytes().into(), NOW);
            address.spend(Pace::Session, NOW);
        }
        assert_eq!(addresses.known(), many as usize);
        let _late = addresses.at([10, 1, 1, 1].into(), now);
        let _last = addresses.at([10, 1, 1, 2].into(), now);
        assert_eq!(addresses.known() as u32, kept.max(3), "{addresses_max} {now:?}");
    }
}

#[test]
fn with_more_in_use_than_may_be_remembered_not_each_new_one_goes_through_all() {
    let addresses = addresses(&[("tuning.addresses", "1024")]);
    let at = |number: u32| addresses.at((0x0A00_0000 + number).to_be_bytes().into(), NOW);
    let _in_use: Vec<_> = (0..2000).map(at).collect();
    // Each sweep forgets all the others.
    let mut sweeps = 0;
    let mut before = addresses.known();
    for number in 2000..12_000 {
        at(number);
        let known = addresses.known();
        sweeps += usize::from(known <= before);
        before = known;
        assert!(known <= 2000 + 2000 / 8 + 1, "{known}");
    }
    assert!((30..=50).contains(&sweeps), "{sweeps} for 10,000 new ones");
}

#[test]
fn bytes_are_summed_up_by_address_and_in_all() {
    let addresses = addresses(&[
        ("limits.memory.per_address", "65536"),
        ("limits.memory.total", "1048576"),
        ("http.requests.per_address", "2"),
    ]);
    let mut one = admit(&addresses, "10.0.0.1").unwrap();
    let mut two = admit(&addresses, "10.0.0.1").unwrap();
    one.holds(40_000);
    two.holds(25_536);
    let address = Arc::clone(one.address());
    assert!(!address.is_over());
    two.holds(25_537);
    assert!(address.is_over() && !address.is_node_over());
    let mut body = BytesHeld::new(Arc::clone(&address));
    assert!(!body.adds(1));
    one.holds(0);
    assert!(body.adds(999));
    assert_eq!(address.bytes(), 26_537);
    let request = || Arc::clone(&address).admit_request().ok();
    let _requests = (request().unwrap(), request().unwrap());
    assert!(request().is_none());
    drop((body, one, two));
    assert_eq!(address.bytes(), 0);

    let mut local = admit(&addresses, "127.0.0.1").unwrap();
    local.holds(1 << 20);
    assert!(!local.address().is_over() && !local.address().is_node_over());
    local.holds((1 << 20) + 1);
    assert!(!local.address().is_over() && local.address().is_node_over());
    let largest = addresses.largest().unwrap();
    assert!(Arc::ptr_eq(&largest, local.address()));
}
