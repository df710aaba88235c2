//! Forks: a frozen room goes on beside the one that it was, for its players alone.

use std::time::Duration;

use playfield_room::frozen::{FORK_METADATA, Frozen, FrozenWriter, fork as fork_of};
use playfield_room::{
    Claims, Context, Entrant, Handle, LeaveReason, Link, Message, Player, PlayerId, Result, Room,
    RoomType, room,
};
use playfield_state::{Format, List, Map, State};

use crate::support::{Host, Output};

#[derive(State, Default)]
struct Match {
    scores: Map<PlayerId, u32>,
    log: List<String>,
}

/// Scores, and tells everyone outside.
#[derive(Message)]
struct Score(u32);

#[derive(Message)]
struct Scored(u32);

#[room(messages(Score), capacity = 2, tick_hz = 20, empty_ms = 0)]
impl Room for Match {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.scores.insert(player.id(), 0);
        Ok(())
    }

    fn lost(&mut self, player: &Player, _: &mut Context<Self>) {
        self.log.push(format!("{} is lost", player.name()));
    }

    fn returned(&mut self, player: &Player, _: &mut Context<Self>) {
        self.log.push(format!("{} is back", player.name()));
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.scores.remove(&player.id());
    }
}

impl Handle<Score> for Match {
    fn handle(&mut self, Score(more): Score, of: &Player, cx: &mut Context<Self>) -> Result<()> {
        if let Some(score) = self.scores.get_mut(&of.id()) {
            *score += more;
        }
        cx.tell("lobby", &Scored(more));
        cx.publish("scores", &more);
        cx.push("phone", &more);
        if cx.find::<Match>("there")?.is_some() {
            cx.create_room::<Match>(&())?;
        }
        Ok(())
    }
}

fn matches() -> RoomType {
    RoomType::of::<Match>("match")
}

/// A match of Ann and Bob, and its fork.
fn forked() -> (Host, Host) {
    let mut host = Host::create::<Match>(1, &[]).unwrap();
    let ann = host.join("Ann").unwrap();
    host.join("Bob").unwrap();
    host.act(ann, &Score(3), Some(1));
    host.at += Duration::from_secs(5);
    host.sync();
    let mut form = FrozenWriter::new();
    host.room.capture(&mut form).unwrap();
    let frozen = form.finish().unwrap();
    let bytes = fork_of(&Frozen::read(&frozen).unwrap(), "other", "a.rec input 3").unwrap();
    let mut other = Host::create::<Match>(2, &[]).unwrap();
    other.at = host.at;
    // The players of the fork have links, too.
    for name in ["one", "two"] {
        other.join(name).unwrap();
    }
    other.thaw(matches(), &bytes, None);
    other.out.take();
    (host, other)
}

fn scores(host: &mut Host) -> Vec<(u64, u32)> {
    let mut whole = Vec::new();
    assert!(host.room.whole(&mut whole));
    let state: Match = playfield_state::load(&whole).unwrap();
    state.scores.iter().map(|(player, score)| (player.0, *score)).collect()
}

#[test]
fn a_fork_is_a_private_room_of_its_own_and_the_other_goes_on() {
    let (mut host, mut fork) = forked();
    let summary = fork.room.summary().clone();
    assert!(summary.private && summary.key.is_none() && !summary.locked);
    assert_eq!(summary.metadata[FORK_METADATA], "a.rec input 3");
    assert_eq!((summary.players, summary.capacity), (2, 10));
    assert_eq!(scores(&mut fork), [(1, 3), (2, 0)]);
    assert!(fork.room.players(&mut |_| true).iter().all(|player| !player.is_connected()));
    host.act(PlayerId(1), &Score(1), Some(2));
    assert_eq!((scores(&mut host)[0], scores(&mut fork)[0]), ((1, 4), (1, 3)));
}

#[test]
fn who_joins_a_fork_under_the_name_of_a_player_takes_the_seat() {
    let (_, mut fork) = forked();
    assert_eq!(fork.join("Bob").unwrap(), PlayerId(2));
    let bob = fork.room.players(&mut |player| player.id() == PlayerId(2));
    assert!(bob[0].is_connected());
    fork.act(PlayerId(2), &Score(5), Some(1));
    assert_eq!(scores(&mut fork), [(1, 3), (2, 5)]);
    // Bob's seat is taken, and there are more.
    assert_eq!(fork.join("Bob").unwrap(), PlayerId(3));
    assert_eq!(fork.join("Eve").unwrap(), PlayerId(4));
    assert_eq!(fork.join("Ann").unwrap(), PlayerId(1));
}

#[test]
fn the_seat_of_a_user_is_only_for_this_user() {
    let (mut host, mut fork) = forked();
    let user = |name: &str, user: &str| Entrant {
        link: Link(0),
        format: Format::Packed,
        name: name.into(),
        user: (!user.is_empty()).then(|| user.into()),
        claims: Claims::default(),
        seat: None,
        reservation: None,
    };
    host.leave(PlayerId(2));
    assert_eq!(host.enter(user("Bob", "u1")).unwrap(), PlayerId(3));
    let mut form = FrozenWriter::new();
    host.room.capture(&mut form).unwrap();
    let frozen = form.finish().unwrap();
    let bytes = fork_of(&Frozen::read(&frozen).unwrap(), "other", "a.rec input 4").unwrap();
    fork.join("three").unwrap();
    fork.thaw(matches(), &bytes, None);
    assert_eq!(fork.join("Bob").unwrap(), PlayerId(4));
    assert_eq!(fork.enter(user("Bob", "u2")).unwrap(), PlayerId(5));
    assert_eq!(fork.enter(user("Bob", "u1")).unwrap(), PlayerId(3));
    // A guest's seat is for everyone.
    assert_eq!(fork.enter(user("Ann", "u3")).unwrap(), PlayerId(1));
}

#[test]
fn what_a_fork_sends_goes_to_its_players_alone() {
    let (mut host, mut fork) = forked();
    let sends = |host: &mut Host, player| {
        host.out.take();
        host.act(player, &Score(1), Some(9));
        let sent = host.out.take();
        let is_outside = |output: &&Output| !matches!(output, Output::Reply { .. });
        sent.iter().filter(is_outside).map(|output| format!("{output:?}")).collect::<Vec<_>>()
    };
    assert_eq!(sends(&mut host, PlayerId(1)).len(), 4);
    let ann = fork.join("Ann").unwrap();
    let sent = sends(&mut fork, ann);
    // To nowhere, so that a request would be answered.
    assert!(sent.len() == 1 && sent[0].starts_with("Post { to: \"-\""), "{sent:?}");
}

#[test]
fn a_fork_ends_when_nobody_has_been_connected_for_a_while() {
    let (_, mut fork) = forked();
    let since = fork.at;
    assert_eq!(fork.room.wake_at(), Some(since + Duration::from_secs(60)));
    let ann = fork.join("Ann").unwrap();
    assert_eq!(fork.room.wake_at(), None);
    fork.at += Duration::from_secs(100);
    fork.lost(ann);
    assert_eq!(fork.room.wake_at(), Some(fork.at + Duration::from_secs(60)));
    fork.wake_after(59_999);
    assert!(!fork.room.is_closed());
    fork.wake_after(1);
    assert!(fork.room.is_closed());
}

#[test]
fn a_fork_stays_one_when_it_is_frozen() {
    let (_, mut fork) = forked();
    let mut form = FrozenWriter::new();
    fork.room.freeze(fork.at, &mut form, &mut fork.out).unwrap();
    let frozen = form.finish().unwrap();
    fork.thaw(matches(), &frozen, None);
    assert_eq!(fork.join("Ann").unwrap(), PlayerId(1));
    fork.out.take();
    fork.act(PlayerId(1), &Score(1), Some(1));
    assert!(!format!("{:?}", fork.out.take()).contains("lobby"));
}
