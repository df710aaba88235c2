//! Channels: subscriptions outlive connections, and what was missed is counted.

use std::time::Duration;

use playfield_client::session::{
    CommandError, Event, Position, SUBSCRIPTIONS_MAX, Subscribed, SubscriptionNumber,
};
use playfield_wire::server::{self, MemberInfo, PastPublication, Resumed, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber};

use crate::support::{Said, Talk, kept, other};

fn subscribed(request: u32, epoch: u64, offset: u64, recovered: bool) -> ServerMessage<'static> {
    ServerMessage::Subscribed(server::Subscribed {
        request: RequestNumber(request),
        channel: 77,
        epoch,
        offset,
        recovered,
        members: 2,
        ..server::Subscribed::default()
    })
}

fn publication(offset: u64) -> ServerMessage<'static> {
    ServerMessage::Publication(server::Publication {
        channel: 77,
        offset,
        user: Some("ann".into()),
        payload: b"1".into(),
    })
}

fn answered(
    of: SubscriptionNumber,
    epoch: u64,
    offset: u64,
    recovered: bool,
    missed: u64,
) -> Event<'static> {
    let position = Position { epoch, offset };
    Event::Subscribed(of, Subscribed { position, recovered, missed, bytes: false, members: 2 })
}

fn published(of: SubscriptionNumber, offset: u64) -> Event<'static> {
    let (channel, user, payload) = (77, Some("ann".into()), b"1"[..].into());
    Event::Publication(of, server::Publication { channel, offset, user, payload })
}

/// The requests to subscribe among what was said: their numbers and positions.
fn asked(said: &[Said]) -> Vec<(String, String)> {
    let text = said.iter().filter_map(|said| match said {
        Said::Other(text) => text.strip_prefix("Subscribe { request: "),
        _ => None,
    });
    text.map(|text| {
        let (request, rest) = text.split_once(',').unwrap();
        let since = rest.split_once("since: ").unwrap().1;
        (request.to_owned(), since.rsplit_once(", presence").unwrap().0.to_owned())
    })
    .collect()
}

/// A subscription to `chat`, answered at offset 5 of epoch 9.
fn subscribes(talk: &mut Talk) -> SubscriptionNumber {
    talk.all_events();
    talk.heard();
    let subscription = talk.client.subscribe("chat", None, false).unwrap();
    assert_eq!(asked(&talk.heard()), [("1".to_owned(), "None".to_owned())]);
    talk.says(&subscribed(1, 9, 5, false));
    assert_eq!(talk.all_events(), [answered(subscription, 9, 5, true, 0)]);
    subscription
}

fn some(epoch: u64, offset: u64) -> String {
    format!("Some(Position {{ epoch: {epoch}, offset: {offset} }})")
}

#[test]
fn a_subscription_is_asked_for_again_on_each_connection_with_the_position_it_has_reached() {
    for web_socket in [false, true] {
        let mut talk = Talk::kept(web_socket);
        let chat = subscribes(&mut talk);
        talk.says(&publication(6));
        talk.says(&publication(7));
        assert_eq!(talk.all_events(), [published(chat, 6), published(chat, 7)]);

        talk.reconnects(web_socket);
        talk.says(&kept(b"t2", Some(Resumed { received: 0, lost: vec![] })));
        assert_eq!(asked(&talk.heard()), [("2".to_owned(), some(9, 7))]);
        talk.all_events();
        talk.says(&subscribed(2, 9, 7, true));
        talk.says(&publication(8));
        assert_eq!(talk.all_events(), [answered(chat, 9, 7, true, 0), published(chat, 8)]);

        // In a new session too. The history does not reach as far.
        talk.reconnects(web_socket);
        talk.says(&kept(b"n1", None));
        assert_eq!(asked(&talk.heard()), [("3".to_owned(), some(9, 8))]);
        talk.all_events();
        talk.says(&subscribed(3, 9, 20, false));
        assert_eq!(talk.all_events(), [answered(chat, 9, 20, false, 12)]);
        assert_eq!(talk.client.position(chat), Some(Position { epoch: 9, offset: 20 }));

        // The channel was made again meanwhile.
        talk.reconnects(web_socket);
        talk.says(&kept(b"n2", Some(Resumed { received: 0, lost: vec![] })));
        talk.all_events();
        talk.says(&subscribed(4, 10, 3, false));
        talk.says(&publication(4));
        assert_eq!(talk.all_events(), [answered(chat, 10, 3, false, 3), published(chat, 4)]);
    }
}

#[test]
fn a_gap_is_reported_and_what_is_known_is_dropped() {
    let mut talk = Talk::kept(false);
    let chat = subscribes(&mut talk);
    for offset in [4, 5, 6, 6, 9, 8, 10] {
        talk.says(&publication(offset));
    }
    let missed = Event::PublicationsMissed { subscription: chat, publications: 2 };
    let ignored = |offset| Event::PublicationIgnored { subscription: chat, offset };
    let expected = [
        ignored(4),
        ignored(5),
        published(chat, 6),
        ignored(6),
        missed,
        published(chat, 9),
        ignored(8),
        published(chat, 10),
    ];
    assert_eq!(talk.all_events(), expected);
}

#[test]
fn a_subscription_made_while_away_waits_and_one_that_ended_is_not_asked_for_again() {
    let mut talk = Talk::kept(false);
    let chat = subscribes(&mut talk);
    talk.ends();
    let since = Some(Position { epoch: 4, offset: 2 });
    talk.client.subscribe("news", since, true).unwrap();
    talk.client.unsubscribe(chat);
    talk.reconnects(false);
    talk.says(&kept(b"t2", Some(Resumed { received: 0, lost: vec![] })));
    assert_eq!(asked(&talk.heard()), [("2".to_owned(), some(4, 2))]);
    talk.all_events();
    talk.says(&publication(6));
    assert_eq!(talk.all_events(), [], "it was still on its way");
}

#[test]
fn a_subscription_that_ends_before_its_answer_is_ended_after_it_unless_another_took_its_place() {
    for again in [false, true] {
        let mut talk = Talk::kept(false);
        let first = talk.client.subscribe("chat", None, false).unwrap();
        assert_eq!(talk.client.subscribe("chat", None, false), Err(CommandError::Subscribed));
        talk.client.unsubscribe(first);
        let second = again.then(|| talk.client.subscribe("chat", None, false).unwrap());
        talk.heard();
        talk.all_events();
        talk.says(&subscribed(1, 9, 5, false));
        assert_eq!(talk.all_events(), []);
        let ended = [other("Unsubscribe { channel: 77 }")];
        assert_eq!(talk.heard(), if again { &[][..] } else { &ended });
        if let Some(second) = second {
            talk.says(&subscribed(2, 9, 5, false));
            talk.client.unsubscribe(second);
            assert_eq!(talk.heard(), ended);
        }
    }
}

#[test]
fn a_refusal_ends_a_subscription_but_one_that_passes_only_delays_it_once_it_has_begun() {
    let refuse = |talk: &mut Talk, request, code, retry_after_ms| {
        let request = Some(RequestNumber(request));
        let text = "no".into();
        talk.says(&ServerMessage::Error(server::Error {
            request,
            room: None,
            code,
            text,
            retry_after_ms,
        }));
    };
    let ended = |subscription, code| {
        let text = "no".to_owned();
        Event::Unsubscribed { subscription, code, text }
    };
    for code in [ErrorCode::Forbidden, ErrorCode::Limit] {
        let mut talk = Talk::kept(false);
        let chat = talk.client.subscribe("chat", None, false).unwrap();
        talk.all_events();
        refuse(&mut talk, 1, code, None);
        assert_eq!(talk.all_events(), [ended(chat, code)]);
    }
    let mut talk = Talk::kept(false);
    let chat = subscribes(&mut talk);
    talk.reconnects(false);
    talk.says(&kept(b"t2", Some(Resumed { received: 0, lost: vec![] })));
    talk.heard();
    talk.all_events();
    refuse(&mut talk, 2, ErrorCode::TooFast, Some(300));
    assert_eq!(talk.client.due_at(), Some(Duration::from_millis(300)));
    talk.advances(Duration::from_millis(299));
    assert_eq!(asked(&talk.heard()), []);
    talk.advances(Duration::from_millis(300));
    assert_eq!(asked(&talk.heard()), [("3".to_owned(), some(9, 5))]);
    refuse(&mut talk, 3, ErrorCode::Forbidden, None);
    assert_eq!(talk.all_events(), [ended(chat, ErrorCode::Forbidden)]);
    assert_eq!(talk.client.position(chat), None);
}

#[test]
fn the_node_may_end_a_subscription() {
    let mut talk = Talk::kept(false);
    let subscription = subscribes(&mut talk);
    let (code, text) = (ErrorCode::TooSlow, "read faster");
    talk.says(&ServerMessage::Unsubscribed(server::Unsubscribed {
        channel: 77,
        code,
        text: text.into(),
    }));
    let text = text.to_owned();
    assert_eq!(talk.all_events(), [Event::Unsubscribed { subscription, code, text }]);
    assert!(talk.client.subscribe("chat", None, false).is_ok());
}

#[test]
fn subscriptions_are_bounded() {
    let mut talk = Talk::kept(false);
    for number in 0..SUBSCRIPTIONS_MAX {
        talk.client.subscribe(&number.to_string(), None, false).unwrap();
    }
    let subscriptions = SUBSCRIPTIONS_MAX;
    let refused = Err(CommandError::Subscriptions { subscriptions });
    assert_eq!(talk.client.subscribe("chat", None, false), refused);
}

#[test]
fn publications_are_confirmed_once_and_members_and_history_answered() {
    for web_socket in [false, true] {
        let mut talk = Talk::kept(web_socket);
        talk.all_events();
        talk.heard();
        assert_eq!(talk.client.publish("chat", b"1", false), Ok(None));
        let publish = talk.client.publish("chat", b"1", true).unwrap().unwrap();
        let members = talk.client.members("chat").unwrap();
        let history = talk.client.history("chat", None, 10).unwrap();
        let before = talk.heard();
        assert_eq!(before.len(), 4);
        talk.reconnects(web_socket);
        talk.says(&kept(b"t2", Some(Resumed { received: 1, lost: vec![] })));
        assert_eq!(talk.heard()[..3], before[1..], "each is sent again until it was handled");
        talk.all_events();
        talk.says(&ServerMessage::Published(server::Published { request: publish, offset: 3 }));
        let member = || MemberInfo { session: 7, user: None, name: "Ann".into() };
        talk.says(&ServerMessage::Members(server::Members {
            request: members,
            sequence: 4,
            count: 1,
            members: vec![member()],
        }));
        talk.says(&ServerMessage::History(server::History {
            request: history,
            epoch: 9,
            offset: 3,
            bytes: true,
            publications: vec![PastPublication { offset: 3, user: None, payload: b"1".into() }],
        }));
        let past = PastPublication { offset: 3, user: None, payload: b"1"[..].into() };
        let expected = [
            Event::Published(server::Published { request: publish, offset: 3 }),
            Event::Members(server::Members {
                request: members,
                sequence: 4,
                count: 1,
                members: vec![member()],
            }),
            Event::History(server::History {
                request: history,
                epoch: 9,
                offset: 3,
                bytes: true,
                publications: vec![past],
            }),
        ];
        assert_eq!(talk.all_events(), expected);
    }
}
