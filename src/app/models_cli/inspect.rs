//! `stint models inspect`: what a GGUF file holds, and what it takes to run it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use stint_gguf::Gguf;
use stint_prompt::{PromptError, PromptFormat, Vocabulary};

use super::super::engines::{self, ModelFacts};
use super::super::error::error_chain;
use super::super::local_model_report::tags_note;
use super::super::output::{VerbResult, align_columns, print_line};
use super::human_bytes::human_bytes;

/// What to look at.
#[derive(Debug, Args)]
pub(in crate::app) struct InspectOptions {
    /// The GGUF file.
    file: PathBuf,
    /// Tokens of prompt and answer for which the memory is counted; the model's own limit without it.
    #[arg(long, value_name = "TOKENS")]
    context: Option<u32>,
    /// The tag that begins a thought; without it what the chat template has.
    #[arg(long)]
    start_tag: Option<String>,
    /// The tag that closes a thought.
    #[arg(long)]
    end_tag: Option<String>,
}

/// The tags that most models have.
const USUAL_TAGS: [&str; 2] = ["<think>", "</think>"];

impl InspectOptions {
    fn prompt_format(&self, vocabulary: &Vocabulary) -> Result<PromptFormat, PromptError> {
        let [start, end] = USUAL_TAGS;
        match (self.start_tag.as_deref(), self.end_tag.as_deref()) {
            (None, None) => PromptFormat::new(vocabulary, start, end),
            (own_start, own_end) => {
                PromptFormat::with_stated_tags(vocabulary, own_start.unwrap_or(start), own_end.unwrap_or(end))
            }
        }
    }
}

pub(super) fn inspect(options: &InspectOptions) -> VerbResult {
    let gguf = Gguf::open(&options.file)?;
    let name = gguf.text("general.name").unwrap_or("without a name");
    let architecture = gguf.text("general.architecture").unwrap_or("no architecture");
    let mut rows = vec![row("model", format!("{name} ({architecture})")), row("formats", formats(&gguf))];
    let facts = engines::describe(&gguf);
    facts.iter().for_each(|facts| rows.extend(weight_rows(facts, options.context)));
    let format = Vocabulary::from_gguf(&gguf).and_then(|it| {
        let format = options.prompt_format(&it)?;
        Ok((it.tokens.len(), format))
    });
    format.iter().for_each(|(tokens, format)| rows.extend(prompt_rows(&gguf, *tokens, format)));
    print_line(&align_columns(&rows, 2));
    // Of what is no model nothing else needs to be said.
    let errors = match gguf.check_is_model() {
        Err(error) => [Some(error_chain(&error)), None],
        Ok(()) => {
            [facts.err().map(|error| error_chain(&error)), format.err().map(|error| error_chain(&error))]
        }
    };
    let errors: Vec<_> = errors.into_iter().flatten().collect();
    errors.iter().for_each(|error| print_line(&format!("It cannot be served here: {error}")));
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A line of what is told: what it is about, and what there is to say.
fn row(name: &str, value: String) -> [String; 2] {
    [name.to_owned(), value]
}

/// What the weights are, and the memory that they take beside one sequence of so many tokens.
fn weight_rows(facts: &ModelFacts, context: Option<u32>) -> Vec<[String; 2]> {
    let millions = |parameters: u64| parameters as f64 / 1e6;
    let parameters = format!("{:.1} million in {} layers", millions(facts.parameters), facts.layers);
    let mut rows = vec![row("parameters", parameters)];
    if facts.experts > 0 {
        let (used, all, numbers) = (facts.experts_used, facts.experts, millions(facts.parameters_used));
        let experts = format!("{used} of {all} in each layer, {numbers:.1} million parameters for a token");
        rows.push(row("experts", experts));
    }
    rows.push(row("context", format!("{} tokens", facts.context)));
    let context = context.unwrap_or(facts.context).min(facts.context);
    let cache = |token: u64| human_bytes(token.saturating_mul(u64::from(context)));
    let (usual, small) = (cache(facts.kv_token_bytes), cache(facts.kv_token_bytes_q8_0));
    let weights = human_bytes(facts.weight_bytes);
    let memory = format!(
        "{weights} of weights, and {usual} for one sequence of {context} tokens ({small} with kv_format = \"q8_0\")"
    );
    rows.push(row("memory", memory));
    rows
}

/// How its texts are cut into tokens, and what its template knows of thoughts and calls.
fn prompt_rows(gguf: &Gguf, tokens: usize, format: &PromptFormat) -> Vec<[String; 2]> {
    let cut = gguf.text("tokenizer.ggml.pre").unwrap_or("default");
    let kind = gguf.text("tokenizer.ggml.model").unwrap_or_default();
    let thinks = match (format.tags(), format.spelled_tags()) {
        (Some(_), _) => "thinks between its tags",
        (None, Some(_)) => "thinks between tags that are plain text",
        (None, None) => "does not think",
    };
    let calls = format.syntax().map_or("shows no tool calls that can be read".to_owned(), |syntax| {
        format!("writes tool calls as {syntax:?} does")
    });
    let mut rows = vec![
        row("tokenizer", format!("{kind}/{cut}, {tokens} tokens")),
        row("template", format!("{thinks}; {calls}")),
    ];
    rows.extend(format.unmentioned_tags().map(|tags| row("note", tags_note(tags))));
    rows
}

/// The formats of the tensors, each with its share of the file's bytes.
fn formats(gguf: &Gguf) -> String {
    let mut sizes = std::collections::BTreeMap::<&str, u64>::new();
    let mut unread = std::collections::BTreeSet::new();
    for name in gguf.tensor_names() {
        match gguf.tensor(name) {
            Ok(tensor) => *sizes.entry(tensor.kind.name()).or_default() += tensor.length() as u64,
            Err(stint_gguf::GgufError::TensorType { kind, .. }) => drop(unread.insert(kind)),
            Err(_) => drop(unread.insert("damaged")),
        }
    }
    let mut sizes: Vec<_> = sizes.into_iter().collect();
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let read = sizes.iter().map(|(kind, size)| format!("{kind} {}", human_bytes(*size)));
    let unread = unread.iter().map(|kind| format!("{kind} (not read)"));
    read.chain(unread).collect::<Vec<_>>().join(", ")
}
