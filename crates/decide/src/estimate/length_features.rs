//! What is counted in a text for the lengths of its thought and its answer: the surface features, and what sets formulas,
//! programs and scripts apart.

use stint_types::catalog::{LENGTH_FEATURES, SURFACE_FEATURES, TaskClass};

use super::scale::{as_number, flag, log, share};
use super::scripts::english_bytes;
use super::task_cues::MarkupCounts;
use super::text::TextAnalysis;

/// Beyond the surface features but their first, which is always 1.
const BESIDE: usize = LENGTH_FEATURES - (SURFACE_FEATURES - 1);
/// Bytes to a token of text with blanks, and tokens to a letter of text without: rules of thumb.
const BYTES_PER_TOKEN: f64 = 4.0;
const TOKENS_PER_LETTER: f64 = 0.9;
/// So few bytes of English are a greeting, and so few a short question.
const GREETING: usize = 16;
const SHORT: usize = 40;

/// The features of a text, in the order of the shipped weights.
pub(super) fn of(reading: &TextAnalysis<'_>, surface: &[f64; SURFACE_FEATURES]) -> [f64; LENGTH_FEATURES] {
    let mut features = [0.0; LENGTH_FEATURES];
    let (counted, beside) = features.split_at_mut(SURFACE_FEATURES - 1);
    counted.copy_from_slice(&surface[1..]);
    beside.copy_from_slice(&beside_surface(reading));
    features
}

fn beside_surface(reading: &TextAnalysis<'_>) -> [f64; BESIDE] {
    let markup = MarkupCounts::of(&reading.tally.counts);
    let letters = markup.unspaced;
    // Most such letters have three bytes.
    let spaced = reading.text.len().saturating_sub(3 * letters);
    let tokens = as_number(spaced) / BYTES_PER_TOKEN + as_number(letters) * TOKENS_PER_LETTER;
    // Longer texts are neither, in any script.
    let said = if reading.text.len() > 4 * SHORT { reading.text.len() } else { english_bytes(reading.text) };
    [
        tokens.ln_1p(),
        share(letters, spaced + letters),
        log(markup.backslashes),
        log(markup.dollars),
        log(markup.backticks),
        log(markup.code),
        flag(said <= GREETING),
        flag(said <= SHORT),
        log(markup.scripts),
    ]
}

/// Which of the kinds of text that have weights of their own a text of this class is.
pub(super) fn kind(class: TaskClass) -> usize {
    match class {
        TaskClass::Math => 0,
        TaskClass::Code => 1,
        TaskClass::MultipleChoice => 2,
        TaskClass::Extraction | TaskClass::Agentic | TaskClass::Chat => 3,
    }
}
