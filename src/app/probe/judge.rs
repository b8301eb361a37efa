//! Judges from the outcomes of a probe which enforcement classes and effort words an upstream honours. Pure.

use stint_backend::{Failure, Fault, Retry};
use stint_types::catalog::{EFFORT_WORDS, EffortLevel, EnforcementClass, effort_rank};
use stint_types::units::Tokens;

use super::attempt::ProbeOutcome;

/// Whether a class does what it promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ClassVerdict {
    /// The thought stayed within its budget and an answer came, though left alone it thinks longer.
    Holds,
    /// It stayed within its budget, as it may have done by itself.
    Unclear,
    /// The thought went beyond its budget.
    Overruns,
    /// No answer came.
    NoAnswer,
    /// The upstream refused.
    Refused,
    /// It failed, or was busy: nothing was found out.
    Failed,
}

/// True if an upstream did not take what it was asked; false if something went wrong that may pass.
pub(super) fn is_refusal(failure: &Failure) -> bool {
    failure.retry != Retry::Again && failure.fault != Fault::Credential
}

impl ClassVerdict {
    /// What a failure says.
    pub(super) fn of(failure: &Failure) -> ClassVerdict {
        if is_refusal(failure) { ClassVerdict::Refused } else { ClassVerdict::Failed }
    }

    pub(super) fn label(&self) -> &'static str {
        match self {
            ClassVerdict::Holds => "holds",
            ClassVerdict::Unclear => "unclear",
            ClassVerdict::Overruns => "does not hold",
            ClassVerdict::NoAnswer => "gives no answer",
            ClassVerdict::Refused => "refused",
            ClassVerdict::Failed => "failed",
        }
    }

    /// What that means, for the reader.
    pub(super) fn meaning(&self) -> &'static str {
        match self {
            ClassVerdict::Holds => {
                "it thinks longer when left alone, kept to the budget here, and answered: the class is used"
            }
            ClassVerdict::Unclear => {
                "it kept to the budget, as it may have done without one: the class is used, and counted along"
            }
            ClassVerdict::Overruns => "it thought beyond the budget: the class is not used",
            ClassVerdict::NoAnswer => {
                "it kept to the budget, and wrote no answer after the thought: the class is not used"
            }
            ClassVerdict::Refused => "the upstream takes no such request: the class is not used",
            ClassVerdict::Failed => {
                "the upstream failed or was busy, so nothing was found out: what was known stays; probe again"
            }
        }
    }

    /// True if the class is to be offered, which it was before or not.
    pub(super) fn is_kept(self, before: bool) -> bool {
        match self {
            ClassVerdict::Holds | ClassVerdict::Unclear => true,
            ClassVerdict::Overruns | ClassVerdict::NoAnswer | ClassVerdict::Refused => false,
            ClassVerdict::Failed => before,
        }
    }
}

/// Judges what a class made of a budget of `t`, beside what the model thinks when left alone.
pub(super) fn judge_class(
    class: EnforcementClass,
    t: Tokens,
    outcomes: &[ProbeOutcome],
    alone: Option<Tokens>,
) -> ClassVerdict {
    if outcomes.is_empty() {
        return ClassVerdict::Refused;
    }
    let used = outcomes.iter().map(|outcome| outcome.spent.thinking_total()).max().unwrap_or_default();
    let overran = outcomes.iter().any(|outcome| outcome.spent.overran);
    if overran || used > thinking_bound(class, t) {
        ClassVerdict::Overruns
    } else if outcomes.iter().any(|outcome| !outcome.answered) {
        ClassVerdict::NoAnswer
    } else if alone.is_some_and(|alone| alone > thinking_bound(class, t)) {
        ClassVerdict::Holds
    } else {
        ClassVerdict::Unclear
    }
}

/// The most that a class may think under a budget of `t`: `turn` is cut within one event, for which there is a margin.
fn thinking_bound(class: EnforcementClass, t: Tokens) -> Tokens {
    match class {
        EnforcementClass::Inline | EnforcementClass::Continue => t,
        EnforcementClass::Turn | EnforcementClass::Native | EnforcementClass::Effort => {
            EnforcementClass::native_max(t)
        }
    }
}

/// What came of an effort word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EffortResult {
    /// It thought so much.
    Taken(Tokens),
    /// The upstream does not know the word.
    Refused,
    /// Nothing was found out.
    Failed,
}

impl EffortResult {
    pub(super) fn of(failure: &Failure) -> EffortResult {
        if is_refusal(failure) { EffortResult::Refused } else { EffortResult::Failed }
    }

    pub(super) fn usual(self) -> Option<Tokens> {
        match self {
            EffortResult::Taken(usual) => Some(usual),
            EffortResult::Refused | EffortResult::Failed => None,
        }
    }
}

/// What a model's effort words make of its thinking.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EffortScale {
    /// They were not tried, or something failed, or there was nothing to think about: what was known stays.
    Unknown,
    /// Several are taken, and it thinks the same at all of them; or none is.
    Flat,
    /// They make a difference, or there is but one.
    Levels(Vec<EffortLevel>),
}

impl EffortScale {
    /// What is written of it.
    pub(super) fn into_levels(self) -> Option<Vec<EffortLevel>> {
        match self {
            EffortScale::Unknown => None,
            EffortScale::Flat => Some(Vec::new()),
            EffortScale::Levels(levels) => Some(levels),
        }
    }

    /// What is printed of it beyond the table.
    pub(super) fn remark(&self) -> Option<&'static str> {
        match self {
            EffortScale::Flat => Some("its effort words change nothing: none is sent"),
            EffortScale::Unknown | EffortScale::Levels(_) => None,
        }
    }
}

/// The effort scale that was measured: words that think no longer than a lesser one are left out, since they buy
/// nothing.
pub(super) fn effort_scale(measured: &[(String, EffortResult)]) -> EffortScale {
    if measured.is_empty() || measured.iter().any(|(_, effort)| *effort == EffortResult::Failed) {
        return EffortScale::Unknown;
    }
    let taken = measured.iter().filter_map(|(word, effort)| Some((word, effort.usual()?)));
    let mut sorted: Vec<(&String, Tokens)> = taken.collect();
    let most = sorted.iter().map(|(_, usual)| *usual).max().unwrap_or_default();
    let least = sorted.iter().map(|(_, usual)| *usual).min().unwrap_or_default();
    if !sorted.is_empty() && most == Tokens::ZERO {
        return EffortScale::Unknown;
    }
    // Two draws of one and the same thought differ that much.
    if sorted.len() != 1 && most.0 <= least.0 + least.0 / 5 {
        return EffortScale::Flat;
    }
    sorted.sort_by_key(|(word, usual)| (effort_rank(word), *usual));
    let mut levels: Vec<EffortLevel> = Vec::new();
    for (word, usual) in sorted {
        if levels.last().is_none_or(|last| last.usual < usual) {
            levels.push(EffortLevel { word: word.clone(), usual });
        }
    }
    EffortScale::Levels(levels)
}

/// Whether it thinks at every word, "none" among them or refused; unknown where that was not found out.
pub(super) fn thinks_always(measured: &[(String, EffortResult)]) -> Option<bool> {
    let none = measured.iter().find(|(word, _)| word == EFFORT_WORDS[0])?;
    let others = || measured.iter().filter_map(|(_, effort)| effort.usual());
    match none.1 {
        EffortResult::Taken(usual) => Some(usual > Tokens::ZERO),
        EffortResult::Refused => others().min().map(|least| least > Tokens::ZERO),
        EffortResult::Failed => None,
    }
}

/// The middle one of several counts, the lower of two.
pub(super) fn median(counts: impl IntoIterator<Item = Tokens>) -> Option<Tokens> {
    let mut counts: Vec<Tokens> = counts.into_iter().collect();
    counts.sort_unstable();
    counts.get(counts.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::ChoiceUsage;
    use stint_types::chat::FinishReason;

    fn outcome(thinking: u64, answered: bool) -> ProbeOutcome {
        let spent = ChoiceUsage { thinking: Tokens(thinking), ..ChoiceUsage::default() };
        ProbeOutcome { spent, answered, shows_thought: true, finish: FinishReason::Stop }
    }

    fn check(of: EnforcementClass, outcomes: &[ProbeOutcome], alone: u64, expected: &ClassVerdict) {
        assert_eq!(&judge_class(of, Tokens(64), outcomes, Some(Tokens(alone))), expected);
    }

    #[test]
    fn a_class_holds_what_it_promises_and_no_more() {
        check(EnforcementClass::Continue, &[outcome(64, true)], 300, &ClassVerdict::Holds);
        check(EnforcementClass::Continue, &[outcome(65, true)], 300, &ClassVerdict::Overruns);
        check(EnforcementClass::Native, &[outcome(100, true)], 300, &ClassVerdict::Holds);
        check(
            EnforcementClass::Native,
            &[outcome(10, true), outcome(104, true)],
            300,
            &ClassVerdict::Overruns,
        );
        check(EnforcementClass::Native, &[outcome(40, true)], 90, &ClassVerdict::Unclear);
        check(EnforcementClass::Native, &[outcome(40, false)], 300, &ClassVerdict::NoAnswer);
        check(EnforcementClass::Native, &[], 300, &ClassVerdict::Refused);
        let backstopped = ProbeOutcome {
            spent: ChoiceUsage { overran: true, ..ChoiceUsage::default() },
            ..outcome(0, true)
        };
        check(EnforcementClass::Native, &[backstopped], 300, &ClassVerdict::Overruns);
    }

    fn words(scale: EffortScale) -> Vec<String> {
        scale.into_levels().unwrap().into_iter().map(|level| level.word).collect()
    }

    fn measured(words: &[(&str, u64)]) -> Vec<(String, EffortResult)> {
        words.iter().map(|(word, usual)| ((*word).to_owned(), EffortResult::Taken(Tokens(*usual)))).collect()
    }

    #[test]
    fn words_that_buy_nothing_are_left_out() {
        let noisy = measured(&[("low", 100), ("medium", 90), ("own", 5), ("high", 900)]);
        assert_eq!(words(effort_scale(&noisy)), ["own", "low", "high"], "never more for a lesser word");
        let all = [("high", 900), ("low", 100), ("medium", 100), ("none", 0), ("xhigh", 950)];
        assert_eq!(words(effort_scale(&measured(&all))), ["none", "low", "high", "xhigh"]);
        assert_eq!(median([Tokens(5), Tokens(1), Tokens(9)]), Some(Tokens(5)));
        assert_eq!(median([]), None);
    }

    #[test]
    fn words_that_change_nothing_are_no_scale_and_what_was_not_found_out_is_not_said() {
        assert_eq!(effort_scale(&measured(&[("none", 90), ("low", 95), ("high", 101)])), EffortScale::Flat);
        assert_eq!(effort_scale(&measured(&[("none", 0), ("high", 0)])), EffortScale::Unknown);
        assert_eq!(words(effort_scale(&measured(&[("high", 90)]))), ["high"]);
        let refused = |word: &str| (word.to_owned(), EffortResult::Refused);
        assert_eq!(effort_scale(&[refused("low"), refused("high")]), EffortScale::Flat);
        let mut failed = measured(&[("none", 0), ("high", 90)]);
        failed.push(("low".to_owned(), EffortResult::Failed));
        assert_eq!(effort_scale(&failed), EffortScale::Unknown);
    }

    #[test]
    fn whether_it_can_be_kept_from_thinking_is_seen_at_the_word_for_that() {
        assert_eq!(thinks_always(&measured(&[("none", 0), ("high", 90)])), Some(false));
        assert_eq!(thinks_always(&measured(&[("none", 20), ("high", 90)])), Some(true));
        assert_eq!(thinks_always(&measured(&[("low", 20)])), None);
        let mut refused = measured(&[("low", 20)]);
        refused.push(("none".to_owned(), EffortResult::Refused));
        assert_eq!(thinks_always(&refused), Some(true));
    }
}
