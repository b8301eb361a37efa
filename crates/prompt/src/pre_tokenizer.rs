//! How byte-level BPE cuts text into words before it merges; files name the way.

use tokenizers::SplitDelimiterBehavior;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

use super::error::PromptError;

/// How text is cut into words before merging.
pub(super) struct PreTokenizerSpec {
    patterns: &'static [&'static str],
    /// A word that is a token is that token, whatever the merges say.
    pub(super) whole_words: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DIGIT: &str = r"\p{N}";
/// Of Mistral since Nemo.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// llama.cpp's own, for files that name none.
const DEFAULT: [&str; 4] = [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"];

/// Whether models that cut text in this way want a token before every prompt, where their file says nothing of it.
pub(super) fn begins_with_token(name: &str) -> bool {
    name == "tekken" || LIKE_LLAMA3.contains(&name)
}

/// Names of Llama 3's way.
const LIKE_LLAMA3: [&str; 6] = ["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "midm-2.0"];

impl PreTokenizerSpec {
    pub(super) fn named(name: &str) -> Result<PreTokenizerSpec, PromptError> {
        let (patterns, whole_words): (&[&str], bool) = match name {
            "gpt-2" | "phi-2" | "mellum" | "gigachat" | "a.x-4.0" => (&[GPT2], false),
            "" | "default" => (&DEFAULT, false),
            "qwen2" | "deepseek-r1-qwen" | "megrez" | "kormo" => (&[QWEN2], false),
            "smollm" | "starcoder" | "refact" | "command-r" => (&[DIGIT, GPT2], false),
            "tekken" => (&[TEKKEN], true),
            "smaug-bpe" | "dbrx" => (&[LLAMA3], false),
            name if LIKE_LLAMA3.contains(&name) => (&[LLAMA3], true),
            other => return Err(PromptError::PreTokenizer(other.to_owned())),
        };
        Ok(PreTokenizerSpec { patterns, whole_words })
    }

    pub(super) fn pre_tokenizer(&self) -> tokenizers::Result<PreTokenizerWrapper> {
        let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
        for pattern in self.patterns {
            let pattern = SplitPattern::Regex((*pattern).to_owned());
            steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false)?.into());
        }
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps).into())
    }
}
