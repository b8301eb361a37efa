//! One turn of a conversation.

use std::sync::Arc;

use serde_json::{Map, Value};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator's instructions (`system` and `developer` on the wire).
    System,
    /// The caller.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

impl Role {
    /// The word that chat templates and OpenAI use.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentPart {
    /// Plain text.
    Text(String),
    /// Anything else (an image, audio), as the caller wrote it; only capable models are given it.
    Other(Value),
    /// No text: what follows in this message was added by the gateway. The caller never sees it, and every later
    /// request has it again at the same place.
    AdditionStart {
        /// The tools that were used up then, and may not be called from here on.
        withheld: Arc<[Arc<str>]>,
    },
    /// No text: the caller wants all up to here kept in the provider's cache. Providers without a word for it
    /// do not get the mark.
    CacheBreakpoint(CacheTtl),
}

impl ContentPart {
    /// For how long the caller wants what stands before it kept, where this is a mark.
    pub fn cache_ttl(&self) -> Option<CacheTtl> {
        match self {
            ContentPart::CacheBreakpoint(keep) => Some(*keep),
            ContentPart::Text(_) | ContentPart::Other(_) | ContentPart::AdditionStart { .. } => None,
        }
    }
}

/// For how long a provider is to keep something in its cache. What is kept longer costs more to write there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheTtl {
    /// Some minutes, the usual.
    #[default]
    Minutes,
    /// An hour.
    Hour,
}

/// A call of one of the caller's tools that the model made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// What the result refers to.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// JSON text, as the model wrote it.
    pub arguments: String,
}

/// Where something was signed: a number that is the same for all who can verify one another's signatures. It is made of an
/// address and a credential, and tells neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SigningDomain(pub u32);

/// Who signed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThoughtSigner {
    /// The model, by the name that callers use.
    pub model: Arc<str>,
    /// Where it was asked.
    pub domain: SigningDomain,
}

/// A part of a thought that its provider has signed or encrypted, and wants back as it was in the next turn of a
/// run with tools. It means nothing to any other model, nor to the same one of another organisation, so it is never given to
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedThought {
    /// Who made it.
    pub signer: ThoughtSigner,
    /// What the provider sent, as JSON text, byte for byte.
    pub block: Box<str>,
}

/// What some of a turn's text is for, as its model labels it. OpenAI wants it back with the text (`phase`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPhase {
    /// How many characters of the turn's text stand before it.
    pub letters_before: usize,
    /// How many parts these are in.
    pub parts_before: usize,
    /// `commentary` or `final_answer`; nothing where the text from here on has no label.
    pub word: Option<Box<str>>,
}

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Its content, in order.
    pub content: Vec<ContentPart>,
    /// The thought before it, where the caller sent it back.
    pub thought: Option<String>,
    /// What its provider signed of that thought, in order, where the caller sent it back.
    pub signed: Vec<SignedThought>,
    /// The calls that an assistant made.
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool message answers.
    pub tool_call_id: Option<String>,
    /// True if the tool failed whose result it is. Its content begins with [`Message::FAILED`] then, since not every provider has
    /// a sign for it.
    pub is_error: bool,
    /// The participant's name, where the caller gave one.
    pub name: Option<String>,
    /// What the parts of an assistant's text are for, in order, where the caller sent that back.
    pub phases: Vec<TurnPhase>,
    /// What else the caller wrote into it, which has no meaning here. Only backends that take such members of requests get it.
    pub unknown_members: Map<String, Value>,
}

impl Message {
    /// The words that a failed tool's result begins with.
    pub const FAILED: &'static str = "Error: ";

    /// A message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Message {
        let content = vec![ContentPart::Text(text.into())];
        Message {
            role,
            content,
            thought: None,
            signed: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            is_error: false,
            name: None,
            phases: Vec::new(),
            unknown_members: Map::new(),
        }
    }

    /// What is added to the text from here on is for this.
    pub fn begin_phase(&mut self, word: Option<&str>) {
        if word.is_some() || !self.phases.is_empty() {
            // A turn may have thousands of phases: what stands before the last one was counted.
            let (letters, counted) =
                self.phases.last().map_or((0, 0), |last| (last.letters_before, last.parts_before));
            let more: usize = self.content.iter().skip(counted).map(letters_of).sum();
            let parts_before = self.content.len();
            self.phases.push(TurnPhase {
                letters_before: letters + more,
                parts_before,
                word: word.map(Into::into),
            });
        }
    }

    /// What that one signed of this turn's thought.
    pub fn signed_by(&self, signer: &ThoughtSigner) -> impl Iterator<Item = &str> {
        self.signed.iter().filter(move |signed| signed.signer == *signer).map(|signed| &*signed.block)
    }

    /// What is no text: images, sounds and files.
    pub fn media(&self) -> impl Iterator<Item = &Value> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::Other(value) => Some(value),
            ContentPart::Text(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => {
                None
            }
        })
    }

    /// The text parts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(text.as_str()),
            ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => {
                None
            }
        })
    }

    /// The text parts, joined.
    pub fn plain_text(&self) -> String {
        self.texts().collect()
    }

    /// The text parts with an empty line between those that nothing else sets apart: for providers that take one text only. What the
    /// gateway added, or put before, belongs to the text beside it.
    pub fn paragraphs(&self) -> String {
        let (mut all, mut is_added) = (String::new(), false);
        for part in &self.content {
            match part {
                ContentPart::Text(text) if is_added => all.push_str(text),
                ContentPart::Text(text) => Message::push_paragraph(&mut all, text),
                ContentPart::AdditionStart { .. } => is_added = true,
                ContentPart::Other(_) | ContentPart::CacheBreakpoint(_) => {}
            }
        }
        all
    }

    /// Adds one of a message's texts to those before it, with an empty line where nothing else sets them apart.
    pub fn push_paragraph(before: &mut String, text: &str) {
        let goes_on = before.is_empty() || *before == Message::FAILED;
        if !(goes_on || text.is_empty() || before.ends_with('\n') || text.starts_with('\n')) {
            before.push_str("\n\n");
        }
        before.push_str(text);
    }
}

fn letters_of(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text) => text.chars().count(),
        ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn texts_that_stand_apart_are_paragraphs_of_one_text() {
        let text = |text: &str| ContentPart::Text(text.to_owned());
        let added = || ContentPart::AdditionStart { withheld: Arc::default() };
        for (content, expected) in [
            (vec![text("20"), text("30")], "20\n\n30"),
            (vec![text("20"), text(""), text("30")], "20\n\n30"),
            (vec![text("tool: a\n"), text("tool: b\n")], "tool: a\ntool: b\n"),
            (vec![text(Message::FAILED), text("no cat")], "Error: no cat"),
            (vec![text("found"), added(), text(" (2 left)")], "found (2 left)"),
        ] {
            let message = Message { content, ..Message::text(Role::Tool, "") };
            assert_eq!(message.paragraphs(), expected);
        }
    }

    #[test]
    fn a_turn_of_many_phases_is_counted_once() {
        let mut turn = Message { content: Vec::new(), ..Message::text(Role::Assistant, "") };
        let began = Instant::now();
        for _ in 0..50_000 {
            turn.begin_phase(Some("commentary"));
            turn.content.push(ContentPart::Text("é".repeat(100)));
        }
        turn.begin_phase(None);
        let letters: Vec<usize> = turn.phases.iter().map(|phase| phase.letters_before).collect();
        assert_eq!((letters[0], letters[1], letters[50_000]), (0, 100, 5_000_000));
        // 0.1 s without optimisation.
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
