//! Tool calls that a model writes into its text, one syntax per family of models.
//!
//! Servers read them out for chat requests. Where an answer is resumed from a closed thought there is no chat request, so
//! they are read here: the caller sees the calls and never their syntax. A call is told whole, once its end is there: half
//! a call is of no use, and one that a limit breaks off is left out.

use serde_json::Value;

use crate::chat::ToolCallDelta;

/// How a family of models writes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen 2.5 and 3, and many that were trained on
    /// their data.
    Hermes,
    /// `[TOOL_CALLS][{"name": …, "arguments": {…}}, …]`, to the end of the text: Mistral.
    Mistral,
    /// The whole answer is `{"name": …, "parameters": {…}}`, several of them parted by `;`: Llama 3.1 and later.
    Llama,
}

/// What a text turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Part of the answer.
    Text(String),
    /// A whole call.
    Call(ToolCallDelta),
}

/// Reads calls out of an answer that arrives in pieces, wherever the pieces are cut.
#[derive(Debug, Clone)]
pub struct Calls {
    syntax: Syntax,
    /// What the ids of the calls begin with.
    id: String,
    count: u32,
    place: Place,
    /// The text that may be a call or the beginning of a tag, or blank that may stand beside a call.
    held: String,
    /// The blank before what may be a call.
    blank: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing but blank was said yet.
    Before,
    /// In the answer.
    Text,
    /// Inside a call.
    Call,
}

impl Syntax {
    fn start(self) -> &'static str {
        match self {
            Syntax::Hermes => "<tool_call>",
            Syntax::Mistral => "[TOOL_CALLS]",
            Syntax::Llama => "{",
        }
    }

    /// What ends a call; nothing but the end of the text where there is none.
    fn end(self) -> Option<&'static str> {
        match self {
            Syntax::Hermes => Some("</tool_call>"),
            Syntax::Mistral | Syntax::Llama => None,
        }
    }

    /// The calls that stand in a text between start and end; nothing where it is none.
    fn read(self, text: &str) -> Option<Vec<(String, String)>> {
        match self {
            Syntax::Hermes => Some(vec![call(&serde_json::from_str(text).ok()?)?]),
            Syntax::Mistral => {
                let list: Vec<Value> = serde_json::from_str(text).ok()?;
                list.iter().map(call).collect()
            }
            Syntax::Llama => values(text)?.iter().map(call).collect(),
        }
    }
}

impl Calls {
    /// A reader for one answer. The ids of its calls begin with `id`, which must be of no other answer.
    pub fn new(syntax: Syntax, id: impl Into<String>) -> Calls {
        Calls {
            syntax,
            id: id.into(),
            count: 0,
            place: Place::Before,
            held: String::new(),
            blank: String::new(),
        }
    }

    /// True once there was a call.
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Vec<Said> {
        self.held.push_str(text);
        let mut said = Vec::new();
        while self.step(&mut said) {}
        said
    }

    /// The text has ended. What was held back and is no call is text after all, unless it is one that broke off.
    pub fn finish(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        let rest = std::mem::take(&mut self.held);
        if self.place != Place::Call {
            if !(self.any() && rest.trim().is_empty()) {
                self.say(rest, &mut said);
            }
        } else if self.syntax.end().is_none() {
            self.close(&rest, &mut said);
        }
        said
    }
}

impl Calls {
    /// Takes one tag out of the held text; false where there is none to take.
    fn step(&mut self, said: &mut Vec<Said>) -> bool {
        match self.place {
            Place::Before | Place::Text => self.open(said),
            Place::Call => match self.syntax.end().and_then(|end| Some((self.held.find(end)?, end.len()))) {
                Some((at, length)) => {
                    let rest = self.held.split_off(at + length);
                    let whole = std::mem::replace(&mut self.held, rest);
                    self.close(&whole[..at], said);
                    self.place = Place::Text;
                    true
                }
                None => false,
            },
        }
    }

    /// Looks for the beginning of a call. Llama's has no tag, so it can only be the whole answer.
    fn open(&mut self, said: &mut Vec<Said>) -> bool {
        let start = self.syntax.start();
        let found = match self.syntax {
            Syntax::Llama if self.place == Place::Text => None,
            Syntax::Llama => {
                self.held.trim_start().starts_with(start).then(|| self.held.find(start)).flatten()
            }
            _ => self.held.find(start),
        };
        let Some(at) = found else {
            // Blank before a call is no part of the answer, and whether one follows is not known yet.
            let sure = &self.held[..self.held.len() - overlap(&self.held, start)];
            let rest = self.held.split_off(sure.trim_end().len());
            let text = std::mem::replace(&mut self.held, rest);
            self.say(text, said);
            return false;
        };
        // The brace is a part of the call; a tag is none.
        let tag = if self.syntax == Syntax::Llama { 0 } else { start.len() };
        let rest = self.held.split_off(at + tag);
        let mut before = std::mem::replace(&mut self.held, rest);
        before.truncate(at);
        self.blank = before.split_off(before.trim_end().len());
        self.say(before, said);
        self.place = Place::Call;
        true
    }

    /// What stood between start and end: calls, or text that only looked like one. What broke off is left out.
    fn close(&mut self, text: &str, said: &mut Vec<Said>) {
        if let Some(calls) = self.syntax.read(text.trim()) {
            said.extend(calls.into_iter().map(|call| self.told(call)));
            return;
        }
        let blank = std::mem::take(&mut self.blank);
        let broke_off = self.syntax.end().is_none() && is_unfinished(text);
        if !broke_off {
            let tag = if self.syntax == Syntax::Llama { "" } else { self.syntax.start() };
            let whole = [&blank, tag, text, self.syntax.end().unwrap_or_default()].concat();
            self.say(whole, said);
        }
    }

    fn told(&mut self, (name, arguments): (String, String)) -> Said {
        let index = self.count;
        self.count += 1;
        let id = Some(format!("{}_{index}", self.id));
        Said::Call(ToolCallDelta { index, id, name: Some(name), arguments })
    }

    fn say(&mut self, text: String, said: &mut Vec<Said>) {
        if !text.is_empty() {
            if !text.trim().is_empty() {
                self.place = Place::Text;
            }
            said.push(Said::Text(text));
        }
    }
}

/// The name and the arguments of one call, the latter as JSON text.
fn call(value: &Value) -> Option<(String, String)> {
    let name = value.get("name")?.as_str()?.to_owned();
    let arguments = value.get("arguments").or_else(|| value.get("parameters"));
    let arguments = match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        // Some models write the object as a text.
        Some(Value::String(text)) => text.clone(),
        Some(object) => object.to_string(),
    };
    Some((name, arguments))
}

/// JSON values one after another, parted by blank or `;`; nothing where one of them is none.
fn values(text: &str) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.push(stream.next()?.ok()?);
        rest = rest[stream.byte_offset()..].trim_start_matches([';', ' ', '\n', '\t', '\r']);
    }
    Some(values)
}

/// Whether a text is the beginning of JSON that names a tool, and not the whole of it.
fn is_unfinished(text: &str) -> bool {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    text.contains("\"name\"") && stream.find_map(Result::err).is_some_and(|error| error.is_eof())
}

/// How many bytes at the end of the text may be the beginning of the tag.
fn overlap(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len().saturating_sub(1));
    (1..=longest).rev().find(|&length| text.as_bytes().ends_with(&tag.as_bytes()[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The text and the calls, as `name(arguments)`.
    fn read(syntax: Syntax, pieces: &[&str]) -> (String, Vec<String>) {
        let mut calls = Calls::new(syntax, "call_7");
        let mut said: Vec<Said> = pieces.iter().flat_map(|piece| calls.push(piece)).collect();
        said.extend(calls.finish());
        let (mut text, mut made) = (String::new(), Vec::new());
        for part in said {
            match part {
                Said::Text(more) => text.push_str(&more),
                Said::Call(call) => {
                    assert_eq!(call.id, Some(format!("call_7_{}", made.len())));
                    made.push(format!("{}({})", call.name.unwrap(), call.arguments));
                }
            }
        }
        (text, made)
    }

    fn check(syntax: Syntax, whole: &str, text: &str, calls: &[&str]) {
        assert_eq!(
            read(syntax, &[whole]),
            (text.to_owned(), calls.iter().map(ToString::to_string).collect()),
            "{whole}"
        );
        let bytes: Vec<&str> = whole.split_inclusive(|_| true).collect();
        assert_eq!(read(syntax, &bytes), read(syntax, &[whole]), "{whole}, letter by letter");
    }

    #[test]
    fn calls_between_tags_are_read_out_of_the_text_around_them() {
        let one = r#"<tool_call>
{"name": "search", "arguments": {"q": "é }"}}
</tool_call>"#;
        check(Syntax::Hermes, one, "", &[r#"search({"q":"é }"})"#]);
        let two = format!("Let me look.\n{one}\n{one}");
        check(Syntax::Hermes, &two, "Let me look.", &[r#"search({"q":"é }"})"#, r#"search({"q":"é }"})"#]);
        check(Syntax::Hermes, r#"<tool_call>{"name": "now"}</tool_call>"#, "", &["now({})"]);
        let text = r#"<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>"#;
        check(Syntax::Hermes, text, "", &[r#"f({"a": 1})"#]);
    }

    #[test]
    fn what_is_no_call_is_text_and_what_broke_off_is_left_out() {
        check(Syntax::Hermes, "a <tool_call>what?</tool_call> b", "a <tool_call>what?</tool_call> b", &[]);
        check(Syntax::Hermes, "1 < 2 <tool", "1 < 2 <tool", &[]);
        check(Syntax::Hermes, r#"a <tool_call>{"name": "f", "argu"#, "a", &[]);
        check(Syntax::Llama, r#"{"answer": 51}"#, r#"{"answer": 51}"#, &[]);
        check(Syntax::Llama, r#"{"name": "f", "parameters": {"a""#, "", &[]);
        check(
            Syntax::Llama,
            r#"It is {"name": "f", "parameters": {}}"#,
            r#"It is {"name": "f", "parameters": {}}"#,
            &[],
        );
        check(Syntax::Mistral, r#"[TOOL_CALLS][{"name": "f"#, "", &[]);
    }

    #[test]
    fn families_without_an_end_tag_call_to_the_end() {
        let llama = r#"{"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}"#;
        check(Syntax::Llama, llama, "", &[r#"f({"a":1})"#, "g({})"]);
        let mistral =
            r#"Sure. [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]"#;
        check(Syntax::Mistral, mistral, "Sure.", &[r#"f({"a":1})"#, "g({})"]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_pieces_are_cut(
            cuts in prop::collection::vec(0..200usize, 0..8),
            text in "(a|<|\\{|\\}|\"name\"|<tool_call>|</tool_call>|\\[TOOL_CALLS\\]|\\{\"name\":\"f\"\\}|é|\\s){0,12}",
            syntax in prop_oneof![Just(Syntax::Hermes), Just(Syntax::Mistral), Just(Syntax::Llama)],
        ) {
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(syntax, &pieces), read(syntax, &[&text]));
        }
    }
}
