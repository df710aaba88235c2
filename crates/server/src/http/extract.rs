//! The node's handle, as handlers take it.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::handle::NodeHandle;

/// A handler of [`Server::http`](crate::Server::http) or [`Server::route`](crate::Server::route)
/// takes the handle as an argument.
///
/// A router that a node does not serve has none: the request is answered with 500.
impl<S: Sync> FromRequestParts<S> for NodeHandle {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let none = (StatusCode::INTERNAL_SERVER_ERROR, "no node serves this handler\n");
        parts.extensions.get::<Self>().cloned().ok_or(none)
    }
}
