//! What goes wrong where a verb calls a running server, and in which words it says so.

use serde_json::Value;

/// What names the caller's key.
pub(super) const KEY: &str = "STINT_KEY";

/// Why there is no answer of the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerCallError {
    #[error(
        "no server answers at {0}; start it with `stint serve`, name the configuration that it runs with by --config, or \
         give its address by --url"
    )]
    Unreachable(String, #[source] reqwest::Error),
    #[error("the answer broke off")]
    BrokenOff(#[source] reqwest::Error),
    #[error("the server wants a key: put yours into the environment variable {KEY}")]
    MissingKey,
    #[error("{0}")]
    Refused(String),
    #[error("the answer cannot be read; is {0} a stint of this version?")]
    InvalidResponse(String),
}

impl ServerCallError {
    /// What an answer says that is none of success.
    pub(super) fn of_answer(base: &str, status: u16, has_key: bool, text: &str) -> ServerCallError {
        let answer: Option<Value> = serde_json::from_str(text).ok();
        match answer.as_ref().and_then(|answer| answer["error"]["message"].as_str()) {
            Some(_) if status == 401 && !has_key => ServerCallError::MissingKey,
            Some(message) => ServerCallError::Refused(harmless(message)),
            None => ServerCallError::InvalidResponse(base.to_owned()),
        }
    }
}

/// Without the characters that steer terminals.
pub(super) fn harmless(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
