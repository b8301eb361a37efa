//! What a scenario says: how the upstream answers, and who asks.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::LoadError;

/// One file of `load-tests/scenarios/load`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What the tables call it.
    pub title: String,
    /// How the upstream answers.
    #[serde(default)]
    pub upstream: UpstreamScript,
    /// Who asks.
    pub load: Load,
    /// What the gateway is to be set to, which is for those who start it.
    #[serde(default, rename = "gateway")]
    pub _gateway: Option<IgnoredAny>,
}

/// How the upstream answers. A request that does not ask for a stream gets the same words at once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamScript {
    /// The events of a streamed answer, all of them: its beginning, a word each, its end, its usage and `[DONE]`.
    pub events: usize,
    /// Events of a thought before the answer, a word each. A request that continues a thought gets none.
    pub thoughts: usize,
    /// Events a second; without it all at once.
    pub per_second: Option<f64>,
    /// Answers with a call of the first tool, whose argument has the words.
    pub calls_tool: bool,
    /// Milliseconds before the first byte.
    pub first_after_ms: u64,
    /// Answers that are written at once. Others wait.
    pub capacity: Option<usize>,
    /// How many may wait; more are refused with 429.
    pub queue_max: usize,
    /// Answers that pause.
    pub stall: Option<Stall>,
}

/// Answers that pause for long.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Each so manieth one.
    pub every: u64,
    /// After so many events.
    pub after_events: usize,
    /// For so long.
    pub milliseconds: u64,
}

/// Who asks, and for what.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// When they ask.
    pub arrival: Arrival,
    /// The API they speak.
    #[serde(default)]
    pub api: Api,
    /// They ask for a stream.
    #[serde(default)]
    pub stream: bool,
    /// Bytes of the prompt, at least.
    #[serde(default)]
    pub prompt_bytes: usize,
    /// More members of the request.
    #[serde(default)]
    pub members: serde_json::Map<String, serde_json::Value>,
    /// Seconds to measure.
    #[serde(default = "usual_seconds")]
    pub seconds: f64,
    /// Seconds before that are not measured.
    #[serde(default = "usual_warm_up")]
    pub warm_up: f64,
    /// Refusals with 429 or 503 are answers too.
    #[serde(default)]
    pub may_be_refused: bool,
    /// An answer that is broken off is an answer too.
    #[serde(default)]
    pub may_break_off: bool,
    /// Fewer words of the thought arrive than the upstream would write.
    #[serde(default)]
    pub thought_is_cut: bool,
    /// Callers that leave, or read no further.
    #[serde(default)]
    pub leaving: Option<Leaving>,
}

/// When requests are made.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// Each of so many callers asks again when it has its answer.
    Closed {
        /// How many.
        connections: usize,
    },
    /// So many a second, whatever becomes of them. A request that found no free connection was made all the same when it was due.
    Open {
        /// How many a second.
        per_second: f64,
        /// Connections at most.
        connections: usize,
    },
}

impl Arrival {
    /// Connections at most.
    pub fn connections(self) -> usize {
        match self {
            Arrival::Closed { connections } | Arrival::Open { connections, .. } => connections,
        }
    }
}

/// The API that is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

/// Callers that do not stay to the end.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaving {
    /// Each so manieth request.
    pub every: u64,
    /// After so many events.
    pub after_events: u64,
    /// Reads nothing for so long before it goes; goes at once without it.
    #[serde(default)]
    pub stays_milliseconds: u64,
}

impl Scenario {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Scenario, LoadError> {
        let text = std::fs::read_to_string(path).map_err(|source| LoadError::file(path, source))?;
        toml::from_str(&text)
            .map_err(|source| LoadError::Scenario { path: path.to_owned(), source: Box::new(source) })
    }
}

impl UpstreamScript {
    /// Events of an answer that carry no word: its beginning, its end, its usage and `[DONE]`.
    pub const FRAME: usize = 4;

    /// How many words an answer has.
    pub fn words(&self) -> usize {
        self.events.saturating_sub(Self::FRAME)
    }
}

impl Default for UpstreamScript {
    fn default() -> UpstreamScript {
        UpstreamScript {
            events: 53,
            thoughts: 0,
            per_second: None,
            calls_tool: false,
            first_after_ms: 0,
            capacity: None,
            queue_max: usize::MAX,
            stall: None,
        }
    }
}

fn usual_seconds() -> f64 {
    5.0
}

fn usual_warm_up() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_scenario_beside_the_load_tests_is_understood() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/load");
        let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 10, "{files:?}");
        for file in files {
            let scenario = Scenario::read(&file).unwrap();
            assert!(scenario.load.arrival.connections() > 0, "{}", scenario.title);
        }
    }

    #[test]
    fn a_misspelt_member_is_named() {
        let told = toml::from_str::<Scenario>(
            "title = \"t\"\n[load]\narrival = { closed = { connections = 1 } }\nsecond = 1",
        );
        assert!(told.unwrap_err().to_string().contains("second"));
    }
}
