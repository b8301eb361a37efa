//! What a model file says about its tokens.

use std::collections::HashMap;

use stint_gguf::Gguf;

use super::error::PromptError;
use super::pre_tokenizer::begins_with_token;
use super::spm::{SPACE, byte_of};
use super::tool_calls::ToolCallSyntax;

/// The kinds of tokens, as GGUF numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Text in the byte alphabet; what merges are about.
    Normal,
    /// Structure that no caller may write: it never becomes text.
    Control,
    /// A text of its own, found before everything else.
    UserDefined,
    /// One byte of what no other token covers.
    Byte,
    /// Unknown, unused, or of other kinds of tokenizers.
    Other,
}

/// How text becomes tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TokenizerKind {
    /// Byte-level BPE by merges (`gpt2` in files).
    #[default]
    Bpe,
    /// `SentencePiece`'s, by scores (`llama` in files).
    Spm,
}

/// The tokenizer's part of a model file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vocabulary {
    /// How text becomes tokens.
    pub tokenizer: TokenizerKind,
    /// The tokens in the order of their ids (`tokenizer.ggml.tokens`).
    pub tokens: Vec<String>,
    /// Their kinds by number (`tokenizer.ggml.token_type`); all normal where it is empty.
    pub kinds: Vec<u32>,
    /// Their scores, of which `SentencePiece`'s tokenizers take the best (`tokenizer.ggml.scores`).
    pub scores: Vec<f32>,
    /// The merges, best first, two tokens and a space between (`tokenizer.ggml.merges`).
    pub merges: Vec<String>,
    /// How text is cut before it is merged (`tokenizer.ggml.pre`).
    pub pre: String,
    /// The token that ends a text.
    pub eos: u32,
    /// Others of which the file says that they end a turn or a message.
    pub more_ends: Vec<u32>,
    /// The token that begins a text, where there is one.
    pub bos: Option<u32>,
    /// Whether a prompt begins with it.
    pub add_bos: bool,
    /// The token for what has none, where there is one.
    pub unknown: Option<u32>,
    /// Whether `SentencePiece`'s tokenizers put a space before a text.
    pub add_space_prefix: bool,
    /// The chat template (`tokenizer.chat_template`).
    pub template: Option<String>,
    /// The one for requests with tools, where it is another (`tokenizer.chat_template.tool_use`).
    pub tool_template: Option<String>,
}

/// What models call the end of a turn, beside their end-of-text token.
const STOP_TOKENS: [&str; 9] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
];

/// What stands around the names of control tokens. Files that were written by hand call some of them ordinary ones.
const CONTROL_NAMES: [[&str; 2]; 2] = [["<|", "|>"], ["<｜", "｜>"]];

impl Vocabulary {
    /// What a model file says.
    pub fn from_gguf(file: &Gguf) -> Result<Vocabulary, PromptError> {
        let lacks = |key: &str| PromptError::Vocabulary(format!("the file has no {key}"));
        let tokenizer = match file.text("tokenizer.ggml.model").unwrap_or_default() {
            "gpt2" => TokenizerKind::Bpe,
            "llama" => TokenizerKind::Spm,
            other => {
                let why = format!("its kind {other:?} is not supported, only gpt2 and llama are");
                return Err(PromptError::Vocabulary(why));
            }
        };
        let pre = file.text("tokenizer.ggml.pre").unwrap_or_default().to_owned();
        // As llama.cpp has it where the file says nothing.
        let begins = tokenizer == TokenizerKind::Spm || begins_with_token(&pre);
        let texts = |key: &str| file.texts(key).map(<[String]>::to_vec);
        let tokens = texts("tokenizer.ggml.tokens").ok_or_else(|| lacks("tokenizer.ggml.tokens"))?;
        let kinds = file.integers("tokenizer.ggml.token_type").unwrap_or_default();
        let kinds = kinds.iter().map(|&kind| u32::try_from(kind).unwrap_or(0));
        let known = |key: &str| file.integer(key).filter(|id| (*id as usize) < tokens.len());
        let more_ends: Vec<_> = ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"]
            .into_iter()
            .filter_map(known)
            .collect();
        let named = || (0..).zip(&tokens).find(|(_, text)| STOP_TOKENS.contains(&&***text)).map(|(id, _)| id);
        let eos = known("tokenizer.ggml.eos_token_id").or(more_ends.first().copied()).or_else(named);
        Ok(Vocabulary {
            tokenizer,
            kinds: kinds.zip(&tokens).map(|(kind, text)| kind_of_name(kind, text)).collect(),
            eos: eos.ok_or_else(|| lacks("tokenizer.ggml.eos_token_id"))?,
            more_ends,
            tokens,
            merges: texts("tokenizer.ggml.merges").unwrap_or_default(),
            scores: file.floats("tokenizer.ggml.scores").unwrap_or_default().to_vec(),
            pre,
            bos: file.integer("tokenizer.ggml.bos_token_id"),
            add_bos: file.flag("tokenizer.ggml.add_bos_token").unwrap_or(begins),
            unknown: file.integer("tokenizer.ggml.unknown_token_id"),
            add_space_prefix: file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true),
            template: file.text("tokenizer.chat_template").map(str::to_owned),
            tool_template: file.text("tokenizer.chat_template.tool_use").map(str::to_owned),
        })
    }

    /// The kind of a token.
    pub fn kind(&self, id: u32) -> TokenKind {
        match self.kinds.get(id as usize) {
            None | Some(1) => TokenKind::Normal,
            Some(3) => TokenKind::Control,
            Some(4) => TokenKind::UserDefined,
            Some(6) => TokenKind::Byte,
            Some(_) => TokenKind::Other,
        }
    }

    /// Every token with its id.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..).zip(self.tokens.iter().map(String::as_str))
    }

    /// The tokens of one kind.
    pub fn of_kind(&self, kind: TokenKind) -> impl Iterator<Item = (u32, &str)> {
        self.iter().filter(move |&(id, _)| self.kind(id) == kind)
    }

    /// The token of that text among those with a text of their own.
    pub fn special(&self, text: &str) -> Option<u32> {
        let special = |id| matches!(self.kind(id), TokenKind::Control | TokenKind::UserDefined);
        self.iter().find(|&(id, token)| token == text && special(id)).map(|(id, _)| id)
    }

    /// The tokens that end a text or a turn, the end-of-text token first.
    pub fn stop_tokens(&self) -> Vec<u32> {
        let mut ends = vec![self.eos];
        let named = self
            .of_kind(TokenKind::Control)
            .filter(|(_, token)| STOP_TOKENS.contains(token))
            .map(|(id, _)| id);
        for id in self.more_ends.iter().copied().chain(named) {
            if !ends.contains(&id) {
                ends.push(id);
            }
        }
        ends
    }

    /// The bytes that each token stands for; none for those that never become text.
    pub(super) fn bytes(&self) -> Vec<Box<[u8]>> {
        let alphabet = alphabet();
        let bytes = |(id, token): (u32, &str)| match self.kind(id) {
            TokenKind::Normal if self.tokenizer == TokenizerKind::Spm => {
                token.replace(SPACE, " ").into_bytes().into()
            }
            TokenKind::Normal => decode(token, &alphabet).into(),
            TokenKind::UserDefined => token.as_bytes().into(),
            TokenKind::Byte => byte_of(token).into_iter().collect(),
            // Structure too, but of the answer: without its text a call could not be read.
            TokenKind::Control if ToolCallSyntax::is_tag(token) => token.as_bytes().into(),
            TokenKind::Control | TokenKind::Other => Box::default(),
        };
        self.iter().map(bytes).collect()
    }
}

/// The kind of a token that the file numbers so, and names so: what looks like structure is structure, as llama.cpp has it too.
fn kind_of_name(kind: u32, name: &str) -> u32 {
    const USER_DEFINED: u32 = 4;
    const CONTROL: u32 = 3;
    let is_framed = CONTROL_NAMES.iter().any(|[start, end]| {
        name.strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|inner| !inner.is_empty())
    });
    if kind == USER_DEFINED && (is_framed || STOP_TOKENS.contains(&name)) { CONTROL } else { kind }
}

/// The byte that each character of GPT-2's printable alphabet stands for.
fn alphabet() -> HashMap<char, u8> {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let (shown, hidden): (Vec<u8>, Vec<u8>) = (0..=u8::MAX).partition(|&byte| plain(byte));
    let shown = shown.into_iter().map(|byte| (char::from(byte), byte));
    shown.chain(('\u{100}'..).zip(hidden)).collect()
}

fn decode(token: &str, alphabet: &HashMap<char, u8>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(token.len());
    for character in token.chars() {
        match alphabet.get(&character) {
            Some(byte) => bytes.push(*byte),
            None => bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_gguf::synth::SyntheticModel;

    fn read(
        integers: Vec<(&'static str, u32)>,
        tokens: Vec<(u32, &'static str, i32)>,
    ) -> Result<Vocabulary, PromptError> {
        let texts = vec![("tokenizer.ggml.model", "gpt2")];
        let synth = SyntheticModel { integers, tokens, texts, ..SyntheticModel::default() };
        Vocabulary::from_gguf(&Gguf::from_bytes(synth.bytes().into()).unwrap())
    }

    #[test]
    fn a_text_ends_where_the_file_says_and_where_a_turn_does() {
        let keys =
            ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];
        let ends = keys.into_iter().zip([3, 7, 9_999]).collect();
        // As files have them whose maker took all of them for text.
        let names = ["<|im_end|>", "<tool_call>", "<|done|>", "<|fim_prefix|>"];
        let vocabulary = read(ends, (5..).zip(names).map(|(id, name)| (id, name, 4)).collect()).unwrap();
        assert_eq!(vocabulary.stop_tokens(), [3, 7, 5]);
        let kinds = [5, 6, 7, 8].map(|id| vocabulary.kind(id));
        let (control, text) = (TokenKind::Control, TokenKind::UserDefined);
        assert_eq!(kinds, [control, text, control, control]);
    }

    #[test]
    fn a_file_that_does_not_say_what_ends_a_text_has_a_token_named_so() {
        assert_eq!(read(Vec::new(), vec![(5, "<|im_end|>", 3)]).unwrap().eos, 5);
        let beyond = vec![("tokenizer.ggml.eos_token_id", 64)];
        assert_eq!(read(beyond.clone(), vec![(5, "<|im_end|>", 3)]).unwrap().eos, 5);
        assert!(read(beyond, Vec::new()).unwrap_err().to_string().contains("eos_token_id"));
    }
}
