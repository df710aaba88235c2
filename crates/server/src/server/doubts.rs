//! Warnings about what a node is started with: allowed, but hardly meant.

use crate::config::{Config, Descriptors};
use crate::sys;

/// The number of open files that a node needs beside its connections, roughly.
const DESCRIPTORS_RESERVED: u64 = 64;

/// A warning if the system allows fewer open files than `limits.connections.total` needs.
/// The system sets no limit if `descriptors` is `None`.
fn too_few(descriptors: Option<u64>, tables: u64, connections_max: usize) -> Option<String> {
    let descriptors = descriptors?;
    let connections = descriptors.saturating_sub(DESCRIPTORS_RESERVED).saturating_mul(tables);
    (connections < connections_max as u64).then(|| {
        let whom = if tables > 1 { "each shard" } else { "this process" };
        format!(
            "limits.connections.total = {connections_max}: the system allows {whom} {descriptors} \
             open files, which is enough for {connections} connections; raise the hard limit \
             (ulimit -Hn, LimitNOFILE in systemd), give each shard its own table \
             (threads.descriptors = per_shard), or lower limits.connections.total"
        )
    })
}

/// A warning if anyone may name the address of a client.
pub(super) fn trusts_everyone(config: &Config) -> Option<String> {
    let network = config.trusted_proxies.iter().find(|network| network.is_all())?;
    Some(format!(
        "trusted_proxies has {network}: any client may say that it has another address, and pass \
         all limits by address; name the addresses of your proxies only"
    ))
}

/// Raises the limit of open files, and says so if that is still too few.
pub(super) fn raise_descriptors(config: &Config, shards: usize) {
    let descriptors = match sys::raise_descriptors() {
        Ok(descriptors) => descriptors,
        Err(error) => return log::warn!("the limit of open files can't be raised: {error}"),
    };
    let tables = match config.threads.descriptors {
        Descriptors::Shared => 1,
        Descriptors::PerShard => shards as u64,
    };
    if let Some(text) = too_few(descriptors, tables, config.limits.connections.total) {
        // Few who did not set it need as many connections.
        let is_default =
            config.limits.connections.total == Config::default().limits.connections.total;
        let level = if is_default { log::Level::Info } else { log::Level::Warn };
        log::log!(level, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::{too_few, trusts_everyone};
    use crate::config::Config;

    #[test]
    fn a_node_that_trusts_everyone_as_a_proxy_says_so() {
        let doubt = |networks: &str| {
            let mut config = Config::default();
            config.set("trusted_proxies", networks).unwrap();
            trusts_everyone(&config)
        };
        for networks in ["", "10.0.0.0/8", "0.0.0.0/1,2001:db8::/32"] {
            assert_eq!(doubt(networks), None, "{networks}");
        }
        for (networks, named) in [("10.0.0.1,0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0")] {
            let text = doubt(networks).unwrap();
            assert!(text.starts_with(&format!("trusted_proxies has {named}: ")), "{text}");
        }
    }

    #[test]
    fn a_limit_of_descriptors_below_connections_max_is_said() {
        assert_eq!(too_few(None, 1, 100_000), None);
        assert_eq!(too_few(Some(100_064), 1, 100_000), None);
        assert_eq!(too_few(Some(10_064), 10, 100_000), None);
        assert!(too_few(Some(10_064), 9, 100_000).is_some());
        let text = too_few(Some(1024), 1, 1000).unwrap();
        assert!(
            text.starts_with("limits.connections.total = 1000: ") && text.contains(" 960 conn"),
            "{text}"
        );
    }
}
