//! The reader of chat completions' members, against what stands in the body.

use serde_json::{Map, Value};
use stint_types::chat::{ContentPart, Message, Request, Role};

use crate::{Subject, same};

/// What the readers of requests say of what they do not take.
pub mod error {
    /// An error as a caller would see it, without its status.
    #[derive(Debug)]
    pub struct ApiError {
        /// What is wrong and what to do about it.
        pub message: String,
    }

    /// Codes; nobody looks at them here.
    pub mod codes {
        /// A member that must be there is not.
        pub const MISSING_REQUIRED_PARAMETER: &str = "missing_required_parameter";
        /// The body has more values than anything that is asked has.
        pub const TOO_MANY_VALUES: &str = "too_many_values";
        /// A member that nobody knows.
        pub const UNKNOWN_PARAMETER: &str = "unknown_parameter";
    }

    impl ApiError {
        /// Something that a caller can mend.
        pub fn invalid(param: Option<&str>, message: impl Into<String>) -> ApiError {
            let message = message.into();
            ApiError { message: param.map_or(message.clone(), |param| format!("{param} {message}")) }
        }
        /// Something that must be there.
        pub fn missing(param: &str, must: &str) -> ApiError {
            ApiError::invalid(Some(param), must)
        }
        /// With a code.
        #[must_use]
        pub fn with_code(self, _: &'static str) -> ApiError {
            self
        }
    }
}

use error::ApiError;

/// What is read of a body, and the members that were left.
type Read = fn(Map<String, Value>) -> Result<(Request, Vec<String>), ApiError>;

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @checks [sound $($planted)*] $($planted)* }
    };
    (@checks [$($copy:ident)*] $($planted:ident)*) => {
        /// The reader's checks.
        pub const SUBJECT: Subject = Subject {
            name: "requests",
            sound: |bytes| check(bytes, subjects!(@read sound)),
            planted: &[$((stringify!($planted), |bytes| check(bytes, subjects!(@read $planted)))),*],
            words: WORDS,
        };
    };
    (@read $copy:ident) => {
        |members| {
            let mut fields = $copy::fields::Fields::from_body(members);
            let (request, _) = $copy::parse::request(&mut fields, "m".to_owned())?;
            Ok((request, fields.names()))
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/requests.rs"));

const WORDS: &[&[u8]] = &[
    b"{\"role\":\"user\",\"content\":\"a\"}",
    b"{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"b\"}",
    b"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
    b"\"messages\":[",
    b"\"tools\":[",
    b"{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
    b"{\"type\":\"text\",\"text\":\"c\"}",
    b"\"stop\":[\"x\"],",
    b"\"n\":2,",
    b"\"temperature\":2.1,",
    b"\"logprobs\":true,\"top_logprobs\":21,",
    b"\"seed\":-1,",
    b"\"cache_control\":{\"type\":\"ephemeral\"},",
    b"\"other\":null,",
    b"null",
    b",",
    b"}",
    b"]",
];

fn check(bytes: &[u8], read: Read) -> Result<(), String> {
    let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(bytes) else { return Ok(()) };
    let (request, left) = match read(body.clone()) {
        Ok(read) => read,
        Err(error) => return same(&error.message.is_empty(), &false, "a refusal without a word"),
    };
    same(&left.iter().all(|name| body.contains_key(name)), &true, "a member that was not sent")?;
    let messages = body.get("messages").and_then(Value::as_array).ok_or("messages out of nothing")?;
    same(&request.messages.len(), &messages.len(), "so many messages")?;
    for (message, sent) in request.messages.iter().zip(messages) {
        conveys(message, sent)?;
    }
    paired(&request.messages)?;
    within(&request, &body)
}

/// The message says what was sent.
fn conveys(message: &Message, sent: &Value) -> Result<(), String> {
    let role = match sent["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => return Err(format!("{} is no role", sent["role"])),
    };
    same(&message.role, &role, "who speaks")?;
    let said: Vec<&str> = message.content.iter().filter_map(text).collect();
    let wrote: Vec<&str> = match &sent["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part[part["type"].as_str()?].as_str()).collect()
        }
        _ => Vec::new(),
    };
    same(&said, &wrote, "what is said")?;
    let calls: Vec<[&str; 3]> =
        message.tool_calls.iter().map(|call| [&*call.id, &*call.name, &*call.arguments]).collect();
    let of = |call: &Value| -> [String; 3] {
        ["/id", "/function/name", "/function/arguments"]
            .map(|path| call.pointer(path).and_then(Value::as_str).unwrap_or("?").to_owned())
    };
    let called: Vec<[String; 3]> = sent["tool_calls"].as_array().into_iter().flatten().map(of).collect();
    same(&calls, &called.iter().map(|call| [&*call[0], &*call[1], &*call[2]]).collect(), "the calls")?;
    same(&message.tool_call_id.as_deref(), &sent["tool_call_id"].as_str(), "whose result it is")
}

fn text(part: &ContentPart) -> Option<&str> {
    if let ContentPart::Text(text) = part { Some(text) } else { None }
}

/// Every call has its result among the messages right after it, and every result its call.
fn paired(messages: &[Message]) -> Result<(), String> {
    let mut rest = messages;
    while let Some((turn, after)) = rest.split_first() {
        let results = after.iter().take_while(|message| message.role == Role::Tool).count();
        let mut ids: Vec<&str> = turn.tool_calls.iter().map(|call| &*call.id).collect();
        let mut found: Vec<&str> = after[..results]
            .iter()
            .map(|result| result.tool_call_id.as_deref().unwrap_or_default())
            .collect();
        ids.sort_unstable();
        found.sort_unstable();
        if turn.role == Role::Tool || ids != found {
            return Err(format!("{ids:?} were called and {found:?} answered"));
        }
        rest = &after[results..];
    }
    Ok(())
}

/// What is asked for is what was sent, and within its limits.
fn within(request: &Request, body: &Map<String, Value>) -> Result<(), String> {
    let sampling = &request.sampling;
    let fits = sampling.temperature.is_none_or(|number| (0.0..=2.0).contains(&number))
        && sampling.top_p.is_none_or(|number| (0.0..=1.0).contains(&number))
        && sampling.stop.len() <= 16
        && request.choices > 0
        && request.logprobs.is_none_or(|count| count <= 20);
    same(&fits, &true, "whether it is within its limits")?;
    let tools = body.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
    same(&request.tools.len(), &tools, "so many tools")?;
    // The gateway refuses what is more than this, and far less.
    let choices = body.get("n").and_then(Value::as_u64).unwrap_or(1).min(u32::MAX.into());
    same(&u64::from(request.choices), &choices, "so many answers")?;
    let stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
    same(&request.streams, &stream, "whether it streams")
}
