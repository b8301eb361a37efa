//! A model's tokens as grammars see them: each by its bytes.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::api::ParserLimits;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};

use stint_prompt::PromptFormat;

/// No UTF-8 has this byte, and a token that begins with it would be taken for a control token.
const NO_TEXT: u8 = 0xFF;

/// What a grammar may cost: a mask some 15 ms at the very most, and usually far less than one.
fn limits() -> ParserLimits {
    ParserLimits {
        max_lexer_states: 50_000,
        max_grammar_size: 200_000,
        // A message of it may reach a log, and a schema is a caller's.
        verbose_errors: false,
        ..ParserLimits::default()
    }
}

/// Makes what makes grammars for a model of so many tokens.
///
/// # Errors
/// Why it cannot be made.
pub(super) fn factory(format: &PromptFormat, vocab: u32) -> Result<ParserFactory, String> {
    let ends: Vec<u32> = format.stop_tokens().iter().copied().filter(|id| *id < vocab).collect();
    let Some(first) = ends.first() else { return Err("the model has no token that ends a text".into()) };
    // Tags of thinking are no text of an answer.
    let tags: Vec<u32> = format.tags().into_iter().flat_map(|tags| [tags.start, tags.end]).collect();
    let word = |id: u32| {
        let bytes = format.token_bytes(id);
        let is_text = !tags.contains(&id) && !ends.contains(&id) && bytes.first() != Some(&NO_TEXT);
        if is_text { bytes.to_vec() } else { Vec::new() }
    };
    let words: Vec<Vec<u8>> = (0..vocab).map(word).collect();
    let trie = TokTrie::from(&TokRxInfo::new(vocab, *first), &words).with_eos_tokens(&ends);
    let tokens: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let slices = SlicedBiasComputer::json_slices();
    let made = ParserFactory::new(&tokens, InferenceCapabilities::default(), &slices);
    let mut factory = made.map_err(|error| error.to_string())?;
    *factory.limits_mut() = limits();
    factory.quiet();
    Ok(factory)
}
