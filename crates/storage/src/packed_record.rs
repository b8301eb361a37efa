//! The texts of a request record in a quarter of their room: LZ4, behind a text of the words that all of them have.
//!
//! A row takes a page of 4 KiB as it is, and six of them share one when packed.

/// What most records consist of. Rows are read with it: it never changes, and another one gets another [`FORMAT`].
const WORDS: &[u8] = include_bytes!("record_words.txt");
/// The first byte of what is packed with [`WORDS`].
const FORMAT: u8 = 1;
/// That byte, and how long the text is: four bytes, the least first.
const HEAD: usize = 5;
/// No record comes near it.
const TEXT_MAX: u32 = 64 << 20;

/// Both texts as one value. They are JSON on one line each.
pub(crate) fn pack(decision: String, outcome: &str) -> Vec<u8> {
    let mut text = decision;
    text.push('\n');
    text.push_str(outcome);
    let most = HEAD + lz4_flex::block::get_maximum_output_size(text.len());
    let mut packed = vec![0; most];
    let written = lz4_flex::block::compress_into_with_dict(text.as_bytes(), &mut packed[HEAD..], WORDS);
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    packed[0] = FORMAT;
    packed[1..HEAD].copy_from_slice(&length.to_le_bytes());
    // It has room for the longest there can be.
    packed.truncate(HEAD + written.unwrap_or(0));
    packed
}

/// The decision and the outcome again.
///
/// # Errors
/// Where [`pack`] of this version did not make it.
pub(crate) fn unpack(packed: &[u8]) -> Result<(String, String), UnpackError> {
    let (&format, block) = packed.split_first().ok_or(UnpackError::Empty)?;
    if format != FORMAT {
        return Err(UnpackError::Format(format));
    }
    let length = block.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let length = length.filter(|&length| length <= TEXT_MAX).ok_or(UnpackError::Torn)?;
    let text = lz4_flex::block::decompress_size_prepended_with_dict(block, WORDS);
    // What is cut off between two of its parts is only shorter.
    let text = text.ok().filter(|text| u32::try_from(text.len()) == Ok(length));
    let text = text.and_then(|text| String::from_utf8(text).ok()).ok_or(UnpackError::Torn)?;
    let (decision, outcome) = text.split_once('\n').ok_or(UnpackError::Torn)?;
    Ok((decision.to_owned(), outcome.to_owned()))
}

/// A packed record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("a packed request record is empty")]
    Empty,
    #[error("a request record is packed by format {0}; this version of Stint reads {FORMAT}")]
    Format(u8),
    #[error("a packed request record is damaged")]
    Torn,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECISION: &str =
        r#"{"why":"chat, difficulty 0.46: m answers without thinking","id":"req_1","difficulty":0.458}"#;
    const OUTCOME: &str = r#"{"ended":"finished","error":null,"model":"modèle"}"#;

    #[test]
    fn a_record_comes_back_as_it_was_and_is_shorter() {
        let packed = pack(DECISION.to_owned(), OUTCOME);
        assert!(packed.len() * 2 < DECISION.len() + OUTCOME.len(), "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), (DECISION.to_owned(), OUTCOME.to_owned()));
    }

    #[test]
    fn the_words_are_those_of_every_row_there_is() {
        let sum = WORDS.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        assert_eq!(
            (WORDS.len(), sum),
            (2062, 7_468_068_653_711_748_915),
            "rows of earlier versions could not be read"
        );
    }

    #[test]
    fn what_is_damaged_is_told_from_what_is_newer() {
        let packed = pack(DECISION.to_owned(), OUTCOME);
        assert_eq!(unpack(&[]), Err(UnpackError::Empty));
        assert_eq!(unpack(&[2, 0, 0]), Err(UnpackError::Format(2)));
        assert_eq!(unpack(&[1, 255, 255, 255, 255, 0]), Err(UnpackError::Torn));
        for length in 1..packed.len() {
            assert!(unpack(&packed[..length]).is_err(), "{length}");
        }
    }
}
