//! Sessions by tokens, on a running node.
#![cfg(feature = "jwt")]

use std::time::{SystemTime, UNIX_EPOCH};

use playfield::client::{self, Connection, ConnectionEvent, Error as ClientError};
use playfield::config::RateLimit;
use playfield::identity::{Jwt, Keys, Pace, Signer, Ticket, Tickets};
use playfield::prelude::*;
use playfield::{Config, Decision, ErrorCode, Identity, OnePerUser, Running};
use serde_json::{Map, Value, json};

/// Writes down who came.
#[derive(State, Default)]
struct Club {
    members: playfield::Map<PlayerId, String>,
}

#[room(capacity = 8)]
impl Room for Club {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let role = player.claims().text("role").or(player.seat()).unwrap_or("none");
        let who = format!("{} {} {role}", player.user().unwrap_or("guest"), player.name());
        self.members.insert(player.id(), who);
        Ok(())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn start(server: Server) -> Running {
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    server.room::<Club>("club").start(config).unwrap()
}

fn token(signer: &Signer, claims: Value) -> Vec<u8> {
    let Value::Object(claims) = claims else { panic!("an object") };
    let claims: Map<String, Value> = claims;
    signer.token(&claims).unwrap().into_bytes()
}

async fn connect(running: &Running, token: &[u8]) -> Result<Connection, ClientError> {
    let url = format!("tcp://{}", running.local_addr());
    client::connect(&url).name("Mallory").token(token).await
}

#[tokio::test]
async fn a_room_sees_who_a_token_says_someone_is_and_nothing_that_the_client_says() {
    let (signer, public) = Signer::generate().unwrap();
    let jwt = Jwt::new(Keys::pem(public).unwrap()).audience("club");
    let running = start(Server::new().jwt(jwt));
    let claims = json!({
        "sub": "u7", "name": "Ann\u{202e}", "role": "admin", "aud": "club", "exp": now() + 60,
    });
    let ann = connect(&running, &token(&signer, claims)).await.unwrap();
    let room = ann.join_or_create::<Club>("club", &()).await.unwrap();
    let members: Vec<_> = room.state().members.iter().map(|(_, who)| who.clone()).collect();
    assert_eq!(members, ["u7 Ann admin"]);

    for wrong in [
        vec![],
        b"guess".to_vec(),
        token(&signer, json!({"sub": "u7", "aud": "club", "exp": now() - 60})),
        token(&signer, json!({"sub": "u7", "aud": "chess", "exp": now() + 60})),
        token(&signer, json!({"sub": "u7", "aud": "club"})),
        token(
            &Signer::generate().unwrap().0,
            json!({"sub": "u7", "aud": "club", "exp": now() + 60}),
        ),
    ] {
        let refused = connect(&running, &wrong).await.err().and_then(|error| error.code());
        assert_eq!(refused, Some(ErrorCode::Unauthorized), "{}", String::from_utf8_lossy(&wrong));
    }
}

#[tokio::test]
async fn a_check_after_the_token_may_refuse_a_user_and_add_to_the_claims() {
    for is_later in [false, true] {
        let (signer, public) = Signer::generate().unwrap();
        let jwt = Jwt::new(Keys::pem(public).unwrap());
        let decide = |who: Identity| {
            if who.user.as_deref() == Some("bad") || who.claims.text("plan") == Some("none") {
                return Err(Error::new(ErrorCode::Unauthorized, "banned"));
            }
            let role = who.claims.text("plan").unwrap_or("new").to_owned();
            let claims = Claims::from_json(&format!(r#"{{"role":"{role}!"}}"#))?;
            Ok(who.claims(claims))
        };
        let server = Server::new().jwt(jwt).admit(move |who| -> Decision {
            if is_later { Decision::later(async move { decide(who) }) } else { decide(who).into() }
        });
        let running = start(server);
        let by = |claims: Value| {
            let Value::Object(mut claims) = claims else { panic!("an object") };
            claims.insert("exp".into(), (now() + 60).into());
            token(&signer, Value::Object(claims))
        };
        let ann = connect(&running, &by(json!({"sub": "u7", "plan": "pro"}))).await.unwrap();
        let room = ann.join_or_create::<Club>("club", &()).await.unwrap();
        let members: Vec<_> = room.state().members.iter().map(|(_, who)| who.clone()).collect();
        assert_eq!(members, ["u7  pro!"]);
        for refused in [json!({"sub": "bad"}), json!({"sub": "u8", "plan": "none"})] {
            let error = connect(&running, &by(refused)).await.unwrap_err();
            assert_eq!((error.code(), error.text()), (Some(ErrorCode::Unauthorized), "banned"));
        }
        // A token that is no good never comes to it.
        assert!(connect(&running, b"guess").await.is_err());
    }
}

#[tokio::test]
async fn ids_of_users_that_mislead_are_refused() {
    let running = start(Server::new().authenticate(|hello| async move {
        Ok(Identity::user(String::from_utf8_lossy(&hello.token), "A\u{202e}nn"))
    }));
    let long = "u".repeat(257);
    for user in
        ["\u{202e}ann", "ann\u{2066}", "an\u{200b}n", "a\nb", "a\u{9b}b", "\u{61c}", &*long, ""]
    {
        let error = connect(&running, user.as_bytes()).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Unauthorized), "{user:?}");
    }
    for user in ["ann@example.com", "\u{5d0}\u{5d1}", "auth0|7", "a b"] {
        let ann = connect(&running, user.as_bytes()).await.unwrap();
        let room = ann.join_or_create::<Club>("club", &()).await.unwrap();
        let who = format!("{user} Ann none");
        assert!(room.state().members.iter().any(|(_, other)| *other == who), "{user:?}");
        room.leave().await.unwrap();
    }
}

#[tokio::test]
async fn the_program_ends_the_sessions_of_a_user_and_keeps_one_for_each() {
    let server = Server::new()
        .authenticate(|hello| async move {
            Ok(Identity::user(String::from_utf8_lossy(&hello.token), hello.name))
        })
        .one_session_per_user(OnePerUser::TakeOver);
    let running = start(server);
    let node = running.handle();
    let ended = |connection: &Connection| {
        let mut statuses = connection.events();
        async move {
            loop {
                match statuses.next().await {
                    Some(ConnectionEvent::Ended { error, .. }) => return error.code(),
                    Some(_) => {}
                    None => panic!("it ends with a reason"),
                }
            }
        }
    };
    let phone = connect(&running, b"ann").await.unwrap();
    let end = ended(&phone);
    let desk = connect(&running, b"ann").await.unwrap();
    assert_eq!(end.await, Some(ErrorCode::TakenOver));
    assert_eq!(node.sessions_of("ann"), 1);
    let end = ended(&desk);
    assert_eq!(node.end_sessions("ann", "out").unwrap(), 1);
    assert_eq!(end.await, Some(ErrorCode::Kicked));
    running.shutdown();
    assert_eq!(node.end_sessions("ann", "out").unwrap_err().code(), ErrorCode::ShuttingDown);
}

#[tokio::test]
async fn a_client_waits_while_the_keys_of_a_node_are_read_again() {
    let secret = "A".repeat(43);
    let set = |id: &str| json!({"keys": [{"kty": "oct", "kid": id, "k": secret}]}).to_string();
    let mut sets = vec![set("new"), set("old")];
    let pace = Pace { every: std::time::Duration::MAX, at_least: std::time::Duration::ZERO };
    let keys = Keys::loaded("the test's keys", pace, move || {
        sets.pop().map(String::into_bytes).ok_or_else(|| "no more".into())
    });
    let running = start(Server::new().jwt(Jwt::new(keys)));
    let signer = Signer::secret([0; 32]).unwrap();
    let by = |id: &str| token(&signer.clone().named(id), json!({"sub": "u7", "exp": now() + 60}));
    let code =
        |refused: Result<Connection, ClientError>| refused.err().and_then(|error| error.code());
    assert_eq!(code(connect(&running, &by("old")).await), None);
    assert_eq!(code(connect(&running, &by("new")).await), None, "the keys were read again");
    assert_eq!(code(connect(&running, &by("old")).await), Some(ErrorCode::Unauthorized));
}

#[tokio::test]
async fn a_ticket_lets_one_player_into_one_room_once() {
    let (signer, public) = Signer::generate().unwrap();
    let running = start(Server::new().tickets(Tickets::new(Keys::pem(public).unwrap())));
    let guest = || connect(&running, b"");
    let host = guest().await.unwrap();
    let club = host.join_or_create_by_key::<Club>("club", "c1", &()).await.unwrap();
    let sign = |ticket: Ticket| signer.ticket(&ticket).unwrap();
    let by_key = |key: &str| Ticket::by_key("club", key, now() + 60).unwrap().user("u7");

    let text = sign(by_key("c1").name("Ann").seat("judge"));
    let ann = guest().await.unwrap();
    let room = ann.join::<Club>(&text).await.unwrap();
    assert_eq!(room.id(), club.id());
    assert!(room.state().members.iter().any(|(_, who)| who == "u7 Ann judge"));
    let code = |error: ClientError| error.code();
    let thief = guest().await.unwrap();
    let twice = thief.join::<Club>(&text).await.err().and_then(code);
    assert_eq!(twice, Some(ErrorCode::BadTicket));

    // A ticket for a room that is not there yet is not used up.
    let early = sign(by_key("c2"));
    let refused = thief.join::<Club>(&early).await.err().and_then(code);
    assert_eq!(refused, Some(ErrorCode::RoomNotFound));
    let _second = host.join_or_create_by_key::<Club>("club", "c2", &()).await.unwrap();
    let room = thief.join::<Club>(&early).await.unwrap();
    assert!(room.state().members.iter().any(|(_, who)| who == "u7 Mallory none"));

    // The room refused: the ticket can be used when there is a seat.
    let by_id = sign(Ticket::by_id(club.id(), now() + 60).unwrap());
    let mut seated = Vec::new();
    for _ in 0..6 {
        let client = guest().await.unwrap();
        seated.push((client.join::<Club>(club.id()).await.unwrap(), client));
    }
    let late = guest().await.unwrap();
    let full = late.join::<Club>(&by_id).await.err().and_then(code);
    assert_eq!(full, Some(ErrorCode::RoomFull));
    let (left, _client) = seated.pop().unwrap();
    left.leave().await.unwrap();
    assert!(late.join::<Club>(&by_id).await.is_ok());

    for (wrong, expected) in [
        (sign(Ticket::by_key("club", "c1", now() - 60).unwrap()), ErrorCode::BadTicket),
        (sign(Ticket::by_key("other", "c1", now() + 60).unwrap()), ErrorCode::UnknownRoomType),
        ("a.b.c".into(), ErrorCode::BadTicket),
        (text.replace('.', ""), ErrorCode::RoomNotFound),
    ] {
        let refused = late.join::<Club>(&wrong).await.err().and_then(code);
        assert_eq!(refused, Some(expected), "{wrong}");
    }
}

#[tokio::test]
async fn where_it_is_allowed_a_ticket_needs_no_token() {
    let (signer, public) = Signer::generate().unwrap();
    let keys = || Keys::pem(&public).unwrap();
    let (jwt, tickets) = (|| Jwt::new(keys()), || Tickets::new(keys()));
    let code = |error: ClientError| error.code();
    let strict = start(Server::new().jwt(jwt()).tickets(tickets()));
    let refused = connect(&strict, b"").await.err().and_then(code);
    assert_eq!(refused, Some(ErrorCode::Unauthorized));

    let open = start(Server::new().jwt_or_ticket(jwt()).tickets(tickets()));
    let host = token(&signer, json!({"sub": "u1", "exp": now() + 60}));
    let host = connect(&open, &host).await.unwrap();
    let club = host.join_or_create_by_key::<Club>("club", "c1", &()).await.unwrap();
    let late = token(&signer, json!({"sub": "u1", "exp": now() - 60}));
    let refused = connect(&open, &late).await.err().and_then(code);
    assert_eq!(refused, Some(ErrorCode::Unauthorized), "no session for a bad token");
    let guest = connect(&open, b"").await.unwrap();
    for refused in [
        guest.join::<Club>(club.id()).await.err(),
        guest.join_by_key::<Club>("club", "c1").await.err(),
        guest.create::<Club>("club", false, &()).await.err(),
    ] {
        assert_eq!(refused.and_then(code), Some(ErrorCode::Forbidden));
    }
    let ticket = |key| Ticket::by_key("club", key, now() + 60).unwrap();
    let nobodys = signer.ticket(&ticket("c1")).unwrap();
    let refused = guest.join::<Club>(&nobodys).await.err().and_then(code);
    assert_eq!(refused, Some(ErrorCode::BadTicket));
    let room = guest.join::<Club>(&signer.ticket(&ticket("c1").user("u7")).unwrap()).await.unwrap();
    assert!(room.state().members.iter().any(|(_, who)| who.starts_with("u7 ")));
    // The ticket of nobody in particular was not used up.
    let other = token(&signer, json!({"sub": "u2", "exp": now() + 60}));
    let other = connect(&open, &other).await.unwrap();
    other.join::<Club>(&nobodys).await.unwrap();
}

#[tokio::test]
async fn as_many_bad_tickets_as_keys_missed_are_answered_and_one_more_is_a_limit() {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
    config.limits.session.keys_missed = RateLimit::per_minute(2);
    let (_, public) = Signer::generate().unwrap();
    let tickets = Tickets::new(Keys::pem(public).unwrap());
    let running = Server::new().room::<Club>("club").tickets(tickets).start(config).unwrap();
    let guest = connect(&running, b"").await.unwrap();
    for expected in [ErrorCode::BadTicket, ErrorCode::BadTicket, ErrorCode::Limit] {
        let refused = guest.join::<Club>("a.b.c").await.err().and_then(|error| error.code());
        assert_eq!(refused, Some(expected));
    }
}
