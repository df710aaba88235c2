//! Sensors: HTTP requests change a room, and browsers see it at once.
//!
//! `cargo run --bin sensors` serves it on 127.0.0.1:7350. Open http://127.0.0.1:7350/, and run
//! `curl -d 21.5 http://127.0.0.1:7350/stations/home/kitchen`.

use playfield::NodeHandle;
use playfield::axum::extract::Path;
use playfield::http::Failure;
use playfield::prelude::*;

/// The last measurements of a station's sensors.
#[derive(State, Default)]
struct Station {
    readings: Map<String, f64>,
}

/// The most sensors that a station may have.
const SENSORS_MAX: usize = 100;

/// A sensor has measured something. It comes from outside, to `On`; players can't send it.
#[derive(Message)]
#[reply(u32)]
struct Measured {
    sensor: String,
    value: f64,
}

#[room(internal(Measured), empty_ms = 3_600_000)]
impl Room for Station {}

impl On<Measured> for Station {
    fn on(&mut self, measured: Measured, _: &mut Context<Self>) -> Result<u32> {
        let Measured { sensor, value } = measured;
        if self.readings.len() >= SENSORS_MAX && !self.readings.contains_key(&sensor) {
            return Err(format!("a station has at most {SENSORS_MAX} sensors").into());
        }
        self.readings.insert(sensor, value);
        Ok(self.readings.len() as u32)
    }
}

/// `POST /stations/{station}/{sensor}`, with a number as the body.
async fn measured(
    node: NodeHandle,
    Path((station, sensor)): Path<(String, String)>,
    body: String,
) -> Result<String, Failure> {
    let value = body.trim().parse().ok().filter(|value: &f64| value.is_finite());
    let value = value.ok_or("the body must be a number")?;
    // The station's room has its name as the key. It is created when it is first needed.
    let room = node.find_or_create::<Station>(&station, &()).await?;
    // An error, such as that of a station with too many sensors, becomes the response: here a 422.
    let sensors = node.ask(&room, &Measured { sensor, value }).await?;
    Ok(format!("{sensors} sensors\n"))
}

fn main() -> ExitCode {
    Server::new()
        .room::<Station>("station")
        .route("POST", "/stations/{station}/{sensor}", measured)
        .folder("/", concat!(env!("CARGO_MANIFEST_DIR"), "/sensors"))
        .run()
}
