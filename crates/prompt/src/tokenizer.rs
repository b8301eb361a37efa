//! Text to token ids, by byte-level BPE or as `SentencePiece` does it.
//!
//! Control tokens are structure: they are found in what a chat template wrote, never in what a caller wrote.
//! To tell the two apart after rendering, a caller's text that spells a control token carries a mark inside it
//! (see [`Tokenizer::mark`]), which goes again once the control tokens were found. Text without such spellings,
//! that is all ordinary text, is left alone.

use tokenizers::AddedToken;
use tokenizers::models::bpe::{BPE, Vocab};

use super::controls::ControlTrie;
use super::error::PromptError;
use super::pre_tokenizer::PreTokenizerSpec;
use super::spm::SpmTokenizer;
use super::vocabulary::{TokenKind, TokenizerKind, Vocabulary};

/// A model's tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    plain: PlainTokenizer,
    controls: ControlTrie,
    bos: Option<u32>,
}

/// For text without control tokens.
#[derive(Debug)]
enum PlainTokenizer {
    Bpe(Box<tokenizers::Tokenizer>),
    Spm(SpmTokenizer),
}

impl Tokenizer {
    /// The tokenizer of a vocabulary.
    pub fn new(vocabulary: &Vocabulary) -> Result<Tokenizer, PromptError> {
        let plain = match vocabulary.tokenizer {
            TokenizerKind::Bpe => PlainTokenizer::Bpe(Box::new(byte_level(vocabulary)?)),
            TokenizerKind::Spm => PlainTokenizer::Spm(SpmTokenizer::new(vocabulary)),
        };
        let controls = ControlTrie::new(vocabulary.of_kind(TokenKind::Control));
        let bos = vocabulary.bos.filter(|_| vocabulary.add_bos);
        Ok(Tokenizer { plain, controls, bos })
    }

    /// The tokens of a whole prompt that our own side wrote, except where it is marked.
    pub fn encode_prompt(&self, text: &str, mark: Option<char>) -> Result<Vec<u32>, PromptError> {
        let mut ids = self.encode(text, mark)?;
        if let Some(bos) = self.bos.filter(|bos| ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        Ok(ids)
    }

    /// The tokens of a text that our own side wrote, except where it is marked.
    pub fn encode(&self, text: &str, mark: Option<char>) -> Result<Vec<u32>, PromptError> {
        let mut ids = Vec::new();
        let mut rest = 0;
        for found in self.controls.find(text) {
            self.encode_plain(&text[rest..found.at], mark, &mut ids)?;
            ids.push(found.id);
            rest = found.at + found.length;
        }
        self.encode_plain(&text[rest..], mark, &mut ids)?;
        Ok(ids)
    }

    /// The text with a mark inside every control token that it spells, so that none is found in it.
    pub fn mark(&self, text: &str, mark: char) -> String {
        let mut marked = String::with_capacity(text.len());
        let mut rest = 0;
        for found in self.controls.find(text) {
            let inside = found.at + text[found.at..].chars().next().map_or(0, char::len_utf8);
            marked.push_str(&text[rest..inside]);
            marked.push(mark);
            rest = inside;
        }
        marked.push_str(&text[rest..]);
        marked
    }

    /// True if the text spells a control token.
    pub fn spells_control(&self, text: &str) -> bool {
        self.controls.find(text).next().is_some()
    }

    fn encode_plain(&self, text: &str, mark: Option<char>, ids: &mut Vec<u32>) -> Result<(), PromptError> {
        let unmarked = mark.filter(|mark| text.contains(*mark)).map(|mark| text.replace(mark, ""));
        let text = unmarked.as_deref().unwrap_or(text);
        if !text.is_empty() {
            match &self.plain {
                PlainTokenizer::Bpe(bpe) => {
                    let encoding = bpe.encode_fast(text, false);
                    let encoding = encoding.map_err(|error| PromptError::Tokenizer(error.to_string()))?;
                    ids.extend_from_slice(encoding.get_ids());
                }
                PlainTokenizer::Spm(spm) => spm.encode(text, ids),
            }
        }
        Ok(())
    }
}

fn byte_level(vocabulary: &Vocabulary) -> Result<tokenizers::Tokenizer, PromptError> {
    let wrong = |error: tokenizers::Error| PromptError::Vocabulary(error.to_string());
    let cut = PreTokenizerSpec::named(&vocabulary.pre)?;
    let mut plain = tokenizers::Tokenizer::new(bpe(vocabulary, cut.whole_words).map_err(wrong)?);
    plain.with_pre_tokenizer(Some(cut.pre_tokenizer().map_err(wrong)?));
    let defined = vocabulary
        .of_kind(TokenKind::UserDefined)
        .map(|(_, text)| AddedToken::from(text, false).normalized(false));
    plain.add_tokens(defined).map_err(wrong)?;
    Ok(plain)
}

fn bpe(vocabulary: &Vocabulary, whole_words: bool) -> tokenizers::Result<BPE> {
    let known = vocabulary
        .iter()
        .filter(|&(id, _)| !matches!(vocabulary.kind(id), TokenKind::Byte | TokenKind::Other));
    let known: Vocab = known.map(|(id, text)| (text.to_owned(), id)).collect();
    let merges = vocabulary.merges.iter().filter_map(|merge| {
        // A merge into no token never applies; the embedded model has one, since llama.cpp wants at least one.
        let (left, right) = merge.split_once(' ')?;
        let all = [left, right, &format!("{left}{right}")].into_iter().all(|text| known.contains_key(text));
        all.then(|| (left.to_owned(), right.to_owned()))
    });
    let merges = merges.collect();
    BPE::builder().vocab_and_merges(known, merges).ignore_merges(whole_words).build()
}
