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

/// How a question is put, for the shipped prior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// What is asked for is what does not hold.
    Negation,
    /// Something is worked out.
    Calculation,
    /// Something is named.
    Question,
    /// Something is weighed or explained.
    Judgement,
    /// Something is given or supposed.
    Condition,
    /// Something is multiplied.
    Rate,
    /// It points to what stands elsewhere.
    Reference,
    /// It is about statements that hold or not.
    Statement,
}

impl Style {
    /// How many there are.
    pub(super) const COUNT: usize = Style::Statement as usize + 1;
}

/// The style that a word in any case hints at.
pub(super) fn style(word: &str) -> Option<Style> {
    let mut lower = [0; LONGEST];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"not" | b"except" | b"least" | b"false" | b"incorrect" | b"never" | b"cannot" | b"without" => {
            Style::Negation
        }
        b"calculate" | b"compute" | b"determine" | b"find" | b"evaluate" | b"solve" | b"many" | b"much"
        | b"estimate" => Style::Calculation,
        b"what" | b"which" | b"who" | b"when" | b"where" | b"whose" => Style::Question,
        b"why" | b"how" | b"explain" | b"describe" | b"best" | b"likely" | b"most" | b"should"
        | b"according" => Style::Judgement,
        b"if" | b"suppose" | b"assume" | b"assuming" | b"let" | b"given" | b"consider" => Style::Condition,
        b"per" | b"each" | b"every" | b"times" | b"percent" | b"half" | b"twice" | b"rate" => Style::Rate,
        b"following" | b"above" | b"below" | b"refers" | b"passage" | b"argument" => Style::Reference,
        b"statement" | b"statements" | b"true" => Style::Statement,
        _ => return None,
    })
}
