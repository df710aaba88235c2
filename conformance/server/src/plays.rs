//! Random plays: scenarios that are made from a seed, whose connections are cut at any byte.

use serde_json::{Value, json};

/// How often each of the two connections of a play is cut.
const CUTS: u64 = 25;

/// How many commands each of its two clients makes.
const COMMANDS: u32 = 60;

/// The history of the first kind has all that is published; that of the second is short.
const CHANNELS: [&str; 2] = ["deep", "shallow"];

/// As many plays as it takes to cut so many connections, as a group of scenarios. With `tls`, one
/// of the two clients uses it in every second play.
#[must_use]
pub fn plays(cuts: u64, tls: bool) -> Value {
    let seeds = 1..=cuts.div_ceil(2 * CUTS);
    let mut scenarios: Vec<Value> = seeds.map(|seed| play(seed, tls && seed % 2 == 0)).collect();
    scenarios.push(short_lives(tls));
    json!({ "about": "Random plays.", "scenarios": scenarios })
}

/// The same for the same seed. Ann sends in room `a`, and Bob in room `b`; both are in both rooms,
/// and subscribe to both channels. So each of them sees all that is said in a known order.
fn play(seed: u64, tls: bool) -> Value {
    let mut play = Play { random: Random(seed), steps: Vec::new() };
    let names = ["ann", "bob"];
    for name in names {
        let tls = tls && name == "bob";
        play.does(name, json!({ "do": "connect", "link": "other", "tls": tls }));
    }
    for (owner, other, room) in [("ann", "bob", "a"), ("bob", "ann", "b")] {
        let key = format!("${{run}}{room}");
        let enter = json!({ "type": "ledger", "room": room, "key": key });
        play.does(owner, with(&enter, "do", "join_or_create"));
        play.does(other, with(&enter, "do", "join_by_key"));
        for (kind, name) in CHANNELS.iter().flat_map(|kind| names.map(|name| (kind, name))) {
            play.does(name, json!({ "do": "subscribe", "channel": channel(kind, room) }));
        }
    }
    let mut said = [(); 2].map(|()| Said::default());
    for command in 0..2 * COMMANDS {
        let one = (command % 2) as usize;
        if command < 2 {
            play.cuts(names[one]);
        }
        play.command(names[one], ["a", "b"][one], &mut said[one]);
    }
    for name in names {
        play.does(name, json!({ "expect": "all_cut" }));
    }
    for (one, name) in names.into_iter().enumerate() {
        play.ends_well(name, &names, &said, one);
    }
    let about = "Each command is carried out once, in order, and each event comes once, in order.";
    json!({ "name": format!("play-{seed}"), "about": about, "steps": play.steps })
}

/// Connections that never live long, and more at once than one of them can carry.
fn short_lives(tls: bool) -> Value {
    const SENDS: u32 = 60;
    let mut play = Play { random: Random(0), steps: Vec::new() };
    // A handshake of TLS is most of what passes.
    let bytes = if tls { "4500" } else { "2000" };
    let about = "Connections that carry little make progress in both directions.";
    play.does("ann", json!({ "do": "connect", "link": "other", "tls": tls }));
    play.does("ann", json!({ "do": "create", "type": "ledger", "room": "a" }));
    let cuts = [bytes; 8].join(",");
    play.does("ann", json!({ "do": "cut_after", "bytes": cuts }));
    let filling = "y".repeat(200);
    for number in 1..=SENDS {
        let payload = json!({ "number": number, "filling": filling });
        let send = json!({ "do": "send", "room": "a", "message": "Tell" });
        play.does("ann", with(&send, "payload", payload));
    }
    play.does("ann", json!({ "expect": "all_cut" }));
    for number in 1..=SENDS {
        let payload = json!({ "player": 1, "number": number, "filling": filling });
        let done = json!({ "expect": "event", "room": "a", "event": "Done" });
        play.does("ann", with(&done, "payload", payload));
    }
    for (name, is) in [("total", SENDS), ("faults", 0)] {
        play.does("ann", json!({ "expect": "state", "room": "a", "at": [name], "is": is }));
    }
    json!({ "name": "short-lives", "about": about, "steps": play.steps })
}

struct Play {
    random: Random,
    steps: Vec<Value>,
}

/// What a client has said in its room, and in its channel.
#[derive(Default)]
struct Said {
    fillings: Vec<String>,
    asked: Vec<u32>,
    /// In the channels of each kind.
    published: [Vec<Value>; 2],
    visits: u32,
}

impl Play {
    fn does(&mut self, client: &str, step: Value) {
        self.steps.push(with(&step, "client", client));
    }

    /// From within the hello to after much of the play: every size is as likely.
    fn cuts(&mut self, client: &str) {
        let bytes = (0..CUTS).map(|_| {
            let bits = 5 + self.random.below(7);
            self.random.below(1 << bits).to_string()
        });
        let bytes = bytes.collect::<Vec<_>>().join(",");
        self.does(client, json!({ "do": "cut_after", "bytes": bytes }));
    }

    fn command(&mut self, client: &str, room: &str, said: &mut Said) {
        match self.random.below(16) {
            kind @ (0 | 1) => {
                let published = &mut said.published[kind as usize];
                let payload = json!(published.len());
                let channel = channel(CHANNELS[kind as usize], room);
                let publish = json!({ "do": "publish", "channel": channel });
                self.does(client, with(&publish, "payload", payload.clone()));
                published.push(payload);
            }
            2 if said.visits < 2 => {
                said.visits += 1;
                let visited = format!("visit{}", said.visits);
                self.does(client, json!({ "do": "create", "type": "lab", "room": visited }));
                let payload = json!({ "changes": [{ "Push": 1 }] });
                let push = json!({ "do": "send", "room": visited, "message": "Note" });
                self.does(client, with(&push, "payload", payload));
                let list = json!({ "expect": "state", "room": visited, "at": ["list"], "is": [1] });
                self.does(client, list);
                self.does(client, json!({ "do": "leave", "room": visited }));
            }
            kind => {
                let number = said.fillings.len() as u32 + 1;
                let filling = "x".repeat(self.random.below(160) as usize);
                let payload = json!({ "number": number, "filling": filling });
                said.fillings.push(filling);
                let say = json!({ "do": "send", "room": room, "message": "Tell" });
                let say = if kind % 2 == 0 {
                    say
                } else {
                    said.asked.push(number);
                    let name = format!("{client}-{number}");
                    json!({ "do": "request", "room": room, "message": "Ask", "as": name })
                };
                self.does(client, with(&say, "payload", payload));
            }
        }
    }

    /// What a client must have seen of both, itself and the other, at the end.
    fn ends_well(&mut self, client: &str, names: &[&str; 2], said: &[Said; 2], own: usize) {
        for number in &said[own].asked {
            let name = format!("{client}-{number}");
            self.does(client, json!({ "expect": "answer", "as": name, "reply": number }));
        }
        for (who, said) in said.iter().enumerate() {
            let room = ["a", "b"][who];
            // The first in each room is its owner.
            let player = 1;
            for (filling, number) in said.fillings.iter().zip(1_u32..) {
                let payload = json!({ "player": player, "number": number, "filling": filling });
                let done = json!({ "expect": "event", "room": room, "event": "Done" });
                self.does(client, with(&done, "payload", payload));
            }
            let last = said.fillings.len();
            let is = |path: Value, is: Value| json!({ "expect": "state", "room": room, "at": path, "is": is });
            self.does(client, is(json!(["total"]), json!(last)));
            self.does(client, is(json!(["faults"]), json!(0)));
            self.does(client, is(json!(["accounts", "1", "last"]), json!(last)));
            let own_number = json!(["accounts", "1", "own"]);
            if names[who] == client {
                self.does(client, is(own_number, json!(last)));
            } else {
                let absent = json!({ "expect": "state", "room": room, "absent": true });
                self.does(client, with(&absent, "at", own_number));
            }
            for (kind, published) in CHANNELS.into_iter().zip(&said.published) {
                let heard = json!({
                    "expect": "publications", "channel": channel(kind, room),
                    "payloads": published, "some_missed": kind == "shallow",
                });
                self.does(client, heard);
            }
        }
    }
}

fn channel(kind: &str, room: &str) -> String {
    format!("{kind}:${{run}}{room}")
}

fn with(step: &Value, member: &str, value: impl Into<Value>) -> Value {
    let mut step = step.clone();
    step[member] = value.into();
    step
}

/// Numbers that look random, from a seed (SplitMix64: G. L. Steele and others, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
