//! The client's core, with arbitrary input from a node.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_client::core::{Client, ClientConfig, Event, EventQueue, Masks, Transport};
use playfield_fuzz::input::Input;
use playfield_wire::{Format, server};

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let format = Format::ALL[usize::from(input.byte()) % 3];
    let transport = if input.byte() % 2 == 0 {
        Transport::Native
    } else {
        let (host, target) = ("node".to_owned(), "/".to_owned());
        Transport::WebSocket { host, target, key: [9; 16], masks: Masks::seeded([3; 16]) }
    };
    let mut client =
        Client::new(ClientConfig::new(format, transport.clone())).expect("a valid host and target");
    let mut events = EventQueue::new();
    let asked = [client.join("r"), client.list(None, &[], 0)];
    while let Some(piece) = input.piece() {
        client.received(&mut piece.to_vec(), &mut events);
        client.take_output(&mut Vec::new());
        if client.is_away() {
            client.reconnect(transport.clone()).expect("a valid host and target");
        }
    }
    client.give_up(&mut events);
    let emitted: Vec<Event> = std::iter::from_fn(|| events.pop()).collect();
    assert_eq!(emitted.iter().filter(|event| matches!(event, Event::Closed { .. })).count(), 1);
    for request in asked.into_iter().flatten() {
        let ends = emitted.iter().filter(|event| match event {
            Event::Joined(server::Joined { request: ended, .. })
            | Event::Listed(server::Listed { request: ended, .. })
            | Event::Failed { request: ended, .. } => *ended == request,
            _ => false,
        });
        assert_eq!(ends.count(), 1);
    }
});
