//! The bytes of a request, written once. Only a number in the prompt changes, so that no two requests are the same.

use serde_json::{Map, Value, json};

use crate::scenario::{Api, Load};

use super::Target;

const NUMBER: &[u8] = b"0000000000";
/// Anthropic's API wants one.
const MAX_TOKENS: u32 = 1024;

/// A request, but for its number.
#[derive(Debug, Clone)]
pub(super) struct RequestBytes {
    bytes: Vec<u8>,
    number_at: usize,
}

impl RequestBytes {
    pub(super) fn new(load: &Load, target: &Target) -> RequestBytes {
        let body = Value::Object(body(load, target)).to_string();
        let path = match load.api {
            Api::Chat => "chat/completions",
            Api::Responses => "responses",
            Api::Messages => "messages",
        };
        let head = format!(
            "POST {}/{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            target.base,
            target.address,
            target.key,
            target.key,
            body.len()
        );
        let bytes = (head + &body).into_bytes();
        let number_at = memchr::memmem::find(&bytes, NUMBER).unwrap_or(0);
        RequestBytes { bytes, number_at }
    }

    /// The bytes of the request of this number.
    pub(super) fn numbered(&self, number: u64, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(&self.bytes);
        let digits = format!("{number:010}");
        into[self.number_at..self.number_at + NUMBER.len()]
            .copy_from_slice(&digits.as_bytes()[..NUMBER.len()]);
    }
}

fn body(load: &Load, target: &Target) -> Map<String, Value> {
    let prompt = prompt(load.prompt_bytes);
    let mut body = Map::new();
    body.insert("model".to_owned(), target.model.as_str().into());
    match load.api {
        Api::Responses => {
            body.insert("input".to_owned(), prompt.into());
        }
        Api::Chat | Api::Messages => {
            body.insert("messages".to_owned(), json!([{"role": "user", "content": prompt}]));
        }
    }
    if load.api == Api::Messages {
        body.insert("max_tokens".to_owned(), MAX_TOKENS.into());
    }
    if load.stream {
        body.insert("stream".to_owned(), true.into());
        if load.api == Api::Chat {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
    }
    body.extend(load.members.clone());
    body
}

/// A question of at least so many bytes.
fn prompt(bytes: usize) -> String {
    const SENTENCES: [&str; 4] = [
        "The ferry leaves at nine and carries forty cars. ",
        "Its captain counts them twice and writes the number down. ",
        "On the other side a train waits for those without one. ",
        "In winter there is ice, and nobody crosses before noon. ",
    ];
    let mut prompt = String::from("Question 0000000000: how many cars crossed?");
    for sentence in SENTENCES.iter().cycle() {
        if prompt.len() >= bytes {
            break;
        }
        prompt.push_str(sentence);
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_requests_differ_in_their_number_alone() {
        let scenario: crate::scenario::Scenario = toml::from_str(
            "title = \"t\"\n[load]\narrival = { closed = { connections = 1 } }\nprompt_bytes = 1000\nmembers = { n = 1 }",
        )
        .unwrap();
        let target = Target {
            address: ([127, 0, 0, 1], 1).into(),
            base: "/v1".into(),
            model: "m".into(),
            key: "k".into(),
            processes: Vec::new(),
        };
        let request = RequestBytes::new(&scenario.load, &target);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        request.numbered(1, &mut one);
        request.numbered(12_345, &mut other);
        let differing = one.iter().zip(&other).filter(|(a, b)| a != b).count();
        assert_eq!((one.len(), differing), (other.len(), 5));
        let (_, body) = std::str::from_utf8(&one).unwrap().split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert!(body["n"] == 1 && body["messages"][0]["content"].as_str().unwrap().len() >= 1000);
    }
}
