//! The token for the node's authenticator: one text, or a function that is called for each
//! connection.

use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

use crate::Error;

type Given = Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;
type Giving = Pin<Box<dyn Future<Output = Given> + Send>>;

#[derive(Clone)]
pub(super) enum Token {
    Text(Vec<u8>),
    By(Arc<dyn Fn() -> Giving + Send + Sync>),
}

impl Token {
    pub(super) fn by<F, G, T, E>(function: F) -> Self
    where
        F: Fn() -> G + Send + Sync + 'static,
        G: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<Vec<u8>>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self::By(Arc::new(move || {
            let giving = function();
            Box::pin(async move { giving.await.map(Into::into).map_err(Into::into) })
        }))
    }

    /// The token for the next connection. A function that panics, or takes longer than `limit`,
    /// has failed.
    pub(super) async fn give(&self, limit: Duration) -> Result<Vec<u8>, Error> {
        let function = match self {
            Self::Text(token) => return Ok(token.clone()),
            Self::By(function) => function,
        };
        let panicked = |_| -> Box<dyn StdError + Send + Sync> { "it panicked".into() };
        let given = async {
            let mut giving = catch_unwind(AssertUnwindSafe(|| function())).map_err(panicked)?;
            poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| giving.as_mut().poll(cx))) {
                Ok(poll) => poll,
                Err(panic) => Poll::Ready(Err(panicked(panic))),
            })
            .await
        };
        let late = || Err(format!("it gave none within {limit:?}").into());
        timeout(limit, given).await.unwrap_or_else(|_| late()).map_err(Error::no_token)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A token is a secret.
        f.write_str(match self {
            Self::Text(token) if token.is_empty() => "Text(empty)",
            Self::Text(_) => "Text(..)",
            Self::By(_) => "By(..)",
        })
    }
}
