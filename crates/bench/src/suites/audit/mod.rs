//! `bench audit`: leaks that are planted in rooms, and the audit that must find them.

mod plant;
mod sea;
mod table;

use std::time::Instant;

use playfield::sim::AuditReport;
use playfield_cli::options::Failure;

use self::plant::Plant;
use crate::harness::options::{Suite, options};
use crate::harness::report::{Column, Record, Report};

options! {
    Options {
        messages: u32 = 20, quick 5
            => "messages" "N" "messages of the player who may not know (default 20)",
            |given| given.within(1..=1_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "audit",
    about: "leaks that are planted in rooms, one at a time, and how many of them the audit of a
simulated room finds: its first finding must name the field, the tick and the input of the leak. And
the same rooms without a leak, in which it must find none.",
    defaults: Options::new,
    run,
};

const COLUMNS: &[Column] = &[
    ("    room", "room"),
    ("planted", "planted"),
    ("found", "found"),
    ("false alarms", "false_alarms"),
    ("messages", "messages"),
    ("seconds", "took_s"),
    ("verified", "verified"),
];

/// A room with its audit, and the leaks that can be planted in it.
struct Case {
    room: &'static str,
    audit: fn(Plant, u64) -> AuditReport,
    plants: &'static [Plant],
}

const CASES: &[Case] = &[
    Case {
        room: "table",
        audit: table::audit,
        plants: &[
            Plant::HiddenField,
            Plant::OtherHand,
            Plant::ListLength,
            Plant::TextLength,
            Plant::ListOrder,
            Plant::EventToAll,
            Plant::EventToOthers,
            Plant::EventLength,
            Plant::EventOrder,
            Plant::SyncTime,
            Plant::TimerTick,
            Plant::RandomNumber,
            Plant::ErrorText,
            Plant::ErrorCode,
            Plant::RetryAfter,
            Plant::ReplyField,
            Plant::ReplyTime,
            Plant::JoinText,
            Plant::Metadata,
            Plant::Lock,
            Plant::Reserved,
            Plant::KickReason,
            Plant::CloseText,
            Plant::RoomKey,
            Plant::Publication,
            Plant::Push,
        ],
    },
    Case {
        room: "sea",
        audit: sea::audit,
        plants: &[
            Plant::ViewRadius,
            Plant::ViewTeam,
            Plant::MaskedValue,
            Plant::Counted,
            Plant::Wake,
            Plant::Nearest,
        ],
    },
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    let mut all = Total::default();
    for Case { room, audit, plants } in CASES {
        let began = Instant::now();
        let audit = |plant| audit(plant, options.messages.into());
        let as_it_is = audit(Plant::Nothing);
        let false_alarms = usize::from(!as_it_is.is_silent());
        if false_alarms > 0 {
            eprintln!("{room}: {as_it_is}");
        }
        let mut found = 0;
        let messages = as_it_is.messages();
        for (number, &plant) in plants.iter().enumerate() {
            // Checks of this suite: a leak that does not exist, and one in another place.
            let there = match number {
                0 if options.corrupt_one => Plant::Nothing,
                1 if options.corrupt_one => plants[2],
                _ => plant,
            };
            let report = audit(there);
            match report.leaks().first() {
                Some(leak) if plant.is_at(leak) => found += 1,
                Some(leak) => eprintln!("{room}: {plant}: found at another place: {leak}"),
                None => eprintln!("{room}: not found: {plant}"),
            }
        }
        let planted = plants.len();
        let seconds = began.elapsed().as_secs_f64();
        let total = Total { planted, found, false_alarms, messages, seconds };
        report.add(total.record(room))?;
        all = all.and(&total);
    }
    Ok(report.add(all.record("all"))?)
}

/// The number of leaks that were planted, and that were found.
#[derive(Default)]
struct Total {
    planted: usize,
    found: usize,
    false_alarms: usize,
    messages: usize,
    seconds: f64,
}

impl Total {
    fn and(self, other: &Self) -> Self {
        Self {
            planted: self.planted + other.planted,
            found: self.found + other.found,
            false_alarms: self.false_alarms + other.false_alarms,
            messages: self.messages + other.messages,
            seconds: self.seconds + other.seconds,
        }
    }

    fn record(&self, room: &str) -> Record {
        Record::of("audit")
            .with("room", room)
            .with("planted", self.planted)
            .with("found", self.found)
            .with("false_alarms", self.false_alarms)
            .with("messages", self.messages)
            .measured("took_s", self.seconds)
            .with("verified", self.found == self.planted && self.false_alarms == 0)
    }
}
