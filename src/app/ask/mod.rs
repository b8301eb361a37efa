//! `stint ask "question"`: asks the running server, and prints thought and answer as they stream.
//!
//! The answer goes to standard output alone, so that it can be piped. The thought is shown where a person reads, dimmed. The line
//! about the budget goes to standard error.

mod transcript;

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::config;

use super::local_listener::server_client;
use super::output::VerbResult;

use transcript::{Transcript, TranscriptPart, harmless};

/// How long the whole answer may take.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// What names the caller's key.
const KEY: &str = "STINT_KEY";
/// How an event of a stream that has data begins.
const DATA: &str = "data:";
/// The longest event that is read.
const EVENT_MAX: usize = 16 << 20;

/// What is asked, and within which budget.
#[derive(Debug, Args)]
pub(super) struct AskOptions {
    /// The question; `-` reads it from standard input.
    question: String,
    /// A model, or a route.
    #[arg(long, visible_alias = "route", default_value = "auto")]
    model: String,
    /// A system message.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Thinking tokens, rather than what the plan decides.
    #[arg(long, value_name = "TOKENS")]
    thinking: Option<u64>,
    /// The most it may cost, in dollars.
    #[arg(long, value_name = "USD")]
    cost: Option<String>,
    /// A word like low or high, or a share of the model's usual thinking.
    #[arg(long)]
    effort: Option<String>,
    /// The server's address, if it is not the one in this configuration.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Do not show the thought.
    #[arg(long)]
    no_thought: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(
        "no server answers at {0}; start it with `stint serve`, name the configuration that it runs with by --config, or \
         give its address by --url"
    )]
    Unreachable(String, #[source] reqwest::Error),
    #[error("the answer broke off")]
    BrokenOff(#[source] reqwest::Error),
    #[error("the answer broke off before its end; the server's log says why")]
    Unfinished,
    #[error("the server wants a key: put yours into the environment variable {KEY}")]
    MissingKey,
    #[error("{0}")]
    Refused(String),
    #[error("the answer cannot be read; is {0} a stint of this version?")]
    InvalidResponse(String),
    #[error("the question cannot be read from standard input")]
    Question(#[source] io::Error),
    #[error("the answer cannot be printed")]
    Output(#[source] io::Error),
}

pub(super) fn ask(file: Option<&Path>, options: &AskOptions) -> VerbResult {
    let settings = config::load_offline(file, &config::environment)?;
    let (client, base) = server_client(&settings, options.url.as_deref(), TIMEOUT)?;
    let body = body(options, &question(&options.question)?);
    let is_terminal = io::stdout().is_terminal();
    let is_dimmed = is_terminal && config::environment("NO_COLOR").is_none();
    let shows_thought = is_terminal && !options.no_thought;
    let mut transcript = Transcript::new(is_terminal, shows_thought, is_dimmed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(stream(&client, &base, &body, &mut transcript))?;
    report(&transcript.end());
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "the command line's own words, beside the answer")]
fn report(line: &str) {
    if !line.is_empty() {
        eprintln!("{line}");
    }
}

fn question(stated: &str) -> Result<String, AskError> {
    if stated != "-" {
        return Ok(stated.to_owned());
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(AskError::Question)?;
    Ok(text)
}

fn body(options: &AskOptions, question: &str) -> Value {
    let system = options.system.iter().map(|text| json!({ "role": "system", "content": text }));
    let messages: Vec<Value> = system.chain([json!({ "role": "user", "content": question })]).collect();
    let mut budget = json!({});
    if let Some(tokens) = options.thinking {
        budget["thinking_tokens"] = tokens.into();
    }
    if let Some(dollars) = &options.cost {
        budget["cost_usd"] = dollars.as_str().into();
    }
    if let Some(effort) = &options.effort {
        // A share is a number, and a word a word.
        budget["effort"] = effort.parse::<f64>().map_or_else(|_| effort.as_str().into(), Value::from);
    }
    let mut body = json!({ "model": options.model, "messages": messages, "stream": true });
    if budget.as_object().is_some_and(|members| !members.is_empty()) {
        body["budget"] = budget;
    }
    body
}

/// Prints an answer as it comes.
async fn stream(
    client: &reqwest::Client,
    base: &str,
    body: &Value,
    transcript: &mut Transcript,
) -> Result<(), AskError> {
    let unreachable = |error| AskError::Unreachable(base.to_owned(), error);
    let request = client.post(format!("{base}/v1/chat/completions"));
    let mut request = request.header("content-type", "application/json").body(body.to_string());
    let key = config::environment(KEY);
    if let Some(key) = &key {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await.map_err(unreachable)?;
    if !answer.status().is_success() {
        let (status, text) = (answer.status(), answer.text().await.map_err(AskError::BrokenOff)?);
        return Err(refusal(base, status.as_u16(), key.is_some(), &text));
    }
    let (mut bytes, mut lines) = (answer.bytes_stream(), Lines::default());
    while let Some(part) = bytes.next().await {
        for line in lines.push(&part.map_err(AskError::BrokenOff)?) {
            let Some(data) = line.strip_prefix(DATA).map(str::trim) else { continue };
            if data == "[DONE]" {
                return Ok(());
            }
            let event: Value =
                serde_json::from_str(data).map_err(|_| AskError::InvalidResponse(base.to_owned()))?;
            if let Some(message) = event["error"]["message"].as_str() {
                return Err(AskError::Refused(harmless(message)));
            }
            print(transcript, &event)?;
        }
        if lines.is_overlong() {
            return Err(AskError::InvalidResponse(base.to_owned()));
        }
    }
    Err(AskError::Unfinished)
}

fn print(transcript: &mut Transcript, event: &Value) -> Result<(), AskError> {
    let shown: String = TranscriptPart::of(event).into_iter().map(|piece| transcript.show(piece)).collect();
    let mut out = io::stdout();
    out.write_all(shown.as_bytes()).and_then(|()| out.flush()).map_err(AskError::Output)
}

fn refusal(base: &str, status: u16, has_key: bool, text: &str) -> AskError {
    let answer: Option<Value> = serde_json::from_str(text).ok();
    match answer.as_ref().and_then(|answer| answer["error"]["message"].as_str()) {
        Some(_) if status == 401 && !has_key => AskError::MissingKey,
        Some(message) => AskError::Refused(harmless(message)),
        None => AskError::InvalidResponse(base.to_owned()),
    }
}

/// The lines of a stream that comes in parts.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The lines that are whole with this part.
    fn push(&mut self, part: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(part);
        let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }

    fn is_overlong(&self) -> bool {
        self.0.len() > EVENT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_come() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"data: {\"a\":\xc3"), Vec::<String>::new());
        assert_eq!(lines.push(b"\xa9}\r\n\ndata"), ["data: {\"a\":\u{e9}}", ""]);
        assert_eq!(lines.push(b": x\n"), ["data: x"]);
    }
}
