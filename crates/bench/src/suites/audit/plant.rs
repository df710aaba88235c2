//! The leaks that are planted.

use playfield::sim::Leak;

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

    /// Returns whether a finding names the place of this leak: the field, or the message and the
    /// field in it, the tick and the input.
    pub(super) fn is_at(self, leak: &Leak) -> bool {
        (leak.path.as_str(), leak.tick, leak.input_text.as_str()) == self.place()
    }

    fn place(self) -> (&'static str, u64, &'static str) {
        // The table has no ticks. Changes of the state show at the next sync.
        let offered = |path| (path, 0, r#"Ann sends Offer {"place":0,"with":2}"#);
        let synced = |path| (path, 0, "500ms pass");
        let looked = |path| (path, 0, "Cleo requests Look");
        // The fifth tick is the first after Ann sails.
        let sailed = |path| (path, 5, "50ms pass");
        match self {
            Self::Nothing => ("", 0, ""),
            Self::HiddenField => synced("top"),
            Self::OtherHand => synced("open_hands.1.0"),
            Self::ListLength => synced("marks.0"),
            Self::TextLength => synced("note"),
            Self::ListOrder => synced("order.0"),
            Self::EventToAll | Self::EventToOthers => offered("Offered.card"),
            // The shorter one has twelve.
            Self::EventLength => offered("Heard.padding.12"),
            Self::EventOrder => offered("Heard"),
            Self::SyncTime => offered("seats.1.offers"),
            Self::TimerTick => synced("Hurry"),
            Self::RandomNumber => ("Roll", 0, "Cleo requests Roll"),
            Self::ErrorText => looked("Look.text"),
            Self::ErrorCode => looked("Look.code"),
            Self::RetryAfter => looked("Look.retry_after_ms"),
            Self::ReplyField => looked("Look.best"),
            Self::ReplyTime => synced("Look"),
            Self::JoinText => ("text", 0, "Dan joins"),
            Self::Metadata => offered("metadata.offer"),
            Self::Lock | Self::Reserved | Self::Publication | Self::Push => offered(""),
            Self::KickReason | Self::CloseText => offered("text"),
            Self::RoomKey => offered("created.key"),
            Self::ViewRadius => sailed("ships.1"),
            Self::ViewTeam => sailed("ships.1.y"),
            Self::MaskedValue => sailed("wind"),
            Self::Counted => sailed("fleet"),
            Self::Wake => sailed("wakes.0"),
            Self::Nearest => sailed("buoys.99"),
        }
    }
}
