//! The settings of a client, until it is connected.

use std::time::Duration;

use playfield_client::poll::{self, QueueLimits};
use playfield_client::session::NODE_IDLE;

use crate::client::{ClientCell, PfClient};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle;
use crate::node::Link;
use crate::text::PfText;

/// A setting. Those up to 9 are text, for `pf_client_set_text`; the others are numbers, for
/// `pf_client_set_number`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PfOption {
    /// The player's display name. Default: empty.
    Name = 1,
    /// The token for the node's authenticator. Default: empty.
    Token = 2,
    /// A certificate, in PEM or DER, to trust instead of the system's. May be set more than once.
    RootCertificate = 4,
    /// 1: the program is asked for each token (`PF_EVENT_KIND_TOKEN_WANTED`). Default: 0.
    TokenWanted = 10,
    /// 1: over WebSocket, offers compression. Default: 0.
    Deflate = 11,
    /// The longest message accepted from the node, in bytes. Default: 16 MiB.
    MessageBytesMax = 12,
    /// The most events and changes of a room that wait. Default: 16384.
    EventsMax = 13,
    /// The most bytes of events that a room keeps past that number. Default: 1 MiB.
    EventBytesMax = 14,
    /// The time limit for connecting, in milliseconds. Default: 10,000.
    TimeoutMs = 15,
    /// How long to try to restore a lost connection, in milliseconds; 0 does not try. Default:
    /// 60,000.
    ReconnectTimeoutMs = 16,
    /// The wait before the first attempt to restore a connection, in milliseconds. Default: 100.
    BackoffFirstMs = 17,
    /// The longest wait between attempts, in milliseconds. Default: 5,000.
    BackoffMostMs = 18,
    /// The most bytes of events of a room, of a channel, or of commands to a device that wait,
    /// however few they are, if that is more than `PF_OPTION_EVENT_BYTES_MAX`. Default: 64 MiB.
    QueueBytesMax = 20,
    /// The time for which the connection to another node of a cluster outlasts the last room there,
    /// in milliseconds. Default: 10,000.
    NodeIdleMs = 21,
}

/// The settings of a client that is not connected yet.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) root_certificates: Vec<Vec<u8>>,
    pub(crate) connect: poll::Settings,
    kept: QueueLimits,
    stays: Duration,
}

impl Settings {
    pub(crate) fn new(url: &str) -> Self {
        let kept = QueueLimits {
            events_max: 1 << 14,
            event_bytes_max: 1 << 20,
            queue_bytes_max: 64 << 20,
        };
        let (url, root_certificates) = (url.to_owned(), Vec::new());
        let connect = poll::Settings { redirects: true, ..poll::Settings::default() };
        Self { url, root_certificates, connect, kept, stays: NODE_IDLE }
    }

    pub(crate) fn kept(&self) -> QueueLimits {
        self.kept
    }

    pub(crate) fn stays(&self) -> Duration {
        self.stays
    }
}

/// Changes a client's settings.
fn change(client: PfClient, with: impl FnOnce(&mut Settings) -> Outcome) -> Outcome {
    let cell = handle::find::<ClientCell>(client.id)?;
    let state = &mut *cell.lock();
    let Link::Setup(settings) = &mut state.node.link else {
        let text = "settings are made before pf_client_connect";
        return Err(Failure::new(PfCode::Usage, text));
    };
    with(settings)?;
    (state.kept, state.stays) = (settings.kept, settings.stays);
    Ok(())
}

fn unknown(option: u32, kind: &str) -> Failure {
    Failure::argument("the option", format_args!("{option} is not an option whose value is {kind}"))
}

/// Makes a setting that is text: a `pf_option` up to 9.
///
/// # Safety
/// `value` points to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_client_set_text(
    client: PfClient,
    option: u32,
    value: PfText,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let bytes = unsafe { value.bytes("the setting") }?;
        change(client, |settings| {
            let text = std::str::from_utf8(bytes);
            let text = text.map_err(|error| Failure::argument("the setting", error));
            let connect = &mut settings.connect;
            match option {
                option if option == PfOption::Name as u32 => text?.clone_into(&mut connect.name),
                option if option == PfOption::Token as u32 => connect.token = bytes.to_vec(),
                option if option == PfOption::RootCertificate as u32 => {
                    settings.root_certificates.push(bytes.to_vec());
                }
                option => return Err(unknown(option, "text")),
            }
            Ok(())
        })
    })
}

/// Makes a setting that is a number: a `pf_option` from 10.
#[unsafe(no_mangle)]
pub extern "C" fn pf_client_set_number(client: PfClient, option: u32, value: u64) -> PfCode {
    call(|| {
        change(client, |settings| {
            let size = usize::try_from(value).unwrap_or(usize::MAX);
            let time = Duration::from_millis(value);
            let Settings { connect, kept, stays, .. } = settings;
            match option {
                option if option == PfOption::TokenWanted as u32 => {
                    connect.asks_for_tokens = value != 0;
                }
                option if option == PfOption::BackoffFirstMs as u32 => {
                    connect.patience.backoff_first = time;
                }
                option if option == PfOption::BackoffMostMs as u32 => {
                    connect.patience.backoff_most = time;
                }
                option if option == PfOption::Deflate as u32 => connect.deflate = value != 0,
                option if option == PfOption::MessageBytesMax as u32 => {
                    connect.message_bytes_max = size;
                }
                option if option == PfOption::EventsMax as u32 => kept.events_max = size.max(1),
                option if option == PfOption::EventBytesMax as u32 => kept.event_bytes_max = size,
                option if option == PfOption::QueueBytesMax as u32 => kept.queue_bytes_max = size,
                option if option == PfOption::TimeoutMs as u32 => connect.patience.timeout = time,
                option if option == PfOption::ReconnectTimeoutMs as u32 => {
                    connect.patience.reconnect_timeout = time;
                }
                option if option == PfOption::NodeIdleMs as u32 => *stays = time,
                option => return Err(unknown(option, "a number")),
            }
            Ok(())
        })
    })
}
