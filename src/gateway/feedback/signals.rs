//! Signals that an answer gives about its own quality, without a person. Each is weak, and has a small weight.

use serde_json::Value;

use crate::execute::{AnswerTranscript, ChoiceProgress, TranscriptToolCall};
use stint_sessions::history::RequestRecord;
use stint_types::catalog::VerdictSource;
use stint_types::chat::Request;
use stint_types::units::Chance;

use super::schema_fit::fits;

/// How much of an answer is held in memory to look at its form, in bytes.
const FORM_MAX: usize = 64 << 10;

/// The weight of a form that fits: it shows little, since wrong answers have good forms too.
const FITTING: f64 = 0.05;
/// The weight of a form that does not fit: its caller can hardly use the answer.
const UNFIT: f64 = 0.5;
/// The weight of an end at a limit that we set.
const LENGTH: f64 = 0.3;
/// The weight of a second try with the least thinking.
const RESCUE: f64 = 0.3;
/// The weight of an answer in which a cut thought continues.
const LEAK: f64 = 0.1;

/// A signal of an answer: its source, how right the answer is, and the weight of that.
pub(crate) type AnswerSignal = (VerdictSource, Chance, f64);

/// A choice of a request, listened to where its form will be looked at.
pub(crate) fn with_transcript(request: &Request, progress: ChoiceProgress) -> ChoiceProgress {
    let wants = schema(request).is_some() || !request.tools.is_empty();
    if wants { progress.with_transcript(FORM_MAX) } else { progress }
}

/// What the end of an answer shows about the budgets that were chosen for it. Limits that the caller stated do not count.
pub(crate) fn of_ending(story: &RequestRecord, request: &Request) -> Option<AnswerSignal> {
    let choices = story.outcome.choices.iter().filter(|_| story.outcome.is_finished());
    let is_ours = request.budget.solution.is_none() && request.budget.total.is_none();
    let weights = choices.map(|choice| {
        if choice.solution_ended.is_cut() && is_ours {
            LENGTH
        } else if choice.rescued {
            RESCUE
        } else if choice.leaks > 0 {
            LEAK
        } else {
            0.0
        }
    });
    let weight = weights.fold(0.0, f64::max);
    (weight > 0.0).then_some((VerdictSource::Ending, Chance::new(0.0), weight))
}

/// The signals from the forms of the answers whose transcript is complete.
pub(crate) fn of_form(request: &Request, progress: &[ChoiceProgress]) -> Vec<AnswerSignal> {
    let transcripts: Vec<_> = progress
        .iter()
        .filter_map(|choice: &ChoiceProgress| AnswerTranscript::complete(&choice.transcript))
        .collect();
    let calls: Vec<&TranscriptToolCall> = transcripts.iter().flat_map(|(_, calls)| calls.iter()).collect();
    let arguments = (!calls.is_empty()).then(|| calls.iter().all(|call| is_called_well(request, call)));
    let answers = transcripts.iter().filter(|(_, calls)| calls.is_empty()).map(|(answer, _)| *answer);
    let mut answers = answers.peekable();
    let form = schema(request).filter(|_| answers.peek().is_some());
    let form = form.map(|schema| answers.all(|answer| is_well_formed(answer, schema)));
    let signals = [(VerdictSource::ToolArguments, arguments), (VerdictSource::Form, form)];
    signals.into_iter().filter_map(|(source, fits)| Some(verdict(source, fits?))).collect()
}

fn verdict(source: VerdictSource, fits: bool) -> AnswerSignal {
    let (success, weight) = if fits { (1.0, FITTING) } else { (0.0, UNFIT) };
    (source, Chance::new(success), weight)
}

/// The schema of the form that was asked for; an empty one where any JSON will do.
fn schema(request: &Request) -> Option<&Value> {
    static ANY: Value = Value::Bool(true);
    let format = request.response_format.as_ref()?;
    match format["type"].as_str()? {
        "json_object" => Some(&ANY),
        "json_schema" => Some(&format["json_schema"]["schema"]),
        _ => None,
    }
}

fn is_well_formed(answer: &str, schema: &Value) -> bool {
    serde_json::from_str(answer.trim()).is_ok_and(|value: Value| fits(&value, schema))
}

/// A tool that there is, with arguments that fit it.
fn is_called_well(request: &Request, call: &TranscriptToolCall) -> bool {
    let Some(tool) = request.tools.iter().find(|tool| tool.name == call.name) else { return false };
    let parameters = &tool.declaration["function"]["parameters"];
    // No arguments at all are written by some as nothing at all.
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    serde_json::from_str(text).is_ok_and(|value: Value| fits(&value, parameters))
}
