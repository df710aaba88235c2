//! A JWKS over HTTP.

use std::time::Duration;

use ureq::Agent;

use crate::keys::KEYS_BYTES_MAX;

/// The maximum duration of a request.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Gets a body of at most [`KEYS_BYTES_MAX`] bytes.
pub(crate) fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(FETCH_TIMEOUT))
        // A redirect must not lead from HTTPS to HTTP.
        .https_only(url.starts_with("https:"))
        .max_redirects(3)
        .build()
        .into();
    let mut answer = agent.get(url).call().map_err(|error| error.to_string())?;
    let body = answer.body_mut().with_config().limit(KEYS_BYTES_MAX as u64);
    body.read_to_vec().map_err(|error| error.to_string())
}
