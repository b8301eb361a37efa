//! What outcomes say of an upstream. Pure.

use crate::catalog::{Class, EffortLevel, effort_rank};
use crate::units::Tokens;

use super::attempt::Outcome;

/// Whether a class does what it promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The thought stayed within its budget and an answer came, though left alone it thinks longer.
    Holds,
    /// It stayed within its budget, as it may have done by itself.
    Unclear,
    /// The thought went beyond its budget.
    Overruns,
    /// No answer came.
    Silent,
    /// The upstream refused.
    Refused,
}

impl Verdict {
    pub(super) fn words(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Unclear => "unclear",
            Verdict::Overruns => "does not hold",
            Verdict::Silent => "gives no answer",
            Verdict::Refused => "refused",
        }
    }

    /// What that means for whoever reads it.
    pub(super) fn meaning(&self) -> &'static str {
        match self {
            Verdict::Holds => {
                "it thinks longer when left alone, kept to the budget here, and answered: the class is used"
            }
            Verdict::Unclear => {
                "it kept to the budget, as it may have done without one: the class is used, and counted along"
            }
            Verdict::Overruns => "it thought beyond the budget: the class is not used",
            Verdict::Silent => {
                "it kept to the budget, and wrote no answer after the thought: the class is not used"
            }
            Verdict::Refused => {
                "the upstream takes no such request, or could not be reached: the class is not used"
            }
        }
    }

    /// True where the class may be offered.
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Verdict::Holds | Verdict::Unclear)
    }
}

/// Judges what a class made of a budget of `t`, beside what the model thinks when left alone.
pub(super) fn class(class: Class, t: Tokens, outcomes: &[Outcome], alone: Option<Tokens>) -> Verdict {
    if outcomes.is_empty() {
        return Verdict::Refused;
    }
    let used = outcomes.iter().map(|outcome| outcome.spent.thought()).max().unwrap_or_default();
    let overran = outcomes.iter().any(|outcome| outcome.spent.overran);
    if overran || used > most(class, t) {
        Verdict::Overruns
    } else if outcomes.iter().any(|outcome| !outcome.answered) {
        Verdict::Silent
    } else if alone.is_some_and(|alone| alone > most(class, t)) {
        Verdict::Holds
    } else {
        Verdict::Unclear
    }
}

/// The most that a class may think under a budget of `t`: `turn` is cut within one event, for which there is a margin.
fn most(class: Class, t: Tokens) -> Tokens {
    match class {
        Class::Inline | Class::Continue => t,
        Class::Turn | Class::Native | Class::Effort => Class::native_most(t),
    }
}

/// The effort scale that was measured: words that think no longer than a lesser one are left out, since they buy
/// nothing.
pub(super) fn efforts(measured: &[(String, Tokens)]) -> Vec<EffortLevel> {
    let mut sorted: Vec<&(String, Tokens)> = measured.iter().collect();
    sorted.sort_by_key(|(word, usual)| (effort_rank(word), *usual));
    let mut levels: Vec<EffortLevel> = Vec::new();
    for (word, usual) in sorted {
        if levels.last().is_none_or(|last| last.usual < *usual) {
            levels.push(EffortLevel { word: word.clone(), usual: *usual });
        }
    }
    levels
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
    use crate::catalog::Spent;
    use crate::chat::Finish;

    fn outcome(thinking: u64, answered: bool) -> Outcome {
        let spent = Spent { thinking: Tokens(thinking), ..Spent::default() };
        Outcome { spent, answered, shown: true, finish: Finish::Stop }
    }

    fn check(of: Class, outcomes: &[Outcome], alone: u64, expected: &Verdict) {
        assert_eq!(&class(of, Tokens(64), outcomes, Some(Tokens(alone))), expected);
    }

    #[test]
    fn a_class_holds_what_it_promises_and_no_more() {
        check(Class::Continue, &[outcome(64, true)], 300, &Verdict::Holds);
        check(Class::Continue, &[outcome(65, true)], 300, &Verdict::Overruns);
        check(Class::Native, &[outcome(100, true)], 300, &Verdict::Holds);
        check(Class::Native, &[outcome(10, true), outcome(104, true)], 300, &Verdict::Overruns);
        check(Class::Native, &[outcome(40, true)], 90, &Verdict::Unclear);
        check(Class::Native, &[outcome(40, false)], 300, &Verdict::Silent);
        check(Class::Native, &[], 300, &Verdict::Refused);
        let backstopped = Outcome { spent: Spent { overran: true, ..Spent::default() }, ..outcome(0, true) };
        check(Class::Native, &[backstopped], 300, &Verdict::Overruns);
    }

    #[test]
    fn words_that_buy_nothing_are_left_out() {
        let measured = [("high", 900), ("low", 100), ("medium", 100), ("none", 0), ("xhigh", 950)];
        let measured: Vec<(String, Tokens)> =
            measured.iter().map(|(word, usual)| ((*word).to_owned(), Tokens(*usual))).collect();
        let noisy = [("low", 100), ("medium", 90), ("own", 5), ("high", 900)];
        let noisy = efforts(&noisy.map(|(word, usual)| (word.to_owned(), Tokens(usual))));
        let words: Vec<&str> = noisy.iter().map(|level| &*level.word).collect();
        assert_eq!(words, ["own", "low", "high"], "never more for a lesser word");
        let words: Vec<String> = efforts(&measured).into_iter().map(|level| level.word).collect();
        assert_eq!(words, ["none", "low", "high", "xhigh"]);
        assert_eq!(median([Tokens(5), Tokens(1), Tokens(9)]), Some(Tokens(5)));
        assert_eq!(median([]), None);
    }
}
