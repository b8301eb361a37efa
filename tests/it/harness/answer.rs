//! What a caller got.

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// The chunks of a streamed answer.
#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) all: Vec<Value>,
    /// True if `[DONE]` came, and came last.
    pub(crate) done: bool,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Answer {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.expect("a whole body") }
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    /// The body of a good answer.
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    /// The body's `error` member.
    pub(crate) fn error(&self) -> Value {
        assert!(self.status >= 400, "{}", self.text);
        self.json()["error"].clone()
    }

    /// The body of a streamed answer.
    pub(crate) fn chunks(&self) -> Chunks {
        assert_eq!(self.status, 200, "{}", self.text);
        let data: Vec<&str> = self.text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        let done = data.last() == Some(&"[DONE]");
        let events = data.iter().filter(|text| **text != "[DONE]");
        Chunks {
            all: events.map(|text| serde_json::from_str(text).expect("JSON in an event")).collect(),
            done,
        }
    }
}

impl Chunks {
    /// All pieces of one member of one choice's deltas, joined.
    pub(crate) fn joined(&self, index: u64, member: &str) -> String {
        let of_choice = |choice: &&Value| choice["index"].as_u64() == Some(index);
        let choices = self.all.iter().filter_map(|chunk| chunk["choices"].as_array()).flatten();
        choices.filter(of_choice).filter_map(|choice| choice["delta"][member].as_str()).collect()
    }

    /// The chunk that carries the budget.
    pub(crate) fn budget(&self) -> &Value {
        let with = |chunk: &&Value| chunk.get("budget").is_some();
        &self.all.iter().find(with).expect("a chunk with a budget")["budget"]
    }
}
