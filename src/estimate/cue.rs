//! Words that tell what a question is about.

/// What a word hints at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// Something is multiplied, in words.
    Rate,
    /// Two things are compared.
    Compare,
    /// An amount is asked for.
    Amount,
    /// Mathematics without numbers.
    Proof,
    /// Something is to be found in a text.
    Extract,
    /// A program.
    Code,
}

/// Longer words hint at nothing.
const LONGEST: usize = 12;

impl Cue {
    /// The hint of a word in any case.
    pub(super) fn of(word: &str) -> Option<Cue> {
        if word.contains('_') && word.len() > 3 {
            return Some(Cue::Code);
        }
        let mut lower = [0; LONGEST];
        let lower = lower.get_mut(..word.len())?;
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        Some(match &*lower {
            b"per" | b"each" | b"every" | b"times" | b"rows" | b"boxes" | b"packs" | b"bags" | b"day"
            | b"days" | b"week" | b"weeks" | b"hour" | b"hours" => Cue::Rate,
            b"larger" | b"bigger" | b"greater" | b"smaller" | b"less" | b"largest" | b"smallest"
            | b"compare" => Cue::Compare,
            b"many" | b"much" | b"calculate" | b"compute" | b"sum" | b"solve" => Cue::Amount,
            b"prove" | b"theorem" | b"integral" | b"derivative" | b"equation" | b"polynomial"
            | b"probability" | b"modulo" => Cue::Proof,
            b"extract" | b"summarize" | b"summarise" | b"summary" | b"quote" => Cue::Extract,
            b"fn" | b"def" | b"impl" | b"struct" | b"const" | b"return" | b"async" | b"await"
            | b"println" | b"printf" | b"nullptr" | b"elif" | b"lambda" | b"enum" | b"func" | b"void"
            | b"import" => Cue::Code,
            _ => return None,
        })
    }
}
