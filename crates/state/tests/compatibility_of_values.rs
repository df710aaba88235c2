//! Messages, replies, events and options between a node and a client of an older build.

use std::collections::BTreeMap;

use playfield_state::{Data, PlayerId, Transcoder};
use playfield_wire::schema::{EventSchema, MessageSchema, RoomSchema, Struct, Type};

mod old {
    use super::{BTreeMap, Data, PlayerId};

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) struct Order {
        pub(crate) to: PlayerId,
        pub(crate) steps: Vec<Step>,
        pub(crate) costs: BTreeMap<u8, Cost>,
        pub(crate) mark: [Option<Cost>; 2],
        pub(crate) done: (),
    }

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) enum Step {
        Wait,
        Go(i32),
        Say { text: String },
    }

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) struct Cost {
        pub(crate) gold: u16,
    }

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) struct Bare;
}

mod later {
    use super::{BTreeMap, Data, PlayerId};

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) struct Order {
        pub(crate) notes: Vec<String>,
        pub(crate) done: (),
        pub(crate) costs: BTreeMap<u8, Cost>,
        pub(crate) to: PlayerId,
        pub(crate) until: Option<u64>,
        pub(crate) mark: [Option<Cost>; 2],
        pub(crate) steps: Vec<Step>,
    }

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) enum Step {
        Jump,
        Say { loud: Option<bool>, text: String },
        Go(i32),
        Wait,
    }

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) struct Cost {
        pub(crate) tax: BTreeMap<u8, u8>,
        pub(crate) gold: u16,
    }

    #[derive(Data, Debug, PartialEq, Clone)]
    pub(crate) struct Bare {
        pub(crate) more: Option<u8>,
    }
}

fn schema(name: &'static str, order: Type, reply: Type, bare: Type) -> RoomSchema {
    let state = Type::Struct(Struct { name: "World".into(), fields: vec![] });
    let message = |name: &'static str, of: &Type, reply: &Type| MessageSchema {
        name: name.into(),
        of: of.clone(),
        reply: reply.clone(),
    };
    let (order_of, bare_of) =
        (message("Order", &order, &reply), message("Bare", &bare, &Type::Unit));
    let event = |name: &'static str, of: &Type| EventSchema { name: name.into(), of: of.clone() };
    let is_node = name == "node";
    RoomSchema {
        state,
        options: bare,
        messages: if is_node {
            vec![message("New", &Type::U8, &Type::U8), bare_of, order_of]
        } else {
            vec![order_of, bare_of]
        },
        events: if is_node {
            vec![event("New", &Type::Unit), event("Cost", &reply)]
        } else {
            vec![event("Cost", &reply)]
        },
    }
}

fn transcoder() -> Transcoder {
    let node = schema("node", later::Order::schema(), later::Cost::schema(), later::Bare::schema());
    let client = schema("client", old::Order::schema(), old::Cost::schema(), old::Bare::schema());
    Transcoder::new(&node, &client).unwrap()
}

fn encoded(value: &impl Data) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

fn order() -> old::Order {
    old::Order {
        to: PlayerId(300),
        steps: vec![old::Step::Say { text: "hi".into() }, old::Step::Wait, old::Step::Go(-9)],
        costs: [(3, old::Cost { gold: 500 }), (4, old::Cost { gold: 0 })].into(),
        mark: [None, Some(old::Cost { gold: 7 })],
        done: (),
    }
}

#[test]
fn missing_fields_of_a_message_become_empty() {
    let mut out = Vec::new();
    let number = transcoder().message(0, &encoded(&order()), &mut out).unwrap();
    let cost = |gold| later::Cost { tax: BTreeMap::new(), gold };
    let later = later::Order {
        notes: vec![],
        done: (),
        costs: [(3, cost(500)), (4, cost(0))].into(),
        to: PlayerId(300),
        until: None,
        mark: [None, Some(cost(7))],
        steps: vec![
            later::Step::Say { loud: None, text: "hi".into() },
            later::Step::Wait,
            later::Step::Go(-9),
        ],
    };
    assert_eq!((number, out), (2, encoded(&later)));

    let mut out = Vec::new();
    let number = transcoder().message(1, &encoded(&old::Bare), &mut out).unwrap();
    assert_eq!((number, out), (1, encoded(&later::Bare { more: None })));
}

#[test]
fn replies_and_events_lose_fields_that_the_client_lacks() {
    let cost = encoded(&later::Cost { tax: [(1, 2), (3, 4)].into(), gold: 500 });
    let known = encoded(&old::Cost { gold: 500 });
    let (transcoder, mut out) = (transcoder(), Vec::new());
    transcoder.reply(0, &cost, &mut out).unwrap();
    assert_eq!(out, known);
    out.clear();
    assert_eq!(transcoder.event(1, &cost, &mut out), Ok(Some(0)));
    assert_eq!(out, known);
    assert_eq!(transcoder.event(0, &[0], &mut out), Ok(None));
    assert!(transcoder.event(2, &[0], &mut out).is_err());
    assert!(transcoder.message(2, &[0], &mut out).is_err());
}

#[test]
fn no_options_stay_none() {
    let (transcoder, mut out) = (transcoder(), Vec::new());
    transcoder.options(&[], &mut out).unwrap();
    assert!(out.is_empty());
    transcoder.options(&encoded(&old::Bare), &mut out).unwrap();
    assert_eq!(out, encoded(&later::Bare { more: None }));
}

#[test]
fn truncated_or_damaged_values_are_rejected_or_pass_through() {
    let (transcoder, whole) = (transcoder(), encoded(&order()));
    for end in 0..whole.len() {
        assert!(transcoder.message(0, &whole[..end], &mut Vec::new()).is_err(), "{end}");
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[end] ^= 1 << bit;
            let _ = transcoder.message(0, &flipped, &mut Vec::new());
        }
    }
    let mut longer = whole;
    longer.push(0);
    assert!(transcoder.message(0, &longer, &mut Vec::new()).is_err());
}
