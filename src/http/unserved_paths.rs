//! Paths that are not here: the answer to a path of another API names what to use here.

use axum::http::Uri;

use stint_types::units::nearest_within;

use super::error::{ApiError, codes};

/// What OpenAI and its likes have under `/v1` and this gateway has not.
const ELSEWHERE: [&str; 20] = [
    "assistants",
    "audio",
    "batches",
    "complete",
    "containers",
    "evals",
    "files",
    "fine_tuning",
    "images",
    "messages/batches",
    "moderations",
    "realtime",
    "rerank",
    "score",
    "skills",
    "threads",
    "uploads",
    "vector_stores",
    "videos",
    "organization",
];

/// What there is, for slips in it.
const HERE: [&str; 14] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/v1/models",
    "/v1/conversations",
    "/v1/plan",
    "/v1/allowance",
    "/v1/usage",
    "/v1/feedback",
];

/// So many letters are a slip.
const SLIPS_MAX: usize = 3;

/// 404, in words that help.
pub(super) fn not_served(uri: &Uri) -> ApiError {
    let rest = uri.path().strip_prefix("/v1/");
    let is_below = |family: &str| {
        let below = rest.and_then(|rest| rest.strip_prefix(family));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    match ELSEWHERE.iter().find(|family| is_below(family)) {
        Some(family) => ApiError::not_found(format!(
            "/v1/{family} is not served here: this gateway serves /v1/chat/completions, /v1/responses, /v1/messages, \
             /v1/completions and /v1/embeddings; send this request to its provider itself"
        ))
        .with_code(codes::ENDPOINT_NOT_SERVED),
        None if uri.path().starts_with("/v1/v1/") => {
            ApiError::not_found("there is no such path: /v1 is there twice, so leave it out of the base URL")
        }
        None => elsewhere(uri.path()),
    }
}

/// A path that is like one of ours, with `/v1` or without, is answered with that one.
fn elsewhere(path: &str) -> ApiError {
    let ours = path.trim_end_matches('/');
    let with_version = format!("/v1{ours}");
    let slip =
        || nearest_within(ours, HERE, SLIPS_MAX).or_else(|| nearest_within(&with_version, HERE, SLIPS_MAX));
    match related(ours).or_else(slip) {
        Some(meant) => ApiError::not_found(format!("there is no such path; did you mean {meant}?")),
        None if path.starts_with("/v1beta/") => ApiError::not_found(
            "there is no such path: Gemini's own API is not served here; send its models' requests to /v1/chat/completions",
        ),
        None => ApiError::unknown_path(),
    }
}

/// The path of ours that a longer one ends with, as others have it behind names of models; that a longer one begins with; or that
/// begins with a shorter one. Of several the longest.
fn related(path: &str) -> Option<&'static str> {
    let is_below = |path: &str, of: &str| path.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'));
    let ends = |ours: &&&str| ours.strip_prefix("/v1").is_some_and(|ours| path.ends_with(ours));
    let begins = |ours: &&&str| is_below(path, ours);
    let continues = |ours: &&&str| path.len() > "/v1".len() && is_below(ours, path);
    let longest =
        |related: &dyn Fn(&&&str) -> bool| HERE.iter().filter(related).max_by_key(|ours| ours.len());
    longest(&ends).or_else(|| longest(&begins)).or_else(|| longest(&continues)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, code: &str, words: &str) {
        let error = not_served(&path.parse().unwrap()).to_json()["error"].take();
        assert_eq!(error["code"], code, "{path}");
        assert!(error["message"].as_str().unwrap().contains(words), "{path}: {error}");
    }

    #[test]
    fn an_endpoint_of_another_api_is_told_what_is_served() {
        check("/v1/audio/speech", "endpoint_not_served", "/v1/audio is not served here");
        check("/v1/images/generations", "endpoint_not_served", "/v1/chat/completions");
        check("/v1/batches", "endpoint_not_served", "/v1/embeddings");
        check("/v1/messages/batches", "endpoint_not_served", "/v1/messages/batches is not served");
        check("/v1/messages/batches/b_1/results", "endpoint_not_served", "/v1/messages");
        check("/v1/nothing", "not_found", "under /v1");
        check("/v1/chat/completion", "not_found", "did you mean /v1/chat/completions?");
        check("/v1/chat/completions/", "not_found", "did you mean /v1/chat/completions?");
        check("/chat/completions", "not_found", "did you mean /v1/chat/completions?");
        check("/v1/chat", "not_found", "did you mean /v1/chat/completions?");
        check("/api/v1/chat/completions", "not_found", "did you mean /v1/chat/completions?");
        check("/openai/deployments/gpt-5/embeddings", "not_found", "did you mean /v1/embeddings?");
        check("/v1/models/m/permissions", "not_found", "did you mean /v1/models?");
        check("/v1beta/models/m:generateContent", "not_found", "Gemini's own API");
        check("/audio", "not_found", "under /v1");
        check("/v1/v1/chat/completions", "not_found", "twice");
    }
}
