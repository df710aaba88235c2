//! The fleet of the scenario server, and controls that command its devices.

use std::time::Duration;

use playfield::NodeHandle;
use playfield::device::{Device, Fleet, FleetSettings};
use playfield::prelude::*;

use crate::control::Request;

/// The longest time that an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Answers each report, a number, by the number after it.
struct Counters;

impl Fleet for Counters {
    fn register(&self, device: &Device) -> Result<()> {
        if device.has_tag("forbidden") {
            Err("devices may not have this tag".into())
        } else {
            Ok(())
        }
    }

    fn report(&self, _: &Device, report: &[u8]) -> Result<Vec<u8>> {
        Ok((number(&String::from_utf8_lossy(report))? + 1).to_string().into_bytes())
    }
}

fn number(text: &str) -> Result<i32> {
    let number = text.parse().ok().filter(|number| (0..1000).contains(number));
    Ok(number.ok_or("a number from 0 to 999 is expected")?)
}

pub(crate) fn fleet(server: Server) -> Server {
    server.fleet(Counters, FleetSettings::new())
}

/// Carries out `/devices/ID/push/NUMBER` and `/devices/ID/request/NUMBER`, whose answer is the
/// device's.
pub(crate) async fn command(node: &NodeHandle, request: &Request) -> Result<String> {
    let id = request.param("id").unwrap_or_default();
    let number = number(request.param("number").unwrap_or_default())?;
    match request.param("action").unwrap_or_default() {
        "push" => node.devices().push(id, &number).map(|_| "done".to_owned()),
        "request" => {
            let answer: i32 = node.devices().request(id, &number, ANSWER_MAX).await?;
            Ok(answer.to_string())
        }
        other => Err(format!("unknown action {other:?}; the actions are push and request").into()),
    }
}
