//! Replies that a room gives later: who gets them, once, and who does not.

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{
    Context, DEFERRED_MAX, Deferred, EndReason, Error, Handle, InternalMessage, Mail, Message, On,
    Player, PlayerId, Result, Room, room,
};
use playfield_state::{Data, Format, List, State};
use playfield_wire::ErrorCode;

use crate::support::room_named;

#[derive(State, Default)]
struct Desk {
    /// The requests that wait, oldest first.
    #[sync(hidden)]
    waiting: List<Deferred<Ask>>,
    answered: u32,
    /// The answer of `closing` to all requests.
    #[sync(hidden)]
    last_word: Option<u32>,
}

#[derive(Message, Clone)]
#[reply(u32)]
enum Ask {
    Wait,
    /// Defers, and returns a reply all the same.
    Both,
    /// Defers, answers, and returns a reply all the same.
    Thrice,
    /// Returns what should follow a deferral, without one.
    Bare,
    /// Defers the reply to another message.
    Other,
    /// Defers twice, which is once.
    Twice,
    WaitAndClose,
    Panic,
    /// Background work replies.
    Work(u32),
    WorkRefused,
}

/// Answers all who wait.
#[derive(Message)]
#[reply(u32)]
struct AnswerAll(u32);

/// The message of background work, which brings a handle back.
#[derive(Message)]
struct Found(Deferred<Ask>, u32);

/// Answers this handle.
#[derive(Message)]
#[reply(bool)]
struct Answer(Deferred<Ask>);

#[derive(Message)]
struct Fetch;

#[room(
    messages(Ask, AnswerAll, Fetch, Answer),
    internal(Ask, Found, AnswerAll),
    capacity = 1_000,
    reply_ms = 1_000
)]
impl Room for Desk {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        if let Some(word) = self.last_word {
            self.answer_all(word, cx);
        }
    }
}

impl Desk {
    fn answer_all(&mut self, number: u32, cx: &mut Context<Self>) {
        let waiting: Vec<_> = self.waiting.iter().copied().collect();
        for later in waiting {
            self.answered += u32::from(cx.answer(later, Ok(number)));
        }
    }

    fn ask(&mut self, ask: Ask, cx: &mut Context<Self>) -> Result<u32> {
        match ask {
            Ask::Bare => {}
            Ask::Other => drop(cx.defer::<AnswerAll>()),
            Ask::Work(number) => return cx.reply_later::<Ask>(async move { Ok(number) }),
            Ask::WorkRefused => {
                let error = Error::with_code(1_001, "no").with_retry_after(Duration::from_secs(2));
                return cx.reply_later::<Ask>(async { Err(error) });
            }
            Ask::Both => {
                self.waiting.push(cx.defer());
                return Ok(7);
            }
            Ask::Thrice => {
                let later = cx.defer::<Ask>();
                assert!(cx.answer(later, Ok(1)) && !cx.answer(later, Ok(2)));
                return Ok(3);
            }
            Ask::Twice => {
                assert_eq!(cx.defer::<Ask>(), cx.defer::<Ask>());
            }
            Ask::Panic => {
                self.waiting.push(cx.defer());
                panic!("a bug in a handler");
            }
            Ask::Wait | Ask::WaitAndClose => {
                self.waiting.push(cx.defer());
                if matches!(ask, Ask::WaitAndClose) {
                    cx.close("enough");
                }
            }
        }
        Err(Error::deferred())
    }
}

impl Handle<Ask> for Desk {
    fn handle(&mut self, ask: Ask, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.ask(ask, cx)
    }
}

impl On<Ask> for Desk {
    fn on(&mut self, ask: Ask, cx: &mut Context<Self>) -> Result<u32> {
        self.ask(ask, cx)
    }
}

impl Handle<AnswerAll> for Desk {
    fn handle(&mut self, all: AnswerAll, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.answer_all(all.0, cx);
        Ok(self.answered)
    }
}

impl On<AnswerAll> for Desk {
    fn on(&mut self, all: AnswerAll, cx: &mut Context<Self>) -> Result<u32> {
        self.answer_all(all.0, cx);
        Ok(self.answered)
    }
}

impl Handle<Answer> for Desk {
    fn handle(&mut self, answer: Answer, _: &Player, cx: &mut Context<Self>) -> Result<bool> {
        Ok(cx.answer(answer.0, Ok(0)))
    }
}

impl Handle<Fetch> for Desk {
    fn handle(&mut self, _: Fetch, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        let later = cx.defer::<Ask>();
        cx.spawn(async move { Found(later, 5) })
    }
}

impl On<Found> for Desk {
    fn on(&mut self, Found(later, number): Found, cx: &mut Context<Self>) -> Result<()> {
        self.answered += u32::from(cx.answer(later, Ok(number)));
        Ok(())
    }
}

fn desk() -> (Sim<Desk>, PlayerId, PlayerId) {
    let mut sim = Sim::<Desk>::new(1);
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join_in("Bob", Format::Json).unwrap());
    (sim, ann, bob)
}

fn code<T>(reply: Option<Result<T>>) -> ErrorCode {
    reply.expect("an answer").err().expect("a refusal").code()
}

#[test]
fn a_deferred_reply_arrives_when_the_room_answers_once_in_each_players_format() {
    let (mut sim, ann, bob) = desk();
    let asked = [ann, bob].map(|player| sim.request_begin(player, Ask::Wait));
    assert!(asked.iter().all(|asked| sim.reply(asked).is_none()));
    sim.advance(Duration::from_millis(999));
    assert_eq!(sim.request(ann, AnswerAll(42)), Ok(2));
    assert!(asked.iter().all(|asked| sim.reply(asked) == Some(Ok(42))));
    assert_eq!(sim.request(ann, AnswerAll(43)), Ok(2), "nobody waits any more");
    assert!(asked.iter().all(|asked| sim.reply(asked).is_none()));
}

#[test]
fn a_reply_that_is_never_given_fails_at_its_deadline() {
    let (mut sim, ann, _) = desk();
    let first = sim.request_begin(ann, Ask::Wait);
    sim.advance(Duration::from_millis(400));
    let second = sim.request_begin(ann, Ask::Wait);
    sim.advance(Duration::from_millis(600));
    let error = sim.reply(&first).unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Timeout);
    assert!(error.text().starts_with("reply_ms = 1000: "), "{error}");
    assert!(sim.reply(&second).is_none());
    assert_eq!(sim.request(ann, AnswerAll(1)), Ok(1), "the first was too late");
    assert_eq!(sim.reply(&second), Some(Ok(1)));
}

#[test]
fn a_handler_that_returns_something_else_has_answered() {
    let (mut sim, ann, _) = desk();
    assert_eq!(sim.request(ann, Ask::Both), Ok(7));
    assert_eq!(sim.request(ann, AnswerAll(1)), Ok(0));
    assert_eq!(
        sim.request(ann, Ask::Thrice),
        Ok(1),
        "the first answer counts, and is the only one"
    );
}

#[test]
fn misuse_is_answered_with_an_error() {
    let (mut sim, ann, _) = desk();
    for ask in [Ask::Bare, Ask::Other] {
        assert_eq!(sim.request(ann, ask.clone()).unwrap_err().code(), ErrorCode::Internal);
        assert_eq!(sim.ask(&ask).unwrap_err().code(), ErrorCode::Internal);
    }
    let asked = sim.request_begin(ann, Ask::Twice);
    sim.advance(Duration::from_secs(1));
    assert_eq!(code(sim.reply(&asked)), ErrorCode::Timeout);
}

#[test]
fn a_message_that_is_no_request_has_nobody_who_waits() {
    let (mut sim, ann, _) = desk();
    assert_eq!(sim.send(ann, Ask::Wait), Ok(()));
    sim.tell(&Ask::Wait);
    assert_eq!(sim.room().waiting.len(), 2);
    assert_eq!(sim.request(ann, AnswerAll(1)), Ok(0));
}

#[test]
fn a_player_who_left_gets_nothing() {
    for how in ["leave", "disconnect"] {
        let (mut sim, ann, bob) = desk();
        let asked = sim.request_begin(bob, Ask::Wait);
        match how {
            "leave" => sim.leave(bob),
            _ => sim.disconnect(bob),
        }
        assert_eq!(sim.request(ann, AnswerAll(1)), Ok(0));
        assert!(sim.reply(&asked).is_none());
    }
}

#[test]
fn a_handle_comes_back_from_background_work() {
    let (mut sim, ann, _) = desk();
    // The handler returned a reply, so nobody waits for this one.
    sim.request(ann, Fetch).unwrap();
    sim.run_background();
    assert_eq!(sim.room().answered, 0);

    let asked = sim.request_begin(ann, Ask::Wait);
    let later = *sim.room().waiting.iter().next().unwrap();
    sim.tell(&Found(later, 9));
    assert_eq!(sim.reply(&asked), Some(Ok(9)));
}

#[test]
fn background_work_replies_by_itself() {
    for format in Format::ALL {
        let mut sim = Sim::<Desk>::new(1);
        let ann = sim.join_in("Ann", format).unwrap();
        let asked = [Ask::Work(12), Ask::WorkRefused].map(|ask| sim.request_begin(ann, ask));
        assert!(sim.reply(&asked[0]).is_none());
        sim.run_background();
        assert_eq!(sim.reply(&asked[0]), Some(Ok(12)));
        let refusal = Error::with_code(1_001, "no").with_retry_after(Duration::from_secs(2));
        assert_eq!(sim.reply(&asked[1]), Some(Err(refusal)));
    }
}

#[test]
fn another_rooms_request_can_be_deferred() {
    let (mut sim, ann, _) = desk();
    for ask in [1, 2, 3] {
        let message = InternalMessage::of(&if ask == 3 { Ask::Work(4) } else { Ask::Wait });
        sim.mail(Mail::Asked { from: room_named("other"), ask, message });
    }
    assert!(sim.posted().is_empty());
    sim.request(ann, AnswerAll(1)).unwrap();
    sim.run_background();
    let answers: Vec<_> = sim
        .posted()
        .into_iter()
        .map(|(to, mail)| match mail {
            Mail::Answered { ask, reply } => (to, ask, reply.unwrap()),
            other => panic!("{other:?}"),
        })
        .collect();
    let other = || "other".to_owned();
    assert_eq!(answers, [(other(), 1, vec![1]), (other(), 2, vec![1]), (other(), 3, vec![4])]);
}

#[test]
fn the_end_of_the_room_answers_all_who_wait() {
    for last_word in [None, Some(8)] {
        let (mut sim, ann, _) = desk();
        sim.room_mut().last_word = last_word;
        let asked = sim.request_begin(ann, Ask::Wait);
        let message = InternalMessage::of(&Ask::Wait);
        sim.mail(Mail::Asked { from: room_named("other"), ask: 1, message });
        sim.close(EndReason::ShuttingDown);
        let (_, Mail::Answered { reply, .. }) = sim.posted().remove(0) else { panic!() };
        match last_word {
            None => {
                assert_eq!(code(sim.reply(&asked)), ErrorCode::RoomClosed);
                assert_eq!(reply.unwrap_err().code(), ErrorCode::RoomClosed);
            }
            Some(word) => {
                assert_eq!(sim.reply(&asked), Some(Ok(word)));
                assert_eq!(reply, Ok(vec![word as u8]));
            }
        }
    }
    let (mut sim, ann, _) = desk();
    let asked = sim.request_begin(ann, Ask::WaitAndClose);
    assert_eq!(code(sim.reply(&asked)), ErrorCode::RoomClosed);
}

#[test]
fn a_room_that_fails_answers_other_rooms() {
    let (mut sim, ann, _) = desk();
    let asked = sim.request_begin(ann, Ask::Wait);
    for (ask, what) in [(1, Ask::Wait), (2, Ask::Panic)] {
        let message = InternalMessage::of(&what);
        sim.mail(Mail::Asked { from: room_named("other"), ask, message });
    }
    let posted = sim.posted();
    assert_eq!(posted.len(), 2, "one answer for each: {posted:?}");
    for (_, mail) in posted {
        let Mail::Answered { reply: Err(error), .. } = mail else { panic!("{mail:?}") };
        assert_eq!(error.code(), ErrorCode::RoomFailed);
    }
    assert!(sim.reply(&asked).is_none(), "the player is removed, which voids the request");
}

#[test]
fn a_handle_of_another_room_or_an_earlier_one_answers_nothing() {
    let (mut old, ann, _) = desk();
    let asked = old.request_begin(ann, Ask::Wait);
    let stale = *old.room().waiting.iter().next().unwrap();

    let mut sim = Sim::<Desk>::new(2);
    let bob = sim.join("Bob").unwrap();
    let mine = sim.request_begin(bob, Ask::Wait);
    for handle in [stale, Deferred::default()] {
        assert_eq!(sim.request(bob, Answer(handle)), Ok(false));
    }
    assert!(sim.reply(&mine).is_none());
    assert_eq!(old.request(ann, Answer(stale)), Ok(true));
    assert_eq!(old.reply(&asked), Some(Ok(0)));
}

#[test]
fn one_deferred_reply_too_many_is_refused() {
    let (mut sim, ann, bob) = desk();
    for _ in 0..DEFERRED_MAX {
        sim.request_begin(ann, Ask::Work(1));
    }
    let asked = sim.request_begin(bob, Ask::Wait);
    assert_eq!(code(sim.reply(&asked)), ErrorCode::Limit);
    assert_eq!(sim.ask(&Ask::Wait).unwrap_err().code(), ErrorCode::Limit);
    sim.leave(ann);
    let asked = sim.request_begin(bob, Ask::Wait);
    assert!(sim.reply(&asked).is_none(), "those of a player who left are not counted");
}

#[test]
fn a_handle_is_plain_data() {
    let (mut sim, ann, _) = desk();
    sim.request_begin(ann, Ask::Wait);
    let later = *sim.room().waiting.iter().next().unwrap();
    for format in Format::ALL {
        let mut bytes = Vec::new();
        later.write(format, &mut bytes);
        assert_eq!(Deferred::<Ask>::read(format, &bytes), Ok(later));
    }
    assert_ne!(later, Deferred::default());
}
