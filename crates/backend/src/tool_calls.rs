//! Parses tool calls from the text of a backend that does not parse them itself.

use std::collections::VecDeque;

use futures_util::{StreamExt, stream};

use stint_prompt::tool_calls::{AnswerSegment, ToolCallParser, ToolCallSyntax};
use stint_types::chat::{Request, Tool};
use stint_types::units::{RequestId, Tokens};

use super::{Failure, Generation, Piece, UnsupportedFeature};

/// Whether a request for tools can be made of a model that writes its calls in this syntax.
///
/// # Errors
/// Where it writes none, or is to be made to call one: nothing holds a free text to that.
pub(super) fn check(request: &Request, syntax: Option<ToolCallSyntax>) -> Result<(), Failure> {
    check_syntax(request, syntax)?;
    let choice = request.tool_choice.as_ref();
    let is_free = choice.is_none_or(|choice| choice == "auto" || choice == "none");
    if request.tools.is_empty() || is_free {
        return Ok(());
    }
    let why = "this model cannot be made to call a tool: leave tool_choice at auto";
    Err(Failure::incapable(UnsupportedFeature::Choice, why))
}

/// The same, where an answer can be held to calls.
pub(super) fn check_syntax(request: &Request, syntax: Option<ToolCallSyntax>) -> Result<(), Failure> {
    refuse_anthropic_tools(request)?;
    if request.tools.is_empty() || syntax.is_some() {
        return Ok(());
    }
    let why = "this model calls no tools while its thinking is held";
    Err(Failure::incapable(UnsupportedFeature::Tools, why))
}

/// Refuses tools that only Anthropic's models know by themselves.
pub(super) fn refuse_anthropic_tools(request: &Request) -> Result<(), Failure> {
    let Some(kind) = request.tools.iter().find_map(Tool::anthropic_type) else { return Ok(()) };
    let why = format!(
        "this model does not know {kind}, which is a tool of Anthropic's models: name one of them, or declare a tool of your own with an \
         input_schema"
    );
    Err(Failure::incapable(UnsupportedFeature::Tools, why))
}

/// Whether the tools are declared to the model at all.
pub(super) fn offers_tools(request: &Request) -> bool {
    !request.tools.is_empty() && request.tool_choice.as_ref().is_none_or(|choice| choice != "none")
}

/// The same generation, with the calls in its answer read out of it. Their tokens are the answer's.
pub(super) fn extract_calls(
    generation: Generation,
    request: &Request,
    syntax: Option<ToolCallSyntax>,
) -> Generation {
    let Some(syntax) = syntax.filter(|_| offers_tools(request)) else { return generation };
    let id = RequestId::new().to_string().replacen("req_", "call_", 1);
    let reading = ToolCallStream {
        generation,
        calls: ToolCallParser::new(syntax, id).with_tools(&request.tools),
        pieces: VecDeque::new(),
    };
    Box::pin(stream::unfold(reading, |mut reading| async move {
        let piece = reading.next().await?;
        Some((piece, reading))
    }))
}

struct ToolCallStream {
    generation: Generation,
    calls: ToolCallParser,
    pieces: VecDeque<Piece>,
}

impl ToolCallStream {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(Ok(piece));
            }
            match self.generation.next().await? {
                Ok(Piece::Answer { text, tokens }) => {
                    let said = self.calls.push(&text);
                    self.push_parsed(said, tokens);
                }
                Ok(Piece::End(ending)) => {
                    let said = match ending {
                        ending if ending.is_cut() => self.calls.finish_cut(),
                        _ => self.calls.finish(),
                    };
                    self.push_parsed(said, Tokens::ZERO);
                    self.pieces.push_back(Piece::End(ending));
                }
                piece => return Some(piece),
            }
        }
    }

    /// The text first, with all the tokens, since none may go uncounted.
    fn push_parsed(&mut self, said: Vec<AnswerSegment>, tokens: Tokens) {
        let mut tokens = Some(tokens);
        for said in said {
            match said {
                AnswerSegment::Text(text) => {
                    let tokens = tokens.take().unwrap_or_default();
                    self.pieces.push_back(Piece::Answer { text, tokens });
                }
                AnswerSegment::Call(call) => self.pieces.push_back(Piece::ToolCall(call)),
            }
        }
        if let Some(tokens) = tokens.filter(|tokens| *tokens > Tokens::ZERO) {
            self.pieces.push_front(Piece::Answer { text: String::new(), tokens });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::GenerationEnd;
    use stint_types::chat::{Message, Role, Tool};

    fn request(choice: &str) -> Request {
        let declaration = json!({"type": "function", "function": {"name": "f"}});
        Request {
            tools: vec![Tool::new("f", declaration)],
            tool_choice: Some(json!(choice)),
            ..Request::new("m", vec![Message::text(Role::User, "?")])
        }
    }

    #[tokio::test]
    async fn the_calls_come_out_whole_and_every_token_is_counted() {
        let answer = |text: &str, tokens| Ok(Piece::Answer { text: text.to_owned(), tokens: Tokens(tokens) });
        let pieces = vec![
            answer("Let me", 2),
            answer(" see.\n<tool_", 3),
            answer("call>{\"name\": \"f\", ", 4),
            answer("\"arguments\": {\"a\": 1}}</tool_call>", 5),
            Ok(Piece::End(GenerationEnd::Stop { tokens: Tokens(1) })),
        ];
        let generation: Generation = Box::pin(stream::iter(pieces));
        let pieces: Vec<Piece> = extract_calls(generation, &request("auto"), Some(ToolCallSyntax::Hermes))
            .map(Result::unwrap)
            .collect()
            .await;
        let (mut text, mut tokens, mut calls) = (String::new(), 0, Vec::new());
        for piece in &pieces {
            match piece {
                Piece::Answer { text: more, tokens: count } => {
                    text.push_str(more);
                    tokens += count.0;
                }
                Piece::ToolCall(call) => calls.push((call.name.clone().unwrap(), call.arguments.clone())),
                _ => {}
            }
        }
        assert_eq!((text.as_str(), tokens), ("Let me see.", 14));
        assert_eq!(calls, [("f".to_owned(), r#"{"a":1}"#.to_owned())]);
        assert_eq!(pieces.last(), Some(&Piece::End(GenerationEnd::Stop { tokens: Tokens(1) })));
    }

    #[tokio::test]
    async fn a_tag_that_is_cut_by_the_limit_does_not_reach_the_caller() {
        let answer = Piece::Answer { text: "I look. <tool_".to_owned(), tokens: Tokens(5) };
        let pieces = [Ok(answer), Ok(Piece::End(GenerationEnd::Limit))];
        let generation: Generation = Box::pin(stream::iter(pieces));
        let extracted = extract_calls(generation, &request("auto"), Some(ToolCallSyntax::Hermes));
        let pieces: Vec<Piece> = extracted.map(Result::unwrap).collect().await;
        let answer = Piece::Answer { text: "I look.".to_owned(), tokens: Tokens(5) };
        assert_eq!(pieces, [answer, Piece::End(GenerationEnd::Limit)]);
    }

    #[test]
    fn who_writes_no_calls_or_is_to_be_made_to_is_refused() {
        assert!(check(&request("auto"), Some(ToolCallSyntax::Hermes)).is_ok());
        assert!(check(&request("none"), Some(ToolCallSyntax::Hermes)).is_ok());
        assert!(check(&request("required"), Some(ToolCallSyntax::Hermes)).is_err());
        assert!(check(&request("auto"), None).is_err());
        assert!(!offers_tools(&request("none")) && offers_tools(&request("auto")));
    }
}
