//! The client of NATS alone.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Instant;

use async_nats::{HeaderMap, Request, Subscriber};
use futures_core::Stream as _;
use tokio::task::LocalSet;

use super::{Numbers, Options, RECORD, Result, Round};

/// The subject of the bucket that the engine's side has made.
const BUCKET: &str = "$KV.pf_bench";

/// Makes records by request and reply, one after the other in each of as many tasks.
pub(super) async fn creates(url: &str, round: usize, options: &Options) -> Result<Round> {
    let client = async_nats::connect(url).await?;
    let next = Rc::new(Cell::new(0));
    let made = Rc::new(Cell::new(0));
    let count = options.creates;
    let tasks = LocalSet::new();
    let began = Instant::now();
    for _ in 0..options.in_flight {
        let (client, next, made) = (client.clone(), next.clone(), made.clone());
        tasks.spawn_local(async move {
            while next.get() < count {
                let number = next.replace(next.get() + 1);
                let mut headers = HeaderMap::new();
                headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
                let request = Request::new().headers(headers).payload(RECORD.to_vec().into());
                let subject = format!("{BUCKET}.bare.{round}.{number}");
                let answer = client.send_request(subject, request).await;
                // {"stream":"KV_pf_bench","seq":5}
                let is_made = answer.is_ok_and(|answer| {
                    let text = String::from_utf8_lossy(&answer.payload).into_owned();
                    text.contains(r#""seq":"#) && !text.contains("error")
                });
                made.set(made.get() + u64::from(is_made));
            }
        });
    }
    tasks.await;
    Ok(Round { took: began.elapsed(), is_right: made.get() == count })
}

/// Publishes messages from one client to another.
pub(super) async fn messages(url: &str, options: &Options) -> Result<Round> {
    let from = async_nats::connect(url).await?;
    let to = async_nats::connect(url).await?;
    let subject = async_nats::Subject::from("bench.bare");
    let mut subscriber = to.subscribe(subject.clone()).await?;
    // The server listens when it has answered what was sent next.
    to.request("$JS.API.INFO", "".into()).await?;

    let mut numbers = Numbers::new(options.payload);
    let mut sent = 0;
    let began = Instant::now();
    while numbers.received < options.messages {
        while sent < options.messages && sent - numbers.received < options.window {
            from.publish(subject.clone(), numbers.message(sent).into()).await?;
            sent += 1;
        }
        let message = next(&mut subscriber).await.ok_or("the subscription has ended")?;
        numbers.receive(&message.payload);
    }
    Ok(numbers.end(began))
}

async fn next(subscriber: &mut Subscriber) -> Option<async_nats::Message> {
    poll_fn(|context| Pin::new(&mut *subscriber).poll_next(context)).await
}
