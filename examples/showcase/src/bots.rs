//! Bots: ordinary clients over real sockets.

use std::f32::consts::TAU;
use std::time::Duration;

use playfield::client::{self, Error};

use crate::arena::{Arena, Steer};
use crate::cards::{HAND, Play, Table};
use crate::counter::{Add, Counter};

const PILOTS: usize = 18;
const CARD_PLAYERS: [&str; 2] = ["Eve", "Max"];

/// Runs all bots until they are refused, the server shuts down, or the future is dropped.
pub async fn play(url: String) {
    let mut bots = tokio::task::JoinSet::new();
    for number in 0..PILOTS {
        let url = url.clone();
        bots.spawn(async move { pilot(&url, number).await });
    }
    for name in CARD_PLAYERS {
        let url = url.clone();
        bots.spawn(async move { card_player(&url, name).await });
    }
    bots.spawn(async move { clerk(&url).await });
    while let Some(ended) = bots.join_next().await {
        if let Ok(Err(error)) = ended
            && !error.is_closed()
            && !error.is_left()
        {
            eprintln!("a bot stopped: {error}");
        }
    }
}

/// Flies towards the nearest spark.
async fn pilot(url: &str, number: usize) -> Result<(), Error> {
    let client = client::connect(url).name(&format!("bot {number}")).await?;
    let room = client.join_or_create::<Arena>("arena", &()).await?;
    let mut wander = number as f32;
    let mut ticks = tokio::time::interval(Duration::from_millis(150));
    loop {
        ticks.tick().await;
        wander += 0.07;
        let angle = {
            let state = room.state();
            state.ships.get(&room.player()).and_then(|ship| {
                let near = state.sparks.values().map(|spark| (spark.x - ship.x, spark.y - ship.y));
                let near = near.min_by(|a, b| a.0.hypot(a.1).total_cmp(&b.0.hypot(b.1)));
                near.map(|(x, y)| y.atan2(x) + wander.sin() * 0.4)
            })
        };
        room.send(Steer { angle: angle.unwrap_or(wander).rem_euclid(TAU) }).await?;
    }
}

/// Plays the highest card in hand, after a pause.
async fn card_player(url: &str, name: &str) -> Result<(), Error> {
    let client = client::connect(url).name(name).await?;
    let room = client.join_or_create::<Table>("table", &()).await?;
    let think = Duration::from_millis(900 + 350 * name.len() as u64);
    loop {
        tokio::time::sleep(think).await;
        let place = {
            let state = room.state();
            let me = room.player();
            let hand = state
                .hands
                .get(&me)
                .filter(|hand| !state.open.contains_key(&me) && hand.cards.len() == HAND);
            hand.and_then(|hand| (0..HAND).max_by_key(|&place| hand.cards[place].rank))
        };
        if let Some(place) = place {
            match room.request(Play { place: place as u32 }).await {
                Err(error) if !error.is_refused() => return Err(error),
                _ => {}
            }
        }
    }
}

/// Increments the counter.
async fn clerk(url: &str) -> Result<(), Error> {
    let client = client::connect(url).name("the clerk").await?;
    let room = client.join_or_create::<Counter>("counter", &()).await?;
    let mut beats = tokio::time::interval(Duration::from_secs(2));
    loop {
        beats.tick().await;
        room.request(Add(1)).await?;
    }
}
