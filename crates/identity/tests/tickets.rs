//! Tickets: what they say, and that each is used once.

use std::time::Duration;

use playfield_identity::{
    Jwt, Keys, Place, RefusedKind, SEAT_BYTES_MAX, Signer, TICKET_LIFE_MAX, Ticket, Tickets,
};
use playfield_wire::ErrorCode;
use proptest::prelude::*;
use serde_json::json;

use crate::common::{Mutation, NOW, SECRET, ed25519, pairs, token, verify};

fn ticket() -> Ticket {
    Ticket::by_key("duel", "m-17", NOW + 60).unwrap()
}

fn redeem(tickets: &Tickets, text: &str, user: Option<&str>) -> Result<Place, RefusedKind> {
    let pass = tickets.redeem(text, user, NOW);
    pass.map(|pass| pass.place).map_err(|refused| refused.kind())
}

#[test]
fn a_ticket_says_which_room_who_and_where() {
    for (name, signer, keys) in pairs() {
        let tickets = Tickets::new(keys);
        let full = ticket().user("u7").name("Ann").seat("red");
        let pass = tickets.redeem(&signer.ticket(&full).unwrap(), None, NOW).unwrap();
        assert_eq!(pass.place, Place::Key { room_type: "duel".into(), key: "m-17".into() });
        let said = [pass.user, pass.name, pass.seat];
        assert_eq!(said, ["u7", "Ann", "red"].map(|text| Some(text.to_owned())), "{name}");
        let bare = Ticket::by_id("gaytemzugu3doobz", NOW + 60).unwrap();
        let pass = tickets.redeem(&signer.ticket(&bare).unwrap(), Some("u9"), NOW).unwrap();
        assert_eq!(pass.place, Place::Id("gaytemzugu3doobz".into()));
        assert_eq!([pass.user, pass.name, pass.seat], [None, None, None]);
    }
}

#[test]
fn a_ticket_is_used_once_unless_it_is_given_back() {
    let (signer, keys) = ed25519();
    let tickets = Tickets::new(keys);
    let text = signer.ticket(&ticket()).unwrap();
    let pass = tickets.redeem(&text, None, NOW).unwrap();
    assert_eq!(redeem(&tickets.clone(), &text, None), Err(RefusedKind::Used));
    tickets.give_back(&pass);
    assert!(redeem(&tickets, &text, None).is_ok());
    assert_eq!(redeem(&tickets, &text, None), Err(RefusedKind::Used));
    let later = tickets.redeem(&text, None, NOW + 60 + 30).unwrap_err();
    assert_eq!(later.kind(), RefusedKind::Expired);
}

#[test]
fn a_full_memory_refuses() {
    let (signer, keys) = ed25519();
    let tickets = Tickets::new(keys).used_max(2);
    let texts: Vec<_> = (0..3).map(|_| signer.ticket(&ticket()).unwrap()).collect();
    assert!(redeem(&tickets, &texts[0], None).is_ok());
    assert!(redeem(&tickets, &texts[1], None).is_ok());
    let refused = tickets.redeem(&texts[2], None, NOW).unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (RefusedKind::Full, ErrorCode::Busy));
    assert_eq!(redeem(&tickets, &texts[0], None), Err(RefusedKind::Used));
}

#[test]
fn a_ticket_is_for_its_user_and_its_audience() {
    let (signer, keys) = ed25519();
    let tickets = Tickets::new(keys.clone());
    let anns = signer.ticket(&ticket().user("u7")).unwrap();
    assert_eq!(redeem(&tickets, &anns, Some("u8")), Err(RefusedKind::Foreign));
    assert!(redeem(&tickets, &anns, Some("u7")).is_ok(), "the thief has not used it up");
    let nobodys = signer.ticket(&ticket().user("")).unwrap();
    for user in [None, Some("u8")] {
        assert_eq!(redeem(&tickets, &nobodys, user), Err(RefusedKind::Malformed), "not for anyone");
    }

    let here = Tickets::new(keys).audience("node-1");
    let elsewhere = signer.ticket(&ticket().audience("node-2")).unwrap();
    assert_eq!(redeem(&here, &elsewhere, None), Err(RefusedKind::Foreign));
    assert_eq!(redeem(&tickets, &elsewhere, None), Err(RefusedKind::Foreign));
    assert_eq!(
        redeem(&here, &signer.ticket(&ticket()).unwrap(), None),
        Err(RefusedKind::ClaimNeeded)
    );
    assert!(redeem(&here, &signer.ticket(&ticket().audience("node-1")).unwrap(), None).is_ok());
}

#[test]
fn a_ticket_that_is_none_is_refused() {
    let (signer, keys) = ed25519();
    let tickets = Tickets::new(keys.clone());
    let login = token(&signer, json!({"room_type": "duel", "key": "k", "jti": "1"}));
    assert_eq!(redeem(&tickets, &login, None), Err(RefusedKind::Malformed), "it is for hello");
    let text = signer.ticket(&ticket().user("u7")).unwrap();
    assert_eq!(
        verify(&Jwt::new(keys.clone()), &text),
        Err(RefusedKind::Malformed),
        "it is for join"
    );

    let stranger = Signer::generate().unwrap().0;
    let forged = stranger.ticket(&ticket()).unwrap();
    assert_eq!(redeem(&tickets, &forged, None), Err(RefusedKind::Signature));
    let life = TICKET_LIFE_MAX.as_secs();
    let at = |expires| signer.ticket(&Ticket::by_key("duel", "k", expires).unwrap()).unwrap();
    assert!(redeem(&tickets, &at(NOW + life), None).is_ok());
    assert_eq!(redeem(&tickets, &at(NOW + life + 1), None), Err(RefusedKind::Malformed));
    assert!(redeem(&tickets, &at(NOW - 29), None).is_ok(), "the clocks may differ by 30 s");
    assert_eq!(redeem(&tickets, &at(NOW - 30), None), Err(RefusedKind::Expired));
    let strict = Tickets::new(keys.clone()).leeway(Duration::ZERO);
    assert_eq!(redeem(&strict, &at(NOW), None), Err(RefusedKind::Expired));
    let late = strict.redeem(&at(NOW), None, NOW).unwrap_err();
    assert_eq!(late.to_string(), "the ticket has expired; get a new one");
    let seated = |bytes| signer.ticket(&ticket().seat("s".repeat(bytes))).unwrap();
    assert!(redeem(&tickets, &seated(SEAT_BYTES_MAX), None).is_ok());
    assert_eq!(redeem(&tickets, &seated(SEAT_BYTES_MAX + 1), None), Err(RefusedKind::Malformed));
    let unnamed = signer.ticket(&ticket().nonce("")).unwrap();
    assert_eq!(redeem(&tickets, &unnamed, None), Err(RefusedKind::ClaimNeeded));
}

#[test]
fn a_used_ticket_is_remembered_as_long_as_it_would_be_accepted() {
    let (signer, keys) = ed25519();
    let tickets = Tickets::new(keys);
    let ticket = signer.ticket(&Ticket::by_key("duel", "k", NOW).unwrap()).unwrap();
    assert!(tickets.redeem(&ticket, None, NOW).is_ok());
    let again = tickets.redeem(&ticket, None, NOW + 29).unwrap_err();
    assert_eq!(again.kind(), RefusedKind::Used);
}

/// The vector in docs/protocol.md, which any language can reproduce: HMAC-SHA256 is deterministic.
#[test]
fn the_vector_of_the_protocol_is_a_ticket() {
    let page = include_str!("../../../docs/protocol.md");
    let (_, vector) = page.split_once("```ticket\n").expect("the vector");
    let (vector, _) = vector.split_once("\n```").expect("its end");
    let tickets = Tickets::new(Keys::secret(SECRET).unwrap());
    let pass = tickets.redeem(vector, None, NOW).unwrap();
    assert_eq!(pass.place, Place::Key { room_type: "duel".into(), key: "m-17".into() });
    assert_eq!((pass.user.as_deref(), pass.seat.as_deref()), (Some("u7"), Some("red")));
}

proptest! {
    #[test]
    fn a_mutated_ticket_is_never_accepted(
        at in any::<prop::sample::Index>(), mutation in Mutation::any(),
    ) {
        let signer = Signer::secret(SECRET).unwrap();
        let tickets = Tickets::new(Keys::secret(SECRET).unwrap());
        let good = signer.ticket(&ticket()).unwrap().into_bytes();
        let bad = mutation.apply(&good, at);
        if let Ok(text) = std::str::from_utf8(&bad) && bad != good {
            prop_assert!(tickets.redeem(text, None, NOW).is_err());
        }
    }
}
