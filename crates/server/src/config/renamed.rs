//! Names that settings had, so that an old file or script gets an answer.

use super::{duration, find};

/// The earlier name of each setting, and the name of the setting, or of the part, that took its
/// place. Names that begin with `tuning.` are fields of [`Tuning`](super::Tuning).
#[rustfmt::skip]
const RENAMED: &[(&str, &str)] = &[
    ("pin_cores", "threads.pin_cores"),
    ("descriptors", "threads.descriptors"),
    ("tls_cert", "tls.cert"),
    ("tls_key", "tls.key"),
    ("tls_reload_ms", "tuning.tls_reload"),
    ("tls_self_signed", "tls.self_signed"),
    ("tls_only", "tls.only"),
    ("max_message_bytes", "limits.message_bytes"),
    ("http_head_bytes_max", "http.head_bytes"),
    ("http_body_bytes_max", "http.body_bytes"),
    ("http_request_timeout_ms", "http.request_timeout"),
    ("http_answer_timeout_ms", "http.answer_timeout"),
    ("http_idle_timeout_ms", "http.idle_timeout"),
    ("http_requests_max", "http.requests.total"),
    ("http_requests_per_address_max", "http.requests.per_address"),
    ("allowed_origins", "websocket.allowed_origins"),
    ("websocket_deflate", "websocket.deflate"),
    ("websocket_deflate_bytes_min", "tuning.deflate_bytes_min"),
    ("hello_timeout_ms", "timeouts.hello"),
    ("hello_bytes_max", "tuning.hello_bytes"),
    ("message_timeout_ms", "timeouts.message"),
    ("authentications_max", "limits.queues.authentications"),
    ("heartbeat_ms", "timeouts.heartbeat"),
    ("session_grace_ms", "timeouts.reconnect"),
    ("resumes_per_minute_max", "tuning.resumes"),
    ("resume_bytes_max", "limits.session.resume_bytes"),
    ("sessions_away_max", "limits.sessions_away.total"),
    ("sessions_away_per_address_max", "limits.sessions_away.per_address"),
    ("outbox_bytes_max", "limits.session.outbox_bytes.max"),
    ("outbox_high_bytes", "limits.session.outbox_bytes.high"),
    ("connections_max", "limits.connections.total"),
    ("connections_per_address_max", "limits.connections.per_address"),
    ("handshakes_max", "limits.handshakes.total"),
    ("handshakes_per_address_max", "limits.handshakes.per_address"),
    ("sessions_per_address_per_minute_max", "limits.address.sessions.per_minute"),
    ("resumes_per_address_per_minute_max", "limits.address.resumes.per_minute"),
    ("joins_per_address_per_minute_max", "limits.address.joins.per_minute"),
    ("rooms_created_per_address_per_minute_max", "limits.address.rooms_created.per_minute"),
    ("keys_missed_per_address_per_minute_max", "limits.address.keys_missed.per_minute"),
    ("channels_per_address_max", "limits.channels.per_address"),
    ("channel_history_bytes_per_address_max", "limits.history_bytes.per_address"),
    ("channels_opened_per_address_per_minute_max", "limits.address.channels_opened.per_minute"),
    ("ipv6_prefix_bits", "limits.address.ipv6_prefix_bits"),
    ("trusted_addresses", "limits.address.trusted"),
    ("addresses_max", "tuning.addresses"),
    ("peer_bytes_max", "limits.memory.total"),
    ("peer_bytes_per_address_max", "limits.memory.per_address"),
    ("messages_per_second_max", "limits.session.messages.per_second"),
    ("messages_burst_max", "limits.session.messages.burst"),
    ("bytes_per_second_max", "limits.session.bytes.per_second"),
    ("bytes_burst_max", "limits.session.bytes.burst"),
    ("rate_multiple_max", "tuning.rate_multiple"),
    ("rooms_max", "limits.rooms"),
    ("lateness_max_ms", "rooms.lateness"),
    ("busy_max_percent", "rooms.busy_percent"),
    ("rooms_per_session_max", "limits.session.rooms"),
    ("rooms_created_per_minute_max", "limits.session.rooms_created.per_minute"),
    ("keys_missed_per_minute_max", "limits.session.keys_missed.per_minute"),
    ("requests_unanswered_max", "limits.session.requests"),
    ("name_bytes_max", "limits.name_bytes.player"),
    ("list_max", "limits.listed.rooms"),
    ("lists_per_second_max", "tuning.lists"),
    ("schemas_per_second_max", "tuning.schemas"),
    ("resyncs_per_second_max", "limits.session.snapshots.per_second"),
    ("channels_max", "limits.channels.total"),
    ("channel_linger_ms", "timeouts.channel"),
    ("channel_name_bytes_max", "limits.name_bytes.channel"),
    ("channel_history_bytes_max", "limits.history_bytes.total"),
    ("publication_bytes_max", "limits.payload_bytes"),
    ("publishes_per_second_max", "limits.session.publishes.per_second"),
    ("channels_opened_per_minute_max", "limits.session.channels_opened.per_minute"),
    ("subscriptions_per_session_max", "limits.session.subscriptions"),
    ("subscribes_per_second_max", "tuning.subscribes"),
    ("channel_reads_per_second_max", "tuning.channel_reads"),
    ("members_listed_max", "limits.listed.members"),
    ("history_listed_max", "limits.listed.publications"),
    ("history_listed_bytes_max", "tuning.history_listed_bytes"),
    ("devices_max", "limits.devices"),
    ("device_tags_max", "limits.device.tags"),
    ("device_metadata_bytes_max", "limits.device.metadata_bytes"),
    ("device_id_bytes_max", "limits.name_bytes.device"),
    ("device_take_overs_per_minute_max", "tuning.take_overs_per_minute"),
    ("command_bytes_max", "limits.payload_bytes"),
    ("commands_unanswered_max", "limits.device.commands"),
    ("mailbox_max", "limits.queues.mail"),
    ("asks_max", "limits.queues.asks"),
    ("ask_timeout_ms", "timeouts.ask"),
    ("check_every_syncs", "rooms.check_every_syncs"),
    ("catch_up_ticks_max", "tuning.catch_up_ticks"),
    ("compute_threads", "threads.compute"),
    ("compute_queue_max", "limits.queues.computations"),
    ("tasks_max", "limits.queues.tasks"),
    ("close_timeout_ms", "timeouts.close"),
    ("shutdown_timeout_ms", "timeouts.shutdown"),
    ("watchdog_ms", "timeouts.watchdog"),
];

/// Says what took the place of an old setting, if this is one. `shown` says how the user would
/// write a name. Dashes equal underscores.
#[must_use]
pub fn renamed(old: &str, shown: impl FnOnce(&str) -> String) -> Option<String> {
    let old = old.replace('-', "_");
    let (_, new) = RENAMED.iter().find(|(name, _)| *name == old)?;
    if let Some(field) = new.strip_prefix("tuning.") {
        return Some(format!(
            "this is no setting any more: its default fits every node, and a program can change \
             it by `Config::tuning.{field}`"
        ));
    }
    let (setting, _) = find(new)?;
    let what = match duration::read(setting.default) {
        Ok(_) => format!(", a duration such as {:?}", setting.default),
        Err(_) => String::new(),
    };
    Some(format!("this is now `{}`{what}", shown(new)))
}

#[cfg(test)]
mod tests {
    use super::{RENAMED, renamed};
    use crate::config::find;

    #[test]
    fn every_old_name_leads_to_a_setting_or_to_a_field() {
        for (old, new) in RENAMED {
            assert!(find(old).is_none(), "{old}");
            let said = renamed(old, str::to_owned).unwrap();
            assert!(new.starts_with("tuning.") || said.contains(new), "{old}: {said}");
        }
    }

    #[test]
    fn an_old_name_is_answered_with_the_new_one() {
        let said = |old| renamed(old, |new| format!("--{new}")).unwrap();
        assert_eq!(
            said("hello-timeout-ms"),
            "this is now `--timeouts.hello`, a duration such as \"10s\""
        );
        assert_eq!(said("rooms_max"), "this is now `--limits.rooms`");
        assert!(said("lists_per_second_max").ends_with("by `Config::tuning.lists`"));
    }
}
