//! Random plays: scenarios that are made from a seed, whose connections are cut at any byte.

use serde_json::{Value, json};

/// The clients of a play, each with the room and the channels in which it speaks.
const CLIENTS: [(&str, &str); 3] = [("ann", "a"), ("bob", "b"), ("eve", "c")];

/// The number of cuts of each of their connections.
const CUTS: u64 = 25;

/// The number of commands that each of them makes.
const COMMANDS: usize = 50;

/// The history of the first kind has all that is published; that of the second is short.
const CHANNELS: [&str; 2] = ["deep", "shallow"];

/// Enough plays to cut so many connections, as a group of scenarios. With `tls`, one
/// of the clients uses it in every second play.
#[must_use]
pub fn plays(cuts: u64, tls: bool) -> Value {
    let seeds = 1..=cuts.div_ceil(CLIENTS.len() as u64 * CUTS);
    let mut scenarios: Vec<Value> = seeds.map(|seed| play(seed, tls && seed % 2 == 0)).collect();
    scenarios.push(short_lives(tls));
    json!({ "about": "Random plays.", "scenarios": scenarios })
}

/// The same for the same seed. Each client sends in its room, is in all rooms, and subscribes to
/// all channels. So each of them sees all that is said in a known order.
fn play(seed: u64, tls: bool) -> Value {
    let mut play = Play { random: Random(seed), steps: Vec::new() };
    for (name, _) in CLIENTS {
        let tls = tls && name == "bob";
        play.does(name, json!({ "do": "connect", "link": "other", "tls": tls }));
        play.does(name, json!({ "do": "register", "device": device(name) }));
    }
    for (owner, room) in CLIENTS {
        let enter = json!({ "type": "ledger", "room": room, "key": key(room) });
        play.does(owner, with(&enter, "do", "join_or_create"));
        let label = json!({ "do": "request", "room": room, "message": "Label" });
        play.does(owner, with(&label, "payload", json!({ "name": key(room) })));
        for (name, _) in CLIENTS {
            if name != owner {
                play.does(name, with(&enter, "do", "join_by_key"));
            }
            for kind in CHANNELS {
                play.does(name, json!({ "do": "subscribe", "channel": channel(kind, room) }));
            }
        }
    }
    for (name, _) in CLIENTS {
        play.cuts(name);
    }
    let mut said = CLIENTS.map(|_| Said::default());
    for _ in 0..COMMANDS {
        for (said, (name, room)) in said.iter_mut().zip(CLIENTS) {
            play.command(name, room, said);
        }
    }
    for (name, _) in CLIENTS {
        play.does(name, json!({ "expect": "all_cut" }));
    }
    for (name, _) in CLIENTS {
        play.ends_well(name, &said);
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

/// The commands of a client so far.
#[derive(Default)]
struct Said {
    fillings: Vec<String>,
    asked: Vec<u32>,
    /// In the channels of each kind.
    published: [Vec<Value>; 2],
    visits: u32,
    /// The number of commands pushed to it, as a device.
    pushed: u32,
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
            3 => {
                let list =
                    json!({ "do": "list", "type": "ledger", "filter": { "name": key(room) } });
                let found = json!([{ "key": key(room), "players": CLIENTS.len() }]);
                self.does(client, with(&list, "rooms", found));
            }
            4 => {
                said.pushed += 1;
                let push = json!({ "do": "push", "device": device(client) });
                self.does(client, with(&push, "payload", said.pushed));
            }
            5 => {
                let number = self.random.below(999);
                self.does(
                    client,
                    json!({ "do": "report", "payload": number, "reply": number + 1 }),
                );
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

    /// The messages that a client must have seen of all, itself among them, at the end.
    fn ends_well(&mut self, client: &str, said: &[Said; CLIENTS.len()]) {
        for (said, (owner, room)) in said.iter().zip(CLIENTS) {
            // The first in each room is its owner.
            let player = 1;
            for (filling, number) in said.fillings.iter().zip(1_u32..) {
                let payload = json!({ "player": player, "number": number, "filling": filling });
                let done = json!({ "expect": "event", "room": room, "event": "Done" });
                self.does(client, with(&done, "payload", payload));
            }
            let last = said.fillings.len();
            let state = json!({ "expect": "state", "room": room });
            let is = |path: Value, is: Value| with(&with(&state, "at", path), "is", is);
            self.does(client, is(json!(["total"]), json!(last)));
            self.does(client, is(json!(["faults"]), json!(0)));
            self.does(client, is(json!(["accounts", "1", "last"]), json!(last)));
            let own_number = json!(["accounts", "1", "own"]);
            if owner == client {
                self.does(client, is(own_number, json!(last)));
                self.own_ends_well(client, said);
            } else {
                let absent = with(&state, "absent", true);
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

    /// The answers to a client's own requests, and the commands to its device.
    fn own_ends_well(&mut self, client: &str, said: &Said) {
        for number in &said.asked {
            let name = format!("{client}-{number}");
            self.does(client, json!({ "expect": "answer", "as": name, "reply": number }));
        }
        for number in 1..=said.pushed {
            self.does(client, json!({ "expect": "commanded", "payload": number }));
        }
        // No other came.
        let last = said.pushed + 1;
        self.does(client, json!({ "do": "push", "device": device(client), "payload": last }));
        self.does(client, json!({ "expect": "commanded", "payload": last }));
    }
}

fn key(room: &str) -> String {
    format!("${{run}}{room}")
}

fn device(client: &str) -> String {
    format!("${{run}}-{client}")
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
