//! Counts of a run.

macro_rules! counts {
    ($($(#[$docs:meta])* $name:ident,)*) => {
        /// Counts of a run, over all connections.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$docs])* pub $name: u64,)*
        }

        impl Counts {
            /// The names, in order.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The values, in the order of the names.
            #[must_use]
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }

            /// The counts with these values; missing ones are 0.
            pub(crate) fn of(values: impl IntoIterator<Item = u64>) -> Self {
                let mut values = values.into_iter();
                Self { $($name: values.next().unwrap_or(0)),* }
            }

            /// Adds those of another process.
            pub(crate) fn add(&mut self, more: &Self) {
                $(self.$name += more.$name;)*
            }
        }
    };
}

counts! {
    /// Connections that were begun.
    begun,
    /// Connections that the node has welcomed.
    connected,
    /// Connections that are open and welcomed.
    open,
    /// Connections that never were welcomed.
    failed,
    /// Connections that ended without being asked to.
    lost,
    /// Connections that have run their script to its end.
    finished,
    /// Rooms that were joined.
    joined,
    /// Rooms that this load is in.
    in_rooms,
    /// Requests to enter a room that were refused.
    joins_refused,
    /// Rooms that the node has ended, or removed a player from.
    removed,
    /// Messages that were sent, with and without a reply.
    sent,
    /// Messages that expect a reply.
    requests,
    /// Replies to them.
    replies,
    /// Requests that the room or the node refused.
    refused,
    /// Requests that lost their room or connection before the answer.
    abandoned,
    /// Requests that were not answered in time.
    unanswered,
    /// Messages without a reply that were refused.
    sends_refused,
    /// Messages that were due and not sent.
    unsent,
    /// The part of them that was due for 100 ms and more, and pings that were due past the most
    /// that wait for answers.
    overdue,
    /// Channels that were subscribed to.
    subscribed,
    /// Channels that this load subscribes to.
    in_channels,
    /// Subscriptions that were refused.
    subscriptions_refused,
    /// Subscriptions that the node has ended.
    unsubscribed,
    /// Publications that were sent. They count as messages, too.
    publications,
    /// Publications that were received.
    deliveries,
    /// Publications that were sent and never came out of their channel, as later ones of the same
    /// publisher did.
    publications_lost,
    /// Publications that a subscription should have received, and has not, though later ones came.
    deliveries_lost,
    /// Publications that had not come to a subscription when the load ended.
    deliveries_late,
    /// Publications that came again.
    deliveries_repeated,
    /// Publications that came after a later one of the same channel or publisher.
    deliveries_out_of_order,
    /// Messages about others who subscribe, or no longer do.
    presences,
    /// Devices that were registered.
    registered,
    /// Registrations that were refused.
    registrations_refused,
    /// Reports that were sent. They count as messages, too.
    reports,
    /// Commands to devices.
    commands,
    /// Answers to commands.
    answers,
    /// Events of rooms.
    events,
    /// Snapshots of a state.
    snapshots,
    /// Patches of a state.
    patches,
    /// Digests that were compared with a copy of the state.
    compared,
    /// Copies that were wrong, and bodies that could not be applied.
    wrong,
    /// Pings that were sent by the option for it.
    pings,
    /// Their answers.
    pongs,
    /// Steps and answers to commands that could not be done, past a limit of the client.
    undone,
    /// Bytes that were received, without the headers of TCP and TLS.
    bytes_in,
    /// Bytes that were sent.
    bytes_out,
}

impl Counts {
    /// Returns whether every answer came that was due, and every copy was right.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.trouble().is_none()
    }

    /// The trouble, in one sentence.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let parts: Vec<_> = [
            of(self.failed, "connections failed"),
            of(self.lost, "connections were lost"),
            of(self.joins_refused, "joins were refused"),
            of(self.removed, "rooms were left because the node said so"),
            of(self.refused + self.sends_refused, "messages were refused"),
            of(self.abandoned, "requests lost their room or connection"),
            of(self.overdue, "messages were due and not sent"),
            of(self.unanswered, "requests were not answered"),
            of(self.pings.saturating_sub(self.pongs), "pings were not answered"),
            of(self.subscriptions_refused, "subscriptions were refused"),
            of(self.unsubscribed, "subscriptions were ended by the node"),
            of(self.publications_lost, "publications were lost"),
            of(self.deliveries_lost, "deliveries were lost"),
            of(self.deliveries_late, "deliveries had not come at the end"),
            of(self.deliveries_repeated, "deliveries were repeated"),
            of(self.deliveries_out_of_order, "deliveries were out of order"),
            of(self.registrations_refused, "registrations were refused"),
            of(self.wrong, "copies of the state were wrong"),
            of(self.undone, "steps could not be done"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn counts_are_added_and_come_back_from_their_values() {
        let one = Counts { begun: 2, bytes_out: 7, ..Counts::default() };
        assert_eq!(Counts::of(one.values()), one);
        assert_eq!(one.values().len(), Counts::NAMES.len());
        let mut sum = one;
        sum.add(&one);
        assert_eq!((sum.begun, sum.bytes_out), (4, 14));
        assert!(sum.is_sound());
        sum.lost = 3;
        assert_eq!(sum.trouble().as_deref(), Some("3 connections were lost"));
    }

    #[test]
    fn all_that_has_no_answer_is_trouble() {
        // In turn: what is there, what was done, and what only may have been about to be sent.
        let fine = "begun connected open finished joined in_rooms sent requests replies unsent \
                    subscribed in_channels publications deliveries presences registered reports \
                    commands answers events snapshots patches compared pongs bytes_in bytes_out";
        let fine: Vec<_> = fine.split_whitespace().collect();
        for (index, name) in Counts::NAMES.iter().enumerate() {
            let counts = Counts::of((0..Counts::NAMES.len()).map(|at| u64::from(at == index)));
            assert_eq!(counts.is_sound(), fine.contains(name), "{name}");
        }
    }
}
