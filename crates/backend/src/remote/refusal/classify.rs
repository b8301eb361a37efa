//! Classifies an upstream's error: whose fault it is, and whether a retry can help.

use crate::{Failure, Fault, REQUEST_TOO_LARGE, Retry};

use super::upstream_error::UpstreamError;

impl UpstreamError {
    /// What is meant by saying so under a status; `message` is how our own words begin.
    pub(super) fn into_failure(self, status: u16, message: &str) -> Failure {
        let failure = |fault, why: &str| Failure::new(fault, format!("{message}{why}"));
        let refused = |fault, why| failure(fault, why).unsent();
        match status {
            // It is refused however long the caller waits. Another target may have a larger limit.
            400 | 413 | 429 if let Some(excess) = self.rate_excess() => {
                let failure = Failure::new(Fault::Caller, excess.message()).unsent().code(REQUEST_TOO_LARGE);
                Failure { retry: Retry::Elsewhere, ..failure }
            }
            // The page of a proxy before the model's server, which takes bodies up to a size alone (nginx: 1 MB).
            413 if self.message.is_none() && !self.is_context_overflow() => {
                let what = "the body is larger than what the model's server takes: shorten the request, above all its images and files, \
                            or name another model";
                let failure = Failure::new(Fault::Caller, what).unsent().code(REQUEST_TOO_LARGE);
                Failure { retry: Retry::Elsewhere, ..failure }
            }
            // xAI refuses what the caller wrote as if the key had no permission. It must not cost others the model.
            403 if self.is_unpermitted_content() => self.refusal(&refused),
            // Some upstreams say 400 to a bad key, and 429 to an empty account.
            400..=499 if self.is_account_error() => {
                refused(Fault::Credential, ": it refuses our key or our account")
            }
            403 if self.is_content_refusal() => self.refusal(&refused),
            402 => refused(Fault::Credential, ": our account there has too little money"),
            401..=403 => refused(Fault::Credential, ""),
            429 => refused(Fault::Overload, ""),
            529 => failure(Fault::Overload, ""),
            // Google says that of a model that has no room.
            503 if self.words.contains("UNAVAILABLE") => failure(Fault::Overload, ""),
            408 => failure(Fault::Timeout, ""),
            // Something else held it up for a moment, the official SDKs take it.
            409 => refused(Fault::Backend, ""),
            400 | 422 if !self.is_content_refusal() => self.refusal(&refused).allow_retry_elsewhere(),
            400 | 413 | 422 => self.refusal(&refused),
            300..=499 => refused(Fault::Backend, "").retry_elsewhere(),
            _ => failure(Fault::Backend, ""),
        }
    }

    /// Something is wrong with the request.
    fn refusal(self, refused: &impl Fn(Fault, &'static str) -> Failure) -> Failure {
        let (context, model) = (self.is_context_overflow(), self.is_unknown_model());
        let upstream_code = self.stated.map(Box::new);
        match self.message {
            told if context => {
                let failure = refused(Fault::Caller, ": the prompt is too long");
                let upstream_message = told.map(String::into_boxed_str);
                Failure { upstream_message, upstream_code, ..failure.code("context_length_exceeded") }
            }
            _ if model => refused(Fault::Backend, ": it does not know the model").retry_elsewhere(),
            Some(words) => {
                let failure = refused(Fault::Caller, ": it refuses the request").with_upstream_message(words);
                Failure { upstream_code, ..failure }
            }
            // Whose fault it was is not known; that it is refused everywhere is likely.
            None => Failure { retry: Retry::Never, ..refused(Fault::Backend, "") },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::HeaderMap;

    use crate::remote::refusal::of_status;
    use crate::{Failure, Fault, REQUEST_TOO_LARGE, Retry};

    const MOST: Duration = Duration::from_secs(60);

    fn check(status: u16, body: &str, fault: Fault, message: &str) -> Failure {
        let failure = of_status(status, &HeaderMap::new(), body.as_bytes(), MOST);
        assert_eq!((failure.fault, failure.for_caller()), (fault, message), "{status} {body}");
        failure
    }

    #[test]
    fn a_request_that_is_wrong_is_the_callers_fault_in_the_upstreams_words() {
        let body = r#"{"error":{"message":"'tools' must not be empty","type":"invalid_request_error"}}"#;
        assert!(check(400, body, Fault::Caller, "'tools' must not be empty").unsent);
        check(422, r#"{"detail":"temperature too high"}"#, Fault::Caller, "temperature too high");
        check(403, r#"{"error":"Input flagged: violence"}"#, Fault::Caller, "Input flagged: violence");
        let words = "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO";
        for code in ["permission-denied", "The caller does not have permission to execute the operation"] {
            let body = serde_json::json!({ "code": code, "error": words }).to_string();
            assert_eq!(check(403, &body, Fault::Caller, words).retry, Retry::Never);
        }
    }

    #[test]
    fn a_refusal_keeps_the_upstreams_code_and_the_member_that_it_names() {
        let check = |error: serde_json::Value, code: Option<&str>, param: Option<&str>| {
            let body = serde_json::json!({ "error": error }).to_string();
            let failure = of_status(400, &HeaderMap::new(), body.as_bytes(), MOST);
            let stated = failure.upstream_code.map(|stated| *stated).unwrap_or_default();
            assert_eq!((stated.code.as_deref(), stated.param.as_deref()), (code, param), "{body}");
        };
        let of = |code: &str, param: &str| serde_json::json!({"message": "no", "code": code, "param": param});
        check(of("content_filter", "prompt"), Some("content_filter"), Some("prompt"));
        check(
            of("invalid_function_parameters", "tools[0].function"),
            Some("invalid_function_parameters"),
            Some("tools[0].function"),
        );
        check(of("Your diary, in full", "my diary"), None, None);
        check(of(&"x".repeat(65), &"x".repeat(129)), None, None);
        check(serde_json::json!({"message": "no", "code": 400, "param": null}), None, None);
    }

    #[test]
    fn an_error_in_a_list_is_read_as_it_is_without() {
        let of = |code: u16, message: &str, status: &str| {
            let error = serde_json::json!({"code": code, "message": message, "status": status});
            serde_json::json!([{ "error": error }]).to_string()
        };
        let wrong = of(400, "no such parameter", "INVALID_ARGUMENT");
        check(400, &wrong, Fault::Caller, "no such parameter");
        let long = of(400, "The input token count (9) exceeds the maximum (8)", "INVALID_ARGUMENT");
        let told = "The input token count (9) exceeds the maximum (8)";
        assert_eq!(check(400, &long, Fault::Caller, told).code, Some("context_length_exceeded"));
        let key = of(400, "API key not valid", "INVALID_ARGUMENT");
        check(400, &key, Fault::Credential, "the upstream answered 400: it refuses our key or our account");
        check(400, "[]", Fault::Backend, "the upstream answered 400");
    }

    #[test]
    fn a_body_that_a_proxy_finds_too_large_is_told_as_that() {
        let page = "<html><head><title>413 Request Entity Too Large</title></head></html>";
        let failure = of_status(413, &HeaderMap::new(), page.as_bytes(), MOST);
        assert_eq!((failure.fault, failure.code), (Fault::Caller, Some(REQUEST_TOO_LARGE)));
        assert!(failure.unsent && failure.retry == Retry::Elsewhere && failure.allows_another_attempt());
        assert!(failure.for_caller().starts_with("the body is larger than what the model's server takes"));
        let without_words = br#"{"error":{"code":"context_length_exceeded"}}"#;
        let failure = of_status(413, &HeaderMap::new(), without_words, MOST);
        assert_eq!((failure.code, failure.retry), (Some("context_length_exceeded"), Retry::Never));
    }

    #[test]
    fn a_refusal_without_words_is_not_blamed_on_the_caller() {
        check(400, "<html>no</html>", Fault::Backend, "the upstream answered 400");
        check(404, r#"{"error":{"message":"no such route"}}"#, Fault::Backend, "the upstream answered 404");
        let body = r#"{"error":{"message":"who?","code":"model_not_found"}}"#;
        check(400, body, Fault::Backend, "the upstream answered 400: it does not know the model");
        check(307, "", Fault::Backend, "the upstream answered 307");
    }

    #[test]
    fn a_refused_key_or_an_empty_account_is_ours() {
        check(401, "", Fault::Credential, "the upstream answered 401");
        let message = "the upstream answered 402: our account there has too little money";
        check(402, r#"{"error":{"message":"Insufficient Balance"}}"#, Fault::Credential, message);
        check(403, r#"{"error":"no"}"#, Fault::Credential, "the upstream answered 403");
        let flagged = "Your account was flagged: see our content policy";
        let body =
            serde_json::json!({ "error": { "message": flagged, "type": "permission_error" } }).to_string();
        check(403, &body, Fault::Credential, "the upstream answered 403: it refuses our key or our account");
        let body = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
        let message = "the upstream answered 429: it refuses our key or our account";
        check(429, body, Fault::Credential, message);
        let body = r#"{"error":"Incorrect API key provided: sk-123. See https://x.ai/keys"}"#;
        check(400, body, Fault::Credential, &message.replace("429", "400"));
        let body = r#"{"error":"API key not valid. Please pass a valid API key."}"#;
        check(400, body, Fault::Credential, &message.replace("429", "400"));
        let quoted = "there is no tool 'incorrect api key'";
        check(400, &format!(r#"{{"error":"{quoted}"}}"#), Fault::Caller, quoted);
    }

    #[test]
    fn an_upstreams_words_are_for_the_caller_and_not_for_the_log() {
        let body = r#"{"error":{"message":"cannot read 'my diary' at https://x.ai/1 with sk-123"}}"#;
        let failure = check(400, body, Fault::Caller, "cannot read 'my diary' at … with …");
        assert_eq!(failure.to_string(), "the upstream answered 400: it refuses the request");
        assert!(!format!("{failure:?}").contains("diary"));
    }

    #[test]
    fn a_prompt_that_is_too_long_has_its_own_code() {
        let body = r#"{"error":{"code":400,"message":"request (90 tokens) exceeds the available context size",
            "type":"exceed_context_size_error","n_prompt_tokens":90,"n_ctx":64}}"#;
        let message = "request (90 tokens) exceeds the available context size";
        assert_eq!(check(400, body, Fault::Caller, message).code, Some("context_length_exceeded"));
    }

    /// Agents shorten their conversation by this code, and no other target is asked in vain.
    #[test]
    fn every_providers_words_for_a_prompt_that_is_too_long_are_known() {
        for message in [
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 310000)",
            "invalid params, context window exceeds limit (2013)",
            "Input is too long for requested model.",
            "The input (1492905 tokens) is longer than the model's context length (1048576 tokens).",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            "The number of tokens to keep from the initial prompt is greater than the context length.",
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            "Prompt exceeds max length",
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            let failure = check(400, &body, Fault::Caller, message);
            assert_eq!((failure.code, failure.retry), (Some("context_length_exceeded"), Retry::Never));
        }
    }

    #[test]
    fn no_room_and_a_broken_upstream_are_told_apart() {
        for (status, fault) in
            [(429, Fault::Overload), (529, Fault::Overload), (500, Fault::Backend), (503, Fault::Backend)]
        {
            assert!(check(status, "", fault, &format!("the upstream answered {status}")).unsent, "{status}");
        }
        let timed_out = check(504, "", Fault::Backend, "the upstream answered 504");
        assert!(!timed_out.unsent, "a model may have been at work");
    }

    #[test]
    fn what_may_pass_by_itself_is_told_from_what_another_target_may_do_and_from_what_nobody_will() {
        let check = |statuses: &[u16], body: &str, expected: Retry| {
            for status in statuses {
                let failure = of_status(*status, &HeaderMap::new(), body.as_bytes(), MOST);
                assert_eq!(failure.retry, expected, "{status} {body}");
            }
        };
        check(&[408, 409, 429, 500, 502, 503, 504, 529], "", Retry::Again);
        check(&[307, 401, 402, 403, 404, 410, 451], "", Retry::Elsewhere);
        check(&[429], r#"{"error":{"code":"insufficient_quota"}}"#, Retry::Elsewhere);
        check(&[400], r#"{"error":{"code":"model_not_found"}}"#, Retry::Elsewhere);
        check(&[400, 422], r#"{"error":"no such word"}"#, Retry::Elsewhere);
        check(&[413], r#"{"error":"no such word"}"#, Retry::Never);
        check(&[400], r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#, Retry::Never);
        check(&[400], r#"{"error":{"message":"Your input was flagged by moderation"}}"#, Retry::Never);
        check(&[400, 422], "", Retry::Never);
        check(&[403], r#"{"error":{"message":"Your input was flagged by moderation"}}"#, Retry::Never);
    }

    #[test]
    fn anthropics_and_googles_refusals_are_understood() {
        let of = |kind: &str, said: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{said}"}}}}"#)
        };
        let low = of("invalid_request_error", "Your credit balance is too low to access the API");
        check(400, &low, Fault::Credential, "the upstream answered 400: it refuses our key or our account");
        check(
            402,
            &of("billing_error", "x"),
            Fault::Credential,
            "the upstream answered 402: it refuses our key or our account",
        );
        check(529, &of("overloaded_error", "Overloaded"), Fault::Overload, "the upstream answered 529");
        let long = "input length and `max_tokens` exceed context limit: 9 + 2 > 10";
        let failure = check(400, &of("invalid_request_error", long), Fault::Caller, long);
        assert_eq!(failure.code, Some("context_length_exceeded"));

        let of = |code: u16, status: &str, said: &str| {
            format!(r#"{{"error":{{"code":{code},"status":"{status}","message":"{said}"}}}}"#)
        };
        let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
        let failure = check(400, &of(400, "INVALID_ARGUMENT", long), Fault::Caller, long);
        assert_eq!(failure.code, Some("context_length_exceeded"));
        let key = of(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.");
        check(400, &key, Fault::Credential, "the upstream answered 400: it refuses our key or our account");
        check(429, &of(429, "RESOURCE_EXHAUSTED", "quota"), Fault::Overload, "the upstream answered 429");
        check(503, &of(503, "UNAVAILABLE", "overloaded"), Fault::Overload, "the upstream answered 503");
        check(403, &of(403, "PERMISSION_DENIED", "no"), Fault::Credential, "the upstream answered 403");
    }
}
