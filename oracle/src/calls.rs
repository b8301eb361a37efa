//! The reader of tool calls in a model's text, against itself cut elsewhere, and against what holds of any text: what is no call
//! comes through as it is, and nothing comes through that was not there.

use serde_json::{Value, json};
use stint_types::chat::{Tool, ToolCallDelta};

use crate::{Subject, cuts, same, settings, texts};

/// A run of text, or a whole call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Call(ToolCallDelta),
}

/// How many families of models there are.
const FAMILIES: usize = 6;

/// What each family may begin a call with, as far as a text without it can have no call.
const STARTS: [&[&str]; FAMILIES] = [
    &["<tool_call>"],
    &["[TOOL_CALLS]"],
    &["{"],
    &["<tool_call>", "<function=add>"],
    &["<｜tool▁calls▁begin｜>"],
    &["<|channel|>commentary to=", "<|start|>assistant to="],
];

/// A reader's way from pieces of a text to its parts, for one family.
trait Read {
    fn read(pieces: &[&str], family: usize, tools: &[Tool]) -> Vec<Part>;
}

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @read sound }
        $(subjects! { @read $planted })*

        /// The reader's checks.
        pub const SUBJECT: Subject = Subject {
            name: "calls",
            sound: check::<sound::ToolCallParser>,
            planted: &[$((stringify!($planted), check::<$planted::ToolCallParser>)),*],
            words: WORDS,
        };
    };
    (@read $copy:ident) => {
        impl Read for $copy::ToolCallParser {
            fn read(pieces: &[&str], family: usize, tools: &[Tool]) -> Vec<Part> {
                use $copy::ToolCallSyntax::{Coder, DeepSeek, Hermes, Harmony, Llama, Mistral};
                let syntax = [Hermes, Mistral, Llama, Coder, DeepSeek, Harmony][family];
                let mut parser = $copy::ToolCallParser::new(syntax, "call").with_tools(tools);
                let mut segments: Vec<_> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
                segments.extend(parser.finish());
                joined(segments.into_iter().map(|segment| match segment {
                    $copy::AnswerSegment::Text(text) => Part::Text(text),
                    $copy::AnswerSegment::Call(call) => Part::Call(call),
                }))
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));

const WORDS: &[&[u8]] = &[
    b"<tool_call>",
    b"</tool_call>",
    b"{\"name\": \"add\", \"arguments\": {\"a\": 1}}",
    b"[TOOL_CALLS]",
    b"[{\"name\":\"add\"}]",
    b"<function=add>",
    b"<parameter=a>",
    b"</parameter>",
    b"</function>",
    "<｜tool▁calls▁begin｜>".as_bytes(),
    "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{}<｜tool▁call▁end｜>".as_bytes(),
    "<｜tool▁calls▁end｜>".as_bytes(),
    b"<|channel|>commentary to=functions.add",
    b"<|message|>{}",
    b"<|call|>",
    b"\n",
    b" ",
    b";",
    b"<",
    b"{",
    b"}",
];

fn check<R: Read>(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let tools = tools();
    for family in settings(bytes, FAMILIES) {
        let whole = R::read(&[text], family, &tools);
        for cuts in cuts(bytes) {
            let found = R::read(&texts(text, &cuts), family, &tools);
            same(&found, &whole, format_args!("family {family} cut at {cuts:?}"))?;
        }
        holds(text, &whole, family)?;
    }
    Ok(())
}

fn tools() -> [Tool; 1] {
    let parameters = json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let declaration = json!({"type": "function", "function": {"name": "add", "parameters": parameters}});
    [Tool::new("add", declaration)]
}

/// What holds of the parts of any text.
fn holds(text: &str, parts: &[Part], family: usize) -> Result<(), String> {
    if !STARTS[family].iter().any(|start| text.contains(start)) {
        let plain: Vec<Part> = if text.is_empty() { Vec::new() } else { vec![Part::Text(text.to_owned())] };
        return same(&parts.to_vec(), &plain, "a text without a call");
    }
    let (mut rest, mut index) = (text, 0);
    for part in parts {
        match part {
            Part::Text(said) => {
                let at =
                    rest.find(said.as_str()).ok_or_else(|| format!("{said:?} was not said in {text:?}"))?;
                rest = &rest[at + said.len()..];
            }
            Part::Call(call) => {
                same(&(call.index, call.id.clone()), &(index, Some(format!("call_{index}"))), "a call's id")?;
                index += 1;
                argued(call, text, family)?;
            }
        }
    }
    Ok(())
}

/// The name was written, and the arguments are what was written: those of the families that write JSON are.
fn argued(call: &ToolCallDelta, text: &str, family: usize) -> Result<(), String> {
    let name = call.name.clone().unwrap_or_default();
    let is_written = text.contains(&name) || text.contains('\\');
    same(&is_written, &true, format_args!("the name {name:?} was written"))?;
    let read = serde_json::from_str::<Value>(&call.arguments);
    match (family, read) {
        (3..=5, Ok(Value::Object(_))) => Ok(()),
        (3..=5, _) => Err(format!("{:?} are no arguments", call.arguments)),
        _ => Ok(()),
    }
}

/// Neighbouring texts as one.
fn joined(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
            (_, part) => all.push(part),
        }
    }
    all
}
