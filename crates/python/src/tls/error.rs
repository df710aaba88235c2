//! Errors of TLS as the exceptions of Python's `ssl`.

use pyo3::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::state::NO_LONGER_TLS;

/// The value of OpenSSL's `SSL_ERROR_SSL`.
const ERROR_SSL: i32 = 1;

/// The exception for an error, with the attributes that one of `ssl` has.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let made = match error {
        Error::InvalidCertificate(why) => invalid_certificate(py, why),
        _ => other(py, error),
    };
    made.map_or_else(|error| error, PyErr::from_value)
}

fn invalid_certificate<'py>(
    py: Python<'py>,
    why: &CertificateError,
) -> PyResult<Bound<'py, PyAny>> {
    let (code, message) = verification(why);
    let text = format!("certificate verify failed: {message}");
    let raised = raised(py, "SSLCertVerificationError", "CERTIFICATE_VERIFY_FAILED", &text)?;
    raised.setattr("verify_code", code)?;
    raised.setattr("verify_message", message)?;
    Ok(raised)
}

fn raised<'py>(
    py: Python<'py>,
    class: &str,
    reason: &str,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("ssl")?.getattr(class)?;
    let raised = class.call1((ERROR_SSL, format!("[SSL: {reason}] {text}")))?;
    raised.setattr("library", "SSL")?;
    raised.setattr("reason", reason)?;
    Ok(raised)
}

/// OpenSSL's number (`X509_V_ERR_…`) and words.
fn verification(why: &CertificateError) -> (i32, String) {
    use CertificateError as Why;
    match why {
        Why::BadSignature => (7, "certificate signature failure".into()),
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            (9, "certificate is not yet valid".into())
        }
        Why::Expired | Why::ExpiredContext { .. } => (10, "certificate has expired".into()),
        Why::UnknownIssuer => (20, "unable to get local issuer certificate".into()),
        Why::Revoked => (23, "certificate revoked".into()),
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            (26, "unsuitable certificate purpose".into())
        }
        Why::NotValidForNameContext { expected: ServerName::IpAddress(address), .. } => {
            let address = std::net::IpAddr::from(*address);
            let text =
                format!("IP address mismatch, certificate is not valid for '{address}': {why}");
            (64, text)
        }
        Why::NotValidForNameContext { expected, .. } => {
            let name = expected.to_str();
            (62, format!("Hostname mismatch, certificate is not valid for '{name}': {why}"))
        }
        Why::NotValidForName => (62, "Hostname mismatch".into()),
        _ => (1, why.to_string()),
    }
}

fn other<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let wants_openssl = "if it only has older TLS, give ssl=ssl.create_default_context()";
    let (reason, text) = match error {
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => ("WRONG_VERSION_NUMBER", "the server does not answer in TLS".into()),
        Error::DecryptError => (
            "DECRYPTION_FAILED_OR_BAD_RECORD_MAC",
            "decryption failed or bad record mac: what the server sent was changed on its way"
                .into(),
        ),
        Error::PeerIncompatible(why) => {
            ("UNSUPPORTED_PROTOCOL", format!("the server can't be used: {why:?}; {wants_openssl}"))
        }
        Error::AlertReceived(
            alert @ (AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion),
        ) => ("ALERT", format!("the server has refused TLS: {alert:?}; {wants_openssl}")),
        Error::AlertReceived(alert) => {
            ("ALERT", format!("the server has sent the alert {alert:?}"))
        }
        Error::General(text) if text == NO_LONGER_TLS => ("WRONG_VERSION_NUMBER", text.clone()),
        Error::General(text) => ("ERROR", text.clone()),
        _ => ("ERROR", error.to_string()),
    };
    raised(py, "SSLError", reason, &text)
}
