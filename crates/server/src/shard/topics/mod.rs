//! Channels and devices: what sessions take part in beside rooms.

pub(crate) mod channels;
pub(crate) mod devices;

use playfield_wire::ErrorCode;

use crate::shard::log_limit::LogLimit;
use crate::shard::mail::ShardMail;
use crate::shard::mail::user::UserMail;
use crate::shard::session::outlet::Outlet;
use crate::shard::topics::channels::ShardChannels;
use crate::shard::topics::devices::ShardDevices;

/// The channels and devices of a shard.
pub(in crate::shard) struct Topics {
    pub(in crate::shard) channels: ShardChannels,
    pub(in crate::shard) devices: ShardDevices,
    /// Why publications and pushes were refused.
    pub(in crate::shard) publications_logged: LogLimit<ErrorCode>,
    pub(in crate::shard) pushes_logged: LogLimit<ErrorCode>,
}

impl Topics {
    pub(in crate::shard) fn new(channels: ShardChannels) -> Self {
        Self {
            channels,
            devices: ShardDevices::default(),
            publications_logged: LogLimit::default(),
            pushes_logged: LogLimit::default(),
        }
    }

    /// Carries out what concerns users' sessions of this shard, and passes on the rest.
    pub(in crate::shard) fn deliver_user_mail(&mut self, out: &mut Outlet<'_>) {
        while let Some((shard, mail)) = out.sessions.user_posts.pop_front() {
            if shard == out.env.shard {
                self.user_mail(out, mail);
            } else {
                out.outbound.post(shard, ShardMail::User(mail));
            }
        }
    }

    pub(in crate::shard) fn user_mail(&mut self, out: &mut Outlet<'_>, mail: UserMail) {
        match mail {
            UserMail::End(place, end) => out.end_by_force(place, &end),
            UserMail::Open(place, user) => out.open_waiting(place, &user),
            UserMail::Recheck(place) => self.recheck_access(out, place),
            UserMail::Unsubscribe(what) => self.end_subscriptions_of(out, &what),
        }
    }
}
