//! The leaks that are planted.

use crate::harness::options::names;

names! {
    /// A leak of a room's secret.
    Plant {
        /// The room as it is.
        Nothing = "nothing",
        HiddenField = "a card of the deck in a visible field",
        OtherHand = "a hand in a map that everyone sees",
        ListLength = "the length of a list",
        TextLength = "the length of a text",
        ListOrder = "the order of a list",
        EventToAll = "an event to all instead of one",
        EventToOthers = "an event to all but one",
        EventLength = "the length of an event",
        EventOrder = "the order of two events",
        SyncTime = "a sync before the next regular one",
        TimerTick = "the time of a timer",
        RandomNumber = "one random number more",
        ErrorText = "the text of an error",
        ErrorCode = "the code of an error",
        RetryAfter = "the time to wait of an error",
        ReplyField = "a field of a reply",
        ReplyTime = "the time of a reply",
        JoinText = "the text of a refused join",
        Metadata = "the metadata of the room",
        Lock = "the lock of the room",
        Reserved = "a reserved seat",
        KickReason = "the reason of a kick",
        CloseText = "the reason of the room's end",
        RoomKey = "the key of a room that it creates",
        Publication = "a publication in a channel",
        Push = "a push to a device",
        ViewRadius = "a view that reaches too far",
        ViewTeam = "a view that shows the other team",
        MaskedValue = "a mask with too many digits",
        Counted = "the number of ships out of sight",
        Wake = "a mark where a ship out of sight has been",
        Nearest = "the seat among the nearest",
    }
}

impl Plant {
    pub(super) fn numbered(number: u32) -> Self {
        Self::NAMES.get(number as usize).map_or(Self::Nothing, |(_, plant)| *plant)
    }
}
