//! Connections from proxies, which may begin with a header that names the client.

use super::layer::Tls;
use super::{Layer, Socket};
use crate::proxy::{Proxied, proxied};
use crate::shard::Shard;

/// The part of a header that has arrived, and the layer that follows it.
pub(crate) struct BehindProxy {
    came: Vec<u8>,
    then: Layer,
}

impl BehindProxy {
    /// Returns the memory it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.came.capacity()
    }
}

impl Layer {
    /// A layer after a PROXY header, if there is one.
    pub(super) fn behind_proxy(self) -> Self {
        Self::BehindProxy(Box::new(BehindProxy { came: Vec::new(), then: self }))
    }
}

impl Tls {
    /// Bytes came from a proxy that may not have named the client yet.
    pub(super) fn received_from_proxy(
        &mut self,
        socket: &mut Socket,
        shard: &mut Shard,
        input: &[u8],
    ) {
        let Layer::BehindProxy(behind) = &mut socket.layer else { return };
        behind.came.extend_from_slice(input);
        let header_bytes = match proxied(&behind.came) {
            Proxied::Partial => return,
            Proxied::Not => 0,
            Proxied::Malformed(why) => {
                return shard.by_outlet(|out| out.refuse_proxy(socket.key, why));
            }
            Proxied::Header { bytes, client } => {
                shard.by_outlet(|out| out.named_by_proxy(socket.key, client));
                bytes
            }
        };
        let Layer::BehindProxy(behind) = std::mem::replace(&mut socket.layer, Layer::Unknown)
        else {
            return;
        };
        let BehindProxy { mut came, then } = *behind;
        socket.layer = then;
        if came.len() > header_bytes {
            self.decode(socket, shard, &mut came[header_bytes..]);
        }
    }
}
