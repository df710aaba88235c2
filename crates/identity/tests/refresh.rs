//! Keys that are read again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use playfield_identity::{Jwt, Keys, Pace, RefusedKind, Signer};
use serde_json::json;

use crate::common::{NOW, key, pairs, token, verify};

const NEVER: Pace = Pace { every: Duration::MAX, at_least: Duration::MAX };
const ON_DEMAND: Pace = Pace { every: Duration::MAX, at_least: Duration::ZERO };

/// Keys whose every read gets what the test sends.
fn keys(pace: Pace) -> (Jwt, SyncSender<Result<String, String>>) {
    let (sends, comes): (_, Receiver<Result<String, String>>) = sync_channel(1);
    let load =
        move || comes.recv().unwrap_or(Err("the test has ended".into())).map(String::into_bytes);
    (Jwt::new(Keys::loaded("the test's keys", pace, load)), sends)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Has the keys read again after a refusal, and waits for it. The thread reads `answer`. `false` if
/// they are not read.
fn refresh(
    jwt: &Jwt,
    sends: &SyncSender<Result<String, String>>,
    token: &str,
    answer: Result<&str, &str>,
) -> bool {
    let refused = jwt.verify(token.as_bytes(), NOW).unwrap_err();
    let Some(mut refreshed) = jwt.refresh_after(&refused) else { return false };
    sends.send(answer.map(str::to_owned).map_err(str::to_owned)).unwrap();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut refreshed = std::pin::Pin::new(&mut refreshed);
    while refreshed.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
        thread::park();
    }
    true
}

fn signer() -> Signer {
    pairs().pop().unwrap().1
}

#[test]
fn an_unknown_key_has_them_read_again_and_old_ones_stay_while_that_fails() {
    let (jwt, sends) = keys(ON_DEMAND);
    let old = token(&signer().named("d"), json!({}));
    let new = token(&signer().named("d2"), json!({}));
    assert_eq!(verify(&jwt, &old), Err(RefusedKind::NoKeys));
    assert!(refresh(&jwt, &sends, &old, Ok(key!("jwks.json"))));
    assert!(verify(&jwt, &old).is_ok());
    assert_eq!(verify(&jwt, &new), Err(RefusedKind::UnknownKey));
    for failure in [Err("no route"), Ok("no keys"), Ok("{\"keys\":[]}")] {
        assert!(refresh(&jwt, &sends, &new, failure));
        assert!(verify(&jwt, &old).is_ok(), "the old keys stay");
    }
    let rotated = key!("jwks.json").replace("\"d\"", "\"d2\"");
    assert!(refresh(&jwt, &sends, &new, Ok(&rotated)));
    assert!(verify(&jwt, &new).is_ok());
    assert_eq!(verify(&jwt, &old), Err(RefusedKind::UnknownKey), "it was withdrawn");
}

#[test]
fn unknown_keys_have_them_read_once_in_a_while() {
    let (jwt, sends) = keys(NEVER);
    let new = token(&signer().named("d2"), json!({}));
    let set = key!("jwks.json");
    assert!(refresh(&jwt, &sends, &new, Ok(set)), "the first time, there were none");
    assert!(!refresh(&jwt, &sends, &new, Ok(set)));
    let wrong = jwt.verify(b"x.y.z", NOW).unwrap_err();
    assert!(jwt.refresh_after(&wrong).is_none(), "other keys would not do");
}

#[test]
fn keys_are_read_again_by_themselves() {
    let (done, ends) = sync_channel(1);
    let pace = Pace { every: Duration::from_millis(1), at_least: Duration::ZERO };
    let mut rounds = 0;
    let keys = Keys::loaded("the test's keys", pace, move || {
        rounds += 1;
        assert!(rounds != 3, "as the test wants");
        if rounds == 5 {
            let _ = done.send(());
        }
        Err("not now".into())
    });
    ends.recv().unwrap();
    drop(keys);
    // The thread ends, and drops its function.
    assert!(ends.recv().is_err());
}
