//! Audits find what depends on a secret, name it, and say when they prove nothing.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use playfield_room::sim::{AuditReport, Difference, LeakKind, Refusals, Sim};
use playfield_room::{
    Context, Handle, InternalMessage, Mail, Message, On, Player, PlayerId, Result, Room, room,
};
use playfield_state::{Format, List, Map, State};

/// A game of hidden numbers. What a player tells shows the secret in one way or another.
#[derive(State, Default)]
struct Den {
    #[sync(owner)]
    numbers: Map<PlayerId, u32>,
    #[sync(hidden)]
    secret: u32,
    shown: Map<u32, Shown>,
    log: List<u32>,
}

#[derive(State, Default)]
struct Shown {
    value: u32,
}

#[derive(Message, Clone, Debug)]
#[reply(u32)]
enum Tell {
    Nothing,
    Field,
    Key,
    Later,
    Twice,
    Order,
    Once,
    Sooner,
    Error,
    Reply,
    Kick(PlayerId),
    Other,
}

#[derive(Message, Debug, PartialEq)]
struct Said(u32);

#[derive(Message)]
struct Due(u32);

#[room(messages(Tell), events(Said), internal(Due), tick_hz = 10, capacity = 4)]
impl Room for Den {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.numbers.insert(player.id(), 0);
        Ok(())
    }
}

impl Handle<Tell> for Den {
    fn handle(&mut self, tell: Tell, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        let secret = self.secret;
        match tell {
            Tell::Nothing => {}
            Tell::Field => drop(self.shown.insert(3, Shown { value: secret })),
            Tell::Key => drop(self.shown.insert(secret, Shown { value: 1 })),
            Tell::Later => drop(cx.after(Duration::from_millis(secret.into()), Due(1))),
            Tell::Twice => (0..secret).for_each(|_| cx.emit(&Said(1))),
            Tell::Order if secret == 7 => [1, 2].iter().for_each(|it| cx.emit(&Said(*it))),
            Tell::Order => [2, 1].iter().for_each(|it| cx.emit(&Said(*it))),
            Tell::Once if secret == 7 => cx.emit(&Said(1)),
            Tell::Sooner if secret == 7 => {
                self.log.push(1);
                cx.sync_now();
            }
            Tell::Sooner => self.log.push(1),
            Tell::Error => return Err(format!("it is not {secret}").into()),
            Tell::Reply => return Ok(secret),
            Tell::Kick(whom) => cx.kick(whom, format!("{secret} players")),
            Tell::Other => cx.tell("other", &Due(secret)),
            Tell::Once => {}
        }
        Ok(0)
    }
}

impl On<Due> for Den {
    fn on(&mut self, Due(it): Due, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&Said(it));
        Ok(())
    }
}

/// Audits a room in which Ann tells something, with the secrets 7 and 9. Bob may not know them.
fn told(tell: &Tell) -> AuditReport {
    Sim::<Den>::audit([7, 9], |sim, secret| {
        let ann = sim.join("Ann").unwrap();
        sim.join("Bob").unwrap();
        sim.may_see(ann);
        sim.room_mut().secret = *secret;
        sim.advance(Duration::from_millis(250));
        let _ = sim.request_begin(ann, tell.clone());
        sim.advance(Duration::from_millis(250));
    })
}

#[test]
fn a_leak_is_named_with_its_place_its_values_and_the_input_before() {
    let report = told(&Tell::Field);
    let leak = &report.leaks()[0];
    assert_eq!((leak.player, &*leak.to), (Some(PlayerId(2)), "Bob (player 2)"));
    assert_eq!((leak.kind, leak.difference), (LeakKind::Patch, Difference::Value));
    assert_eq!((&*leak.path, &leak.values), ("shown.3.value", &["7".to_owned(), "9".to_owned()]));
    assert_eq!((leak.at, leak.tick), (Duration::from_millis(300), 3));
    // Two joins, a change, a time, the request; then the time in which the patch is sent.
    assert_eq!((leak.input, &*leak.input_text), (6, "250ms pass"));
    let text = report.to_string();
    assert!(
        text.contains("Bob (player 2), shown.3.value: another value: 7 with secret 0"),
        "{text}"
    );
}

#[test]
fn each_way_to_tell_a_secret_is_found() {
    for (tell, kind, difference, path) in [
        (Tell::Key, LeakKind::Patch, Difference::Value, "shown"),
        (Tell::Later, LeakKind::Event, Difference::Time, "Said"),
        (Tell::Twice, LeakKind::Event, Difference::Count, "Said"),
        (Tell::Order, LeakKind::Event, Difference::Order, "Said"),
        (Tell::Once, LeakKind::Event, Difference::Count, "Said"),
        (Tell::Sooner, LeakKind::Patch, Difference::Time, "log.0"),
        (Tell::Kick(PlayerId(2)), LeakKind::Removed, Difference::Value, "text"),
    ] {
        let report = told(&tell);
        let leak = report.leaks().first().unwrap_or_else(|| panic!("{tell:?}: {report}"));
        assert_eq!(leak.player, Some(PlayerId(2)), "{tell:?}: {report}");
        assert_eq!((leak.kind, leak.difference), (kind, difference), "{tell:?}: {report}");
        assert!(leak.path.starts_with(path), "{tell:?}: {report}");
    }
}

#[test]
fn what_only_the_audience_and_other_rooms_receive_is_no_leak() {
    for tell in [Tell::Nothing, Tell::Error, Tell::Reply, Tell::Other] {
        told(&tell).assert_silent();
    }
    let report = told(&Tell::Nothing);
    assert!(report.messages() > 4, "{report}");
    let of = |secrets: Range<u32>| {
        Sim::<Den>::audit(secrets, |sim, secret| {
            sim.join("Bob").unwrap();
            sim.room_mut().secret = *secret;
        })
    };
    assert_eq!(of(0..2).messages(), of(0..9).messages(), "as many in each run");
}

#[test]
fn a_player_who_was_away_meanwhile_sees_no_time() {
    let audit = |tell: Tell, back: bool| {
        Sim::<Den>::audit([7, 9], |sim, secret| {
            let ann = sim.join("Ann").unwrap();
            let bob = sim.join("Bob").unwrap();
            sim.may_see(ann);
            sim.room_mut().secret = *secret;
            sim.cut(bob);
            sim.request(ann, tell.clone()).unwrap();
            sim.advance(Duration::from_millis(100));
            if back {
                sim.resume(bob);
            }
            sim.advance(Duration::from_secs(1));
        })
    };
    audit(Tell::Later, true).assert_silent();
    audit(Tell::Twice, false).assert_silent();
    assert_eq!(audit(Tell::Twice, true).leaks()[0].difference, Difference::Count);
}

#[test]
fn a_secret_may_be_a_seed_a_key_or_mail_and_lists_are_seen_by_all() {
    let join = |sim: &mut Sim<Den>| assert!(sim.join("Bob").is_ok());
    Sim::<Den>::audit_with([1, 2], |seed| Sim::new(*seed), |sim, _| join(sim)).assert_silent();
    let keyed = |key: &&str| Sim::<Den>::with_key(1, &(), key).unwrap();
    let report = Sim::<Den>::audit_with(["a7", "a9"], keyed, |sim, _| join(sim));
    let leak = &report.leaks()[0];
    assert_eq!((leak.kind, &*leak.path, leak.player), (LeakKind::Listing, "key", None));
    let report = Sim::<Den>::audit([7, 9], |sim, secret| {
        join(sim);
        sim.mail(Mail::Told { from: None, message: InternalMessage::of(&Due(*secret)) });
    });
    assert_eq!((report.leaks()[0].kind, &*report.leaks()[0].path), (LeakKind::Event, "Said"));
}

#[test]
fn trees_are_compared_as_packed_is() {
    let report = Sim::<Den>::audit([7, 9], |sim, secret| {
        sim.room_mut().secret = *secret;
        let bob = sim.join_in("Bob", Format::Json).unwrap();
        sim.request(bob, Tell::Reply).unwrap();
    });
    let leak = &report.leaks()[0];
    assert_eq!((leak.kind, &*leak.path), (LeakKind::Reply, "Tell"));
    assert_eq!(leak.values, ["7", "9"]);
}

#[test]
fn a_place_that_several_secrets_show_is_named_once() {
    let report = Sim::<Den>::audit(1..6, |sim, secret| {
        sim.join("Bob").unwrap();
        sim.room_mut().shown.insert(1, Shown { value: *secret });
        sim.sync();
    });
    assert_eq!(report.leaks().len(), 1, "{report}");
}

#[test]
fn an_audit_that_proves_nothing_fails() {
    let audit = |of: fn(&mut Sim<Den>, &u32)| Sim::<Den>::audit([7, 9], of).to_string();
    let none = audit(|sim, _| drop(sim.join("Bob")));
    assert!(none.contains("nothing in the room depends on the secret"), "{none}");
    let unequal = audit(|sim, secret| {
        let bob = sim.join("Bob").unwrap();
        let _ = sim.raw_request(bob, 0, &[*secret as u8 % 4]);
        sim.room_mut().secret = *secret;
    });
    assert!(
        unequal.contains("the inputs of the runs differ: input 2 (Bob requests Tell"),
        "{unequal}"
    );
    let unequal = audit(|sim, secret| {
        sim.room_mut().secret = *secret;
        sim.advance(Duration::from_secs((*secret).into()));
    });
    assert!(unequal.contains("7s pass"), "{unequal}");
    let alone = audit(|sim, secret| {
        let ann = sim.join("Ann").unwrap();
        sim.may_see(ann);
        sim.room_mut().secret = *secret;
        sim.sync();
    });
    assert!(alone.contains("nobody was sent anything"), "{alone}");
    let one = Sim::<Den>::audit([7], |sim, secret| sim.room_mut().secret = *secret);
    assert!(one.to_string().contains("fewer than two secrets"), "{one}");
}

#[test]
fn refused_inputs_are_named_with_their_counts() {
    let report = Sim::<Den>::audit([7, 9], |sim, secret| {
        let ann = sim.join("Ann").unwrap();
        sim.may_see(ann);
        sim.room_mut().secret = *secret;
        let bob = sim.join("Bob").unwrap();
        for name in ["Cid", "Dan", "Eve", "Fay"] {
            let _ = sim.join(name);
        }
        for tell in [Tell::Error, Tell::Nothing, Tell::Error] {
            let _ = sim.request(ann, tell);
        }
        sim.leave(bob);
        sim.request(bob, Tell::Nothing).unwrap_err();
    });
    let counts = |of: &Refusals| (of.name.clone(), of.refused, of.given);
    let counted: Vec<_> = report.refusals().iter().map(counts).collect();
    assert_eq!(counted, [("join".to_owned(), 2, 6), ("Tell".to_owned(), 3, 4)], "{report}");
    report.assert_silent();
    let text = report.to_string();
    assert!(text.starts_with("no leak: ") && text.contains("inputs\nThe room refused "), "{text}");
    assert!(text.contains("\n- join: 2 of 6, the first with room_full"), "{text}");
    assert!(text.ends_with("\n- Tell: 3 of 4, the first with refused: it is not 7"), "{text}");
    assert_eq!(told(&Tell::Nothing).refusals(), []);
}

#[test]
#[should_panic(expected = "shown.3.value")]
fn a_leak_ends_a_test() {
    told(&Tell::Field).assert_silent();
}

#[test]
fn a_leak_before_a_panic_is_reported_and_a_panic_alone_goes_on() {
    let report = Sim::<Den>::audit([7, 9], |sim, secret| {
        let bob = sim.join("Bob").unwrap();
        sim.room_mut().secret = *secret;
        let told = sim.request(bob, Tell::Reply).unwrap();
        assert_eq!(told, 7);
    });
    assert_eq!(report.leaks()[0].kind, LeakKind::Reply);
    let panics = std::panic::catch_unwind(|| {
        Sim::<Den>::audit([7, 9], |sim, secret| {
            sim.room_mut().secret = *secret;
            assert_eq!(*secret, 7);
        })
    });
    assert!(panics.is_err());
}

#[test]
fn any_messages_are_the_same_for_a_seed_and_all_kinds_are_made() {
    for format in Format::ALL {
        let play = |sim: &mut Sim<Den>, secret: &u32| {
            let ann = sim.join("Ann").unwrap();
            let bob = sim.join_in("Bob", format).unwrap();
            sim.may_see(ann);
            sim.room_mut().secret = *secret;
            for seed in 0..100 {
                sim.any_message(bob, seed);
                sim.advance(Duration::from_millis(20));
            }
        };
        // Bob asks for the secret sooner or later.
        let report = Sim::<Den>::audit([7, 9], play);
        assert!(!report.leaks().is_empty(), "{report}");
    }
}

/// A room that is not deterministic, each in its own way.
#[derive(State, Default)]
struct Loose {
    shown: u64,
    names: List<u64>,
    #[sync(skip)]
    seen: HashSet<u64>,
}

#[derive(Message, Clone, Copy)]
#[reply(u64)]
enum Do {
    Nothing,
    ReadClock,
    CountInStatic,
    ListSet,
    SetTimer,
    DrawNumber,
    Emit,
    Post,
}

static COUNT: AtomicU64 = AtomicU64::new(0);

#[room(messages(Do), events(Said), internal(Due), tick_hz = 10)]
impl Room for Loose {}

impl Handle<Do> for Loose {
    fn handle(&mut self, what: Do, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
        let count = || COUNT.fetch_add(1, Ordering::Relaxed);
        match what {
            Do::Nothing => {}
            Do::ReadClock => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                self.shown = now.map_or(0, |now| now.as_nanos() as u64);
            }
            Do::CountInStatic => return Ok(count()),
            Do::ListSet => {
                self.seen.extend(0..64);
                self.names.extend(self.seen.iter().copied());
            }
            Do::SetTimer => drop(cx.after(Duration::from_millis(count() % 1_000), Due(1))),
            Do::DrawNumber if count() % 2 == 0 => drop(cx.rng().below(2)),
            Do::DrawNumber => {}
            Do::Emit => cx.emit(&Said(count() as u32)),
            Do::Post => cx.tell("other", &Due(count() as u32)),
        }
        Ok(0)
    }
}

impl On<Due> for Loose {
    fn on(&mut self, _: Due, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn what_makes_a_room_differ_is_found_and_named() {
    let play = |what: Do| {
        Sim::<Loose>::check_determinism(
            || Sim::new(7),
            |sim| {
                let ann = sim.join("Ann").unwrap();
                sim.advance(Duration::from_millis(150));
                sim.request(ann, what).unwrap();
                sim.advance(Duration::from_millis(150));
            },
        )
    };
    play(Do::Nothing).unwrap();
    for (what, sent, path) in [
        (Do::ReadClock, None, "shown"),
        (Do::CountInStatic, Some(LeakKind::Reply), "Do"),
        (Do::ListSet, None, "names"),
        (Do::SetTimer, None, "timers"),
        (Do::DrawNumber, None, "random numbers"),
        (Do::Emit, Some(LeakKind::Event), "Said"),
        (Do::Post, Some(LeakKind::Mail), "Due"),
    ] {
        let divergence = play(what).expect_err(path);
        assert_eq!(divergence.sent, sent, "{divergence}");
        assert!(divergence.path.starts_with(path), "{divergence}");
        assert_eq!(divergence.input, 3, "{divergence}");
        assert!(divergence.input_text.starts_with("Ann requests Do"), "{divergence}");
        assert_eq!(divergence.tick, 1, "{divergence}");
        assert_ne!(divergence.values[0], divergence.values[1], "{divergence}");
    }
}

#[test]
fn an_audit_of_a_room_that_is_not_deterministic_says_so() {
    let report = Sim::<Loose>::audit([7, 9], |sim, secret| {
        let ann = sim.join("Ann").unwrap();
        sim.room_mut().shown = *secret;
        sim.request(ann, Do::ReadClock).unwrap();
    });
    let text = report.to_string();
    assert!(report.leaks().is_empty() && text.contains("the room is not deterministic"), "{text}");
}
