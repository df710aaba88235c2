//! The settings of a client, until it is connected.

use std::sync::Arc;
use std::time::Duration;

use playfield_client::{Connect, Format, connect};

use crate::client::{ClientCell, Link, PfClient, Shared, lock};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle;
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
    /// `packed`, `msgpack` or `json`. Default: `packed`.
    Format = 3,
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
    ReconnectForMs = 16,
    /// The wait before the first attempt to restore a connection, in milliseconds. Default: 100.
    BackoffFirstMs = 17,
    /// The longest wait between attempts, in milliseconds. Default: 5,000.
    BackoffMostMs = 18,
    /// The most commands in the queue to the connection. Default: 1024.
    CommandsMax = 19,
    /// The most bytes of events of a room, of a channel, or of commands to a device that wait,
    /// however few they are, if that is more than `PF_OPTION_EVENT_BYTES_MAX`. Default: 64 MiB.
    QueueBytesMax = 20,
}

/// What a client will connect with.
pub(crate) struct Settings {
    connect: Connect,
    is_token_wanted: bool,
    backoff: (Duration, Duration),
}

impl Settings {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            connect: connect(url).events_max(1 << 14).keeps_order(true),
            is_token_wanted: false,
            backoff: (Duration::from_millis(100), Duration::from_secs(5)),
        }
    }

    pub(crate) fn connect(self, shared: &Arc<Shared>) -> Connect {
        let connect = self.connect.backoff(self.backoff.0, self.backoff.1);
        if !self.is_token_wanted {
            return connect;
        }
        let shared = Arc::downgrade(shared);
        connect.token_by(move || {
            let given = shared.upgrade().map(|shared| shared.want_token());
            async move {
                match given {
                    Some(given) => given.await.map_err(|_| "the program gave none"),
                    None => Err("the client was freed"),
                }
            }
        })
    }
}

/// Changes a client's settings.
fn change(client: PfClient, with: impl FnOnce(&mut Settings) -> Outcome) -> Outcome {
    let cell = handle::find::<ClientCell>(client.id)?;
    let mut link = lock(&cell.shared.link);
    let Link::Setup(settings) = &mut *link else {
        let text = "settings are made before pf_client_connect";
        return Err(Failure::new(PfCode::Usage, text));
    };
    with(settings)
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
            let connect = settings.connect.clone();
            settings.connect = match option {
                option if option == PfOption::Name as u32 => connect.name(text?),
                option if option == PfOption::Token as u32 => connect.token(bytes),
                option if option == PfOption::RootCertificate as u32 => {
                    connect.root_certificate(bytes)
                }
                option if option == PfOption::Format as u32 => connect.format(match text? {
                    "packed" => Format::Packed,
                    "msgpack" => Format::Msgpack,
                    "json" => Format::Json,
                    other => {
                        let why = format!("{other:?} is not packed, msgpack or json");
                        return Err(Failure::argument("the format", why));
                    }
                }),
                option => return Err(unknown(option, "text")),
            };
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
            let connect = settings.connect.clone();
            settings.connect = match option {
                option if option == PfOption::TokenWanted as u32 => {
                    settings.is_token_wanted = value != 0;
                    connect
                }
                option if option == PfOption::BackoffFirstMs as u32 => {
                    settings.backoff.0 = time;
                    connect
                }
                option if option == PfOption::BackoffMostMs as u32 => {
                    settings.backoff.1 = time;
                    connect
                }
                option if option == PfOption::Deflate as u32 => connect.deflate(value != 0),
                option if option == PfOption::MessageBytesMax as u32 => {
                    connect.message_bytes_max(size)
                }
                option if option == PfOption::EventsMax as u32 => connect.events_max(size),
                option if option == PfOption::EventBytesMax as u32 => connect.event_bytes_max(size),
                option if option == PfOption::QueueBytesMax as u32 => connect.queue_bytes_max(size),
                option if option == PfOption::TimeoutMs as u32 => connect.timeout(time),
                option if option == PfOption::ReconnectForMs as u32 => connect.reconnect_for(time),
                option if option == PfOption::CommandsMax as u32 => {
                    // The queue's own limit.
                    connect.commands_max(size.min(1 << 20))
                }
                option => return Err(unknown(option, "a number")),
            };
            Ok(())
        })
    })
}
