//! Devices: a registration outlives sessions, and commands are answered.

use std::time::Duration;

use playfield_client::session::{Event, Failure};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber};

use crate::support::{Talk, kept};

/// A session that is registered as the device `d1`.
fn registered(web_socket: bool) -> Talk {
    let mut talk = Talk::kept(web_socket);
    talk.all_events();
    let request = talk.client.register("d1", &[("model", "x")], &["north"]).unwrap();
    talk.says(&ServerMessage::Registered(server::Registered {
        request,
        is_new: true,
        bytes: false,
    }));
    assert_eq!(
        talk.all_events(),
        [Event::Registered { request: Some(request), is_new: true, bytes: false }]
    );
    talk.heard();
    talk
}

fn error(request: u32, code: ErrorCode) -> ServerMessage<'static> {
    let (request, text) = (Some(RequestNumber(request)), "no".into());
    ServerMessage::Error(server::Error { request, room: None, code, text, retry_after_ms: None })
}

/// A new session, in which the client has registered again by request 2.
fn new_session(talk: &mut Talk) {
    talk.reconnects(false);
    talk.says(&kept(b"n1", None));
    let said = format!("{:?}", talk.heard());
    assert!(said.contains("Register { request: 2, device: \\\"d1\\\""), "{said}");
    talk.all_events();
}

#[test]
fn a_device_registers_again_in_a_new_session_and_not_in_a_resumed_one() {
    for web_socket in [false, true] {
        let mut talk = registered(web_socket);
        talk.reconnects(web_socket);
        talk.says(&kept(b"t2", Some(Resumed { received: 1, lost: vec![] })));
        assert!(!format!("{:?}", talk.heard()).contains("Register"));
    }
    let mut talk = registered(false);
    new_session(&mut talk);
    talk.says(&ServerMessage::Registered(server::Registered {
        request: RequestNumber(2),
        is_new: false,
        bytes: false,
    }));
    assert_eq!(
        talk.all_events(),
        [Event::Registered { request: None, is_new: false, bytes: false }]
    );
}

#[test]
fn a_refusal_in_a_new_session_is_reported_but_one_that_passes_is_tried_again() {
    let mut talk = registered(false);
    new_session(&mut talk);
    talk.says(&error(2, ErrorCode::Limit));
    assert_eq!(talk.all_events(), []);
    talk.advances(Duration::from_secs(1));
    assert!(format!("{:?}", talk.heard()).contains("Register { request: 3"));
    talk.says(&error(3, ErrorCode::DeviceTaken));
    let (code, text) = (ErrorCode::DeviceTaken, "no".to_owned());
    assert_eq!(talk.all_events(), [Event::Unregistered { code, text }]);
    talk.reconnects(false);
    talk.says(&kept(b"n2", None));
    assert!(!format!("{:?}", talk.heard()).contains("Register"));
}

#[test]
fn a_request_to_register_that_is_refused_leaves_the_registration_as_it_was() {
    let mut talk = registered(false);
    let request = talk.client.register("d2", &[], &[]).unwrap();
    talk.says(&error(request.0, ErrorCode::DeviceTaken));
    let (code, text) = (ErrorCode::DeviceTaken, "no".into());
    let failure = Failure::Refused { code, text, retry_after: None };
    assert_eq!(talk.all_events(), [Event::Failed { request, failure }]);
    talk.reconnects(false);
    talk.says(&kept(b"n1", None));
    assert!(format!("{:?}", talk.heard()).contains("d1"));
}

#[test]
fn reports_and_answers_are_sent_once_and_commands_are_reported() {
    for web_socket in [false, true] {
        let mut talk = registered(web_socket);
        assert_eq!(talk.client.report(b"1", false), Ok(None));
        let request = talk.client.report(b"2", true).unwrap().unwrap();
        for command in [None, Some(5)] {
            talk.says(&ServerMessage::Command(server::Command { command, payload: b"1".into() }));
            let payload = b"1".to_vec();
            assert_eq!(
                talk.all_events(),
                [Event::Command(server::Command { command, payload: payload.into() })]
            );
        }
        talk.client.answer(5, Ok(b"3")).unwrap();
        talk.client.answer(6, Err("it is stuck")).unwrap();
        let before = talk.heard();
        assert_eq!(before.len(), 4, "{before:?}");
        talk.reconnects(web_socket);
        talk.says(&kept(b"t2", Some(Resumed { received: 2, lost: vec![] })));
        assert_eq!(talk.heard()[..3], before[1..]);
        talk.all_events();
        talk.says(&ServerMessage::Reply(server::Reply { request, payload: b"4".into() }));
        assert_eq!(
            talk.all_events(),
            [Event::Reply(server::Reply { request, payload: b"4".to_vec().into() })]
        );
    }
}
