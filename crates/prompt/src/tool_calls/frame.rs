//! The texts that stand around a call's name and its arguments, in the families that write both as one JSON object: with them
//! an answer can be held to calls of declared tools.

use super::ToolCallSyntax;

/// What an answer that is calls and nothing else is made of, but for names and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFrame {
    /// Before the first call.
    pub first: &'static str,
    /// Before a call's name.
    pub open: &'static str,
    /// Between its name and its arguments.
    pub arguments: &'static str,
    /// Behind its arguments.
    pub close: &'static str,
    /// Between two calls.
    pub between: &'static str,
    /// Behind the last call.
    pub last: &'static str,
    /// The tag that no text has in which nothing is called, where calls have one of their own. It is the beginning of `open`.
    pub tag: Option<&'static str>,
}

impl ToolCallSyntax {
    /// The frame of its calls. None where names or arguments are no JSON.
    pub fn frame(self) -> Option<CallFrame> {
        match self {
            ToolCallSyntax::Hermes => Some(CallFrame {
                first: "",
                open: "<tool_call>\n{\"name\": \"",
                arguments: "\", \"arguments\": ",
                close: "}\n</tool_call>",
                between: "\n",
                last: "",
                tag: Some("<tool_call>"),
            }),
            ToolCallSyntax::Mistral => Some(CallFrame {
                first: "[TOOL_CALLS][",
                open: "{\"name\": \"",
                arguments: "\", \"arguments\": ",
                close: "}",
                between: ", ",
                last: "]",
                tag: None,
            }),
            ToolCallSyntax::Llama => Some(CallFrame {
                first: "",
                open: "{\"name\": \"",
                arguments: "\", \"parameters\": ",
                close: "}",
                between: "; ",
                last: "",
                tag: None,
            }),
            ToolCallSyntax::Coder | ToolCallSyntax::DeepSeek | ToolCallSyntax::Harmony => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AnswerSegment, ToolCallParser};
    use super::*;

    #[test]
    fn what_a_frame_makes_of_calls_is_read_as_these_calls() {
        for syntax in [ToolCallSyntax::Hermes, ToolCallSyntax::Mistral, ToolCallSyntax::Llama] {
            let frame = syntax.frame().unwrap();
            let call = |name: &str, arguments: &str| {
                [frame.open, name, frame.arguments, arguments, frame.close].concat()
            };
            let two = [call("one", r#"{"a":1}"#), call("two", "{}")].join(frame.between);
            let mut parser = ToolCallParser::new(syntax, "call");
            let mut said = parser.push(&[frame.first, &two, frame.last].concat());
            said.extend(parser.finish());
            let calls: Vec<_> = said
                .into_iter()
                .map(|said| match said {
                    AnswerSegment::Call(call) => (call.name.unwrap(), call.arguments),
                    AnswerSegment::Text(text) => (String::new(), text),
                })
                .collect();
            let expected = [("one", r#"{"a":1}"#), ("two", "{}")];
            assert_eq!(calls, expected.map(|(name, it)| (name.to_owned(), it.to_owned())), "{syntax:?}");
            assert!(frame.tag.is_none_or(|tag| frame.open.starts_with(tag)));
        }
    }
}
