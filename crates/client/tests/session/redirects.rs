//! Redirects to other nodes, against the rules of the protocol document.

use std::time::Duration;

use playfield_client::session::{
    ClientConfig, ClientError, Event, Failure, Lost, Patience, REDIRECTS_MAX, Reach, Session, Step,
};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber};

use crate::support::{Node, Said, Talk, joined, kept, resumable};

const NODE: &str = "tcp://n1:7350";
const OTHER: &str = "tcp://n2:7350";

fn redirect(request: RequestNumber, address: &'static str) -> ServerMessage<'static> {
    let addresses = vec!["wss://n2".into(), address.into()];
    ServerMessage::Redirect(server::Redirect { request, addresses, reservation: "r.s".into() })
}

/// The welcome of a node that says where it is.
fn welcome(token: &'static [u8], resumed: Option<Resumed>) -> ServerMessage<'static> {
    let mut message = kept(token, resumed);
    if let ServerMessage::Welcome(welcome) = &mut message {
        welcome.addresses = vec![NODE.into()];
    }
    message
}

/// A welcomed client that follows redirects.
fn follower() -> Talk {
    let redirects = Some(Reach::by(&"tcp://any".parse().unwrap(), false));
    let patience = Patience { backoff_first: Duration::from_secs(1), ..resumable(false).patience };
    let config = ClientConfig { redirects, patience, ..resumable(false) };
    let client = Session::new(config).unwrap();
    let mut talk = Talk { client, node: Node::new(false), events: Default::default() };
    talk.heard();
    assert!(talk.node.redirects, "it says so");
    talk
}

fn welcomed() -> Talk {
    let mut talk = follower();
    talk.says(&welcome(b"t1", None));
    assert!(matches!(talk.event(), Event::Welcome(_)));
    talk.heard();
    talk
}

/// Does the next step, which is to dial. Returns which node.
fn dials(talk: &mut Talk) -> Option<String> {
    let step = talk.client.next_step();
    assert!(matches!(step, Step::Dial(_)), "{step:?}");
    talk.client.dial_to().map(ToString::to_string)
}

/// Dials once the wait is over.
fn waits_and_dials(talk: &mut Talk) -> Option<String> {
    assert_eq!(talk.client.next_step(), Step::Wait);
    let due = talk.client.due_at().expect("another attempt");
    talk.advances(due);
    dials(talk)
}

/// The dialed node is reached. Returns the hello.
fn reaches(talk: &mut Talk) -> Said {
    talk.client.reconnect(resumable(false).transport).unwrap();
    talk.node = Node::new(false);
    let mut heard = talk.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    heard.remove(0)
}

#[test]
fn a_redirect_answers_a_join_and_is_counted() {
    let mut talk = welcomed();
    let request = talk.client.join("r").unwrap();
    talk.says(&redirect(request, OTHER));
    let Event::Redirected(redirected) = talk.event() else { panic!() };
    assert_eq!((redirected.request, &*redirected.reservation), (request, "r.s"));
    assert_eq!(redirected.addresses, ["wss://n2", OTHER]);

    talk.ends();
    waits_and_dials(&mut talk);
    assert_eq!(reaches(&mut talk), Said::Resume(b"t1".to_vec(), 1, vec![]));
    talk.says(&welcome(b"t2", Some(Resumed { received: 1, lost: vec![] })));
    talk.all_events();
    // It was the answer.
    talk.says(&joined(request, playfield_wire::RoomNumber(1), 3));
    talk.assert_closed(ClientError::UnknownRequest { request });
}

#[test]
fn a_redirect_answers_nothing_but_joins() {
    let mut talk = welcomed();
    let request = talk.client.list(None, &[], 0).unwrap();
    talk.says(&redirect(request, OTHER));
    talk.assert_closed(ClientError::WrongAnswer { request, answer: "a redirect" });

    let mut talk = welcomed();
    let request = RequestNumber(0);
    talk.says(&redirect(request, OTHER));
    talk.assert_closed(ClientError::UnknownRequest { request });
}

#[test]
fn a_client_that_follows_none_gets_none() {
    let mut talk = Talk::kept(false);
    assert!(!talk.node.redirects);
    let request = talk.client.join("r").unwrap();
    talk.says(&redirect(request, OTHER));
    talk.assert_closed(ClientError::OutOfTurn { message: "a redirect, which was not asked for," });
}

#[test]
fn a_redirect_of_a_join_that_counts_as_lost_is_passed_over() {
    let mut talk = welcomed();
    let request = talk.client.join("r").unwrap();
    talk.ends();
    waits_and_dials(&mut talk);
    reaches(&mut talk);
    let lost = vec![Lost { room: None, messages: 1 }];
    talk.says(&welcome(b"t2", Some(Resumed { received: 1, lost })));
    let failed = Event::Failed { request, failure: Failure::Lost };
    assert_eq!(talk.all_events().pop(), Some(failed));
    talk.says(&redirect(request, OTHER));
    assert_eq!(talk.all_events(), []);
    assert!(!talk.client.is_finished());
}

#[test]
fn a_client_comes_back_to_the_sessions_node_first() {
    let mut talk = welcomed();
    let addresses = talk.client.addresses().iter().map(ToString::to_string);
    assert_eq!(addresses.collect::<Vec<_>>(), [NODE]);
    talk.ends();
    assert_eq!(waits_and_dials(&mut talk).as_deref(), Some(NODE));
    assert!(!talk.client.attempt_failed());
    assert_eq!(waits_and_dials(&mut talk), None, "where it began");
    assert!(!talk.client.attempt_failed());
    assert_eq!(waits_and_dials(&mut talk).as_deref(), Some(NODE));

    let mut talk = Talk::kept(false);
    talk.ends();
    assert_eq!(waits_and_dials(&mut talk), None, "it does not follow redirects");
}

#[test]
fn a_hello_is_redirected_three_times_in_a_row() {
    let mut talk = welcomed();
    talk.ends();
    waits_and_dials(&mut talk);
    for _ in 0..REDIRECTS_MAX {
        let hello = reaches(&mut talk);
        assert!(matches!(&hello, Said::Resume(token, 0, _) if token == b"t1"), "{hello:?}");
        talk.says(&redirect(RequestNumber(0), OTHER));
        let (code, text) = (ErrorCode::Elsewhere, "".into());
        talk.says(&ServerMessage::Goodbye(server::Goodbye { code, text }));
        assert_eq!(dials(&mut talk).as_deref(), Some(OTHER), "at once");
    }
    talk.all_events();
    reaches(&mut talk);
    talk.says(&redirect(RequestNumber(0), OTHER));
    assert_eq!(waits_and_dials(&mut talk), None, "as after any attempt that failed");
    let Event::AttemptFailed { error, is_last: false } = talk.event() else { panic!() };
    assert!(matches!(error, ClientError::Redirected { .. }), "{error}");
    assert!(error.to_string().contains(OTHER), "{error}");

    // The session is not lost by that.
    reaches(&mut talk);
    talk.says(&redirect(RequestNumber(0), OTHER));
    assert_eq!(dials(&mut talk).as_deref(), Some(OTHER));
    reaches(&mut talk);
    talk.says(&welcome(b"t2", Some(Resumed { received: 0, lost: vec![] })));
    assert!(matches!(talk.all_events()[..], [Event::Resumed(_)]));
}

#[test]
fn the_time_of_redirects_counts() {
    let mut talk = welcomed();
    talk.ends();
    waits_and_dials(&mut talk);
    let (before, mut now) = (talk.client.tried(), talk.client.due_at().unwrap_or_default());
    for _ in 0..REDIRECTS_MAX {
        reaches(&mut talk);
        now += Duration::from_secs(1);
        talk.advances(now);
        talk.says(&redirect(RequestNumber(0), OTHER));
        dials(&mut talk);
    }
    assert!(talk.client.tried() >= before + Duration::from_secs(2), "{:?}", talk.client.tried());
}

#[test]
fn a_first_hello_that_is_redirected_has_no_session() {
    let mut talk = follower();
    talk.says(&redirect(RequestNumber(0), OTHER));
    let Event::Closed { error: Some(ClientError::Redirected { addresses }) } = talk.event() else {
        panic!()
    };
    assert_eq!(addresses, ["wss://n2", OTHER]);
}
