//! The dispatch of mail and effects to the parts of a shard that they are for.

use playfield_room::AskId;
use playfield_wire::ErrorCode;

use crate::service::{Answered, Command};
use crate::shard::Shard;
use crate::shard::frames::Frame;
use crate::shard::mail::ShardMail;
use crate::shard::mail::parcel::{PutIn, TakeOut};
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;
use crate::shard::work::Host;

impl Shard {
    /// Does something by the outlet, and what follows from it.
    pub(crate) fn by_outlet<R>(&mut self, act: impl FnOnce(&mut Outlet<'_>) -> R) -> R {
        let result = act(&mut outlet!(self));
        self.apply_effects();
        result
    }

    /// Does what parts have left to those above them. Usually that is nothing.
    #[inline]
    pub(in crate::shard) fn apply_effects(&mut self) {
        if !self.outbound.effects.is_empty() {
            self.apply_all_effects();
        }
    }

    #[inline(never)]
    fn apply_all_effects(&mut self) {
        while let Some(effect) = self.outbound.effects.pop_front() {
            match effect {
                Effect::Mail(mail) => self.deliver_mail(mail),
                Effect::ServiceEntered { key, service, address, mut kept } => {
                    self.services.connected(&mut below!(self), key, service, address);
                    if !kept.is_empty() {
                        self.received_in_messages(key, &mut kept, 0);
                    }
                }
                Effect::ServiceEnded { key, service, why } => {
                    self.services.left(&mut below!(self), key, service, &why);
                }
                Effect::ServiceSilent { key, service } => {
                    self.services.silent(&mut below!(self), key, service);
                }
                Effect::ServiceCommand { key, service, id, payload } => {
                    let command = Command { id, payload: payload.as_slice() };
                    self.services.command(&mut below!(self), key, service, command);
                }
                Effect::Examined(key) => {
                    self.topics.expire_subscriptions(&mut outlet!(self), key);
                    self.topics.note_silence(&mut outlet!(self), key);
                }
                Effect::DeviceEnded { key, why } => {
                    self.topics.end_device(&mut outlet!(self), key, why);
                }
                Effect::ChannelsEnded { session, channels } => {
                    self.topics.end_channels(&mut outlet!(self), session, *channels);
                }
                Effect::Lost(key) => self.topics.suspend_channels(&mut outlet!(self), key),
                Effect::Resumed(key) => {
                    self.topics.expire_commands(&mut outlet!(self));
                    self.topics.withdraw_expired(&mut outlet!(self), key);
                    self.topics.device_heard(&mut outlet!(self), key);
                    outlet!(self).await_subscriptions(key);
                }
                Effect::ResumeEnded(key) => self.topics.catch_up_channels(&mut outlet!(self), key),
                Effect::AwayTooLong(key) => outlet!(self).end_if_in_no_room(key),
            }
        }
    }

    /// Follows up every room that was called: the directory learns what changed, a room that wants
    /// a sync gets it, players of a room that ends get the last one and leave, and a room that
    /// ended is dropped. Then those who were refused get an error or another room. Connections that
    /// can't be kept are closed on the way, which calls rooms again.
    pub(in crate::shard) fn settle(&mut self) {
        loop {
            while let Some((connection, code, text)) = self.links.doomed.pop() {
                match code {
                    ErrorCode::TooFast => outlet!(self).close_too_fast(connection, &text),
                    _ => outlet!(self).fail(connection, code, &text),
                }
                self.apply_effects();
            }
            self.services.close_leaving(&mut below!(self));
            self.host.take_out_given_up(&mut below!(self));
            self.topics.deliver_device_mail(&mut outlet!(self));
            self.topics.deliver_user_mail(&mut outlet!(self));
            self.apply_effects();
            if let Some(key) = self.host.touched.pop() {
                self.host.settle_room(&mut below!(self), key);
                continue;
            }
            // Now that the directory knows of rooms that are ending or have ended, none is picked
            // again.
            let Some((connection, join, error)) = self.host.queues.refusals.pop_front() else {
                break;
            };
            outlet!(self).refused(connection, *join, error);
            self.apply_effects();
        }
    }
}

impl Shard {
    /// Mail from another shard, or from the background.
    pub(crate) fn mail(&mut self, mail: ShardMail) {
        // A room that was written must not answer: it may go on elsewhere as it was.
        if let Some(held) = self.held_mail.as_mut().filter(|_| mail.is_from_outside()) {
            return held.push(mail);
        }
        let payer = mail.payer();
        self.charge_for(payer, |shard| {
            shard.deliver_mail(mail);
            shard.apply_effects();
        });
    }

    /// Does something, which takes time that the payer gets less of. As long as no work waits,
    /// nobody is ahead of another.
    fn charge_for(&mut self, payer: Option<Host>, act: impl FnOnce(&mut Self)) {
        let Some(payer) = payer.filter(|_| !self.links.work.is_empty()) else { return act(self) };
        let began = self.env.stopwatch.read();
        act(self);
        self.links.work.charge(&payer, self.env.stopwatch.read().saturating_sub(began));
    }

    /// Does what rooms and sessions of another shard say, in this order.
    fn take_frames(&mut self, mut frames: &[u8]) {
        loop {
            match Frame::next(&mut frames) {
                Ok(Some(Frame::Session(stay, what))) => outlet!(self).hear(stay, what),
                Ok(Some(Frame::Member(seat, what))) => {
                    let payer = self.host.payer_elsewhere(&self.links.work, seat);
                    self.charge_for(payer, |shard| {
                        shard.host.heard(&mut below!(shard), seat, what);
                    });
                }
                Ok(None) => return,
                // The shards of a node are one program.
                Err(error) => return debug_assert!(false, "a frame of another shard: {error}"),
            }
            self.apply_effects();
        }
    }

    pub(in crate::shard) fn deliver_mail(&mut self, mail: ShardMail) {
        match mail {
            ShardMail::Join { joiner, join } => self.host.admit(&mut below!(self), *joiner, *join),
            ShardMail::Member(seat, what) => self.host.heard(&mut below!(self), seat, what),
            ShardMail::Refused { connection, join, error } => {
                outlet!(self).refused(connection, *join, error);
            }
            ShardMail::Sought { seek, sought } => outlet!(self).sought(*seek, sought),
            ShardMail::Claim { room, claim } => self.host.claim(&mut below!(self), room, claim),
            ShardMail::LeaseRenewed => self.host.lease_renewed(&mut below!(self)),
            ShardMail::SessionSought { connection, session, slot } => {
                outlet!(self).session_sought(connection, session, slot);
            }
            ShardMail::Frames(frames) => self.take_frames(&frames),
            ShardMail::Relieve(address) => drop(outlet!(self).relieve(Some(&address))),
            ShardMail::Found(founding) => self.host.found(&mut below!(self), *founding),
            ShardMail::Survey(survey) => self.host.survey(&mut below!(self), *survey),
            ShardMail::Search(search) => self.host.search(&mut below!(self), *search),
            ShardMail::Inspect(inspect) => self.host.inspect(&mut below!(self), *inspect),
            ShardMail::Capture(capturing) => self.host.capture(&mut below!(self), *capturing),
            ShardMail::TakeOut(of) => {
                let TakeOut { room, gives_up, answer } = *of;
                answer.answer(self.take_out(room, gives_up));
            }
            ShardMail::PutIn(of) => {
                let PutIn { parcel, answer } = *of;
                answer.answer(self.put_in(parcel));
            }
            ShardMail::Fork(forked) => self.host.fork(&mut below!(self), *forked),
            ShardMail::Operate(operate) => self.host.operate(&mut below!(self), *operate),
            ShardMail::Reserve { room, who, wait, answers } => {
                self.host.reserve_from_outside(&mut below!(self), room, who, wait, answers);
            }
            ShardMail::Post { to, mail } => self.host.mail_to_room(&mut below!(self), to, mail),
            ShardMail::Answered { service, ask, reply } => {
                self.services.answered(
                    &mut below!(self),
                    service,
                    Answered { id: AskId(ask), reply },
                );
            }
            ShardMail::Close { room, text } => self.host.close_room(&mut below!(self), room, &text),
            ShardMail::Authenticated { connection, decision, decided } => {
                outlet!(self).authenticated(connection, decision, *decided);
            }
            ShardMail::Channel(mail) => self.topics.channel_mail(&mut outlet!(self), *mail),
            ShardMail::Unsubscribe { channel, shard, session, live, leaves } => {
                self.topics.unsubscribe(
                    &mut outlet!(self),
                    channel,
                    (shard, session),
                    (live, leaves),
                );
            }
            ShardMail::Publication { channel, publication } => {
                self.topics.deliver_publication(&mut outlet!(self), channel, &publication);
            }
            ShardMail::Device(mail) => self.topics.device_mail(&mut outlet!(self), mail),
            ShardMail::User(mail) => self.topics.user_mail(&mut outlet!(self), mail),
            ShardMail::Finished { room, mail } => self.host.finished(&mut below!(self), room, mail),
            ShardMail::Held { room, held } => self.host.send_held(&mut below!(self), room, held),
            // A task that was dropped has no use for it.
            ShardMail::Begin(begin) => begin(),
            ShardMail::Create { shard, founding } => match shard == self.env.shard {
                true => self.host.found(&mut below!(self), *founding),
                false => self.outbound.post(shard, ShardMail::Found(founding)),
            },
            ShardMail::Answer { answers, answer } => self.env.node.asks.answer(answers, answer),
            ShardMail::Ended(room) => self.env.node.remove_room(room),
        }
    }
}
