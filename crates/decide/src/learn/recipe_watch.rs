//! Whether a recipe of a route is of any use, by what it did: counts of what happened, and when they say that it is not.

use stint_types::units::Chance;

/// How many requests a vote or a cascade acts on before it is decided about, and how many a new model serves at least.
pub const RECIPE_TRIAL: u32 = 50;
/// After how many requests of its route a suspended recipe is tried again.
pub const RECIPE_RETRY: u32 = 1000;

/// So few of a trial count as none: what happens once may be luck.
const RARELY: u32 = 1;
/// So many judged answers on either side tell which is judged worse.
const JUDGED_LEAST: f64 = 20.0;
/// From so many standard errors on, a new model is worse than the others. It is looked at after each request, so that two would
/// suspend one in five that is as good.
const WORSE_BY: f64 = 3.5;
/// Beyond so many requests of either side all counts are halved, so that a model that has changed is noticed.
const COUNTED_MAX: f64 = 2000.0;

/// Why a recipe is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspensionReason {
    /// No two answers are alike: they are compared in a form that they do not have.
    NeverAgreed,
    /// The verifier came to no verdict.
    NeverVerified,
    /// The first answer always was the one delivered.
    NothingChanged,
    /// The dearer model was asked every time.
    AlwaysEscalated,
    /// The new model fails more often than the others.
    CanaryFails,
    /// The new model is judged worse than the others.
    CanaryJudgedWorse,
}

/// What a vote or a cascade did for one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplingEvidence {
    /// Several answers were made.
    pub compared: bool,
    /// Two of them were alike.
    pub agreed: bool,
    /// Whether the verifier came to a verdict; nothing where there is none.
    pub verified: Option<bool>,
    /// Another answer than the first one was chosen.
    pub changed: bool,
    /// Whether a dearer model was asked; nothing where there was none to ask.
    pub escalated: Option<bool>,
}

/// What the votes and cascades of a route did since they were last decided about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplingWatch {
    requests: u32,
    compared: u32,
    agreed: u32,
    unverified: u32,
    cascades: u32,
    escalated: u32,
    changed: u32,
}

/// What came of one request of a route that tries a new model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CanaryEvidence {
    /// It ended.
    Ended {
        /// Without an answer of the model that it was for.
        failed: bool,
    },
    /// Its answer was judged.
    Judged(Chance),
}

/// How the requests of a new model end and are judged, beside those of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CanaryWatch {
    canary: CanaryArm,
    others: CanaryArm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CanaryArm {
    ended: f64,
    failed: f64,
    judged: f64,
    scores: f64,
}

impl SuspensionReason {
    /// What is done about it and why, as `why` says it.
    pub fn as_words(self) -> &'static str {
        match self {
            SuspensionReason::NeverAgreed => {
                "no vote for now, since hardly two answers of the last 50 votes were alike"
            }
            SuspensionReason::NeverVerified => {
                "answered once for now, since the verifier came to no verdict on the last 50 requests"
            }
            SuspensionReason::NothingChanged => {
                "no vote for now, since none of the last 50 changed the first answer"
            }
            SuspensionReason::AlwaysEscalated => {
                "no cascade for now, since the dearer model was asked every time of the last 50"
            }
            SuspensionReason::CanaryFails => "the new model is not tried for now, since it failed too often",
            SuspensionReason::CanaryJudgedWorse => {
                "the new model is not tried for now, since its answers were judged worse"
            }
        }
    }
}

impl SamplingWatch {
    /// Takes in one request that was voted on or cascaded. After [`RECIPE_TRIAL`] of them it says what is wrong, if anything is,
    /// and begins anew.
    pub fn observe(&mut self, evidence: SamplingEvidence) -> Option<SuspensionReason> {
        let SamplingEvidence { compared, agreed, verified, changed, escalated } = evidence;
        self.requests += 1;
        self.compared += u32::from(compared);
        self.agreed += u32::from(agreed);
        self.unverified += u32::from(verified == Some(false));
        self.cascades += u32::from(escalated.is_some());
        self.escalated += u32::from(escalated == Some(true));
        self.changed += u32::from(changed);
        if self.requests < RECIPE_TRIAL {
            return None;
        }
        std::mem::take(self).decide()
    }

    fn decide(self) -> Option<SuspensionReason> {
        let votes = self.requests - self.cascades;
        if self.unverified + RARELY >= self.requests {
            return Some(SuspensionReason::NeverVerified);
        }
        if self.compared + RARELY >= self.requests && self.agreed <= RARELY {
            return Some(SuspensionReason::NeverAgreed);
        }
        if self.cascades > votes {
            let always = self.escalated + RARELY >= self.cascades;
            return always.then_some(SuspensionReason::AlwaysEscalated);
        }
        (self.changed == 0).then_some(SuspensionReason::NothingChanged)
    }
}

impl CanaryWatch {
    /// Takes in what came of a request, of the new model or of the others. Says what is wrong, if anything is, and begins anew.
    pub fn observe(&mut self, of_canary: bool, evidence: CanaryEvidence) -> Option<SuspensionReason> {
        let arm = if of_canary { &mut self.canary } else { &mut self.others };
        match evidence {
            CanaryEvidence::Ended { failed } => {
                arm.ended += 1.0;
                arm.failed += f64::from(u8::from(failed));
            }
            CanaryEvidence::Judged(score) => {
                arm.judged += 1.0;
                arm.scores += score.get();
            }
        }
        if arm.ended.max(arm.judged) >= COUNTED_MAX {
            arm.halve();
        }
        let reason = self.decide();
        if reason.is_some() {
            *self = CanaryWatch::default();
        }
        reason
    }

    fn decide(&self) -> Option<SuspensionReason> {
        let CanaryWatch { canary, others } = self;
        let failing = canary.ended >= f64::from(RECIPE_TRIAL)
            && is_less((others.failed, others.ended), (canary.failed, canary.ended));
        if failing {
            return Some(SuspensionReason::CanaryFails);
        }
        let worse = canary.judged >= JUDGED_LEAST
            && others.judged >= JUDGED_LEAST
            && is_less((canary.scores, canary.judged), (others.scores, others.judged));
        worse.then_some(SuspensionReason::CanaryJudgedWorse)
    }
}

impl CanaryArm {
    fn halve(&mut self) {
        for count in [&mut self.ended, &mut self.failed, &mut self.judged, &mut self.scores] {
            *count /= 2.0;
        }
    }
}

/// Whether one share is less than another beyond doubt: by the pooled two-sample test of proportions. Scores between 0 and 1 vary
/// no more than what is right or wrong.
fn is_less((some, of): (f64, f64), (more, than): (f64, f64)) -> bool {
    if of <= 0.0 || than <= 0.0 {
        return false;
    }
    let share = (some + more) / (of + than);
    let error = (share * (1.0 - share) * (of.recip() + than.recip())).sqrt();
    error > 0.0 && (more / than - some / of) / error > WORSE_BY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vote that is as it should be.
    const GOOD: SamplingEvidence =
        SamplingEvidence { compared: true, agreed: true, verified: None, changed: false, escalated: None };

    fn check(each: impl Fn(u32) -> SamplingEvidence, expected: Option<SuspensionReason>) {
        let mut watch = SamplingWatch::default();
        for at in 1..RECIPE_TRIAL {
            assert_eq!(watch.observe(each(at)), None, "decided after {at}");
        }
        assert_eq!(watch.observe(each(0)), expected);
        assert_eq!(watch, SamplingWatch::default(), "a trial begins anew");
    }

    #[test]
    fn a_vote_is_of_use_where_it_changes_an_answer_now_and_then() {
        check(|at| SamplingEvidence { changed: at == 7, ..GOOD }, None);
        check(|_| GOOD, Some(SuspensionReason::NothingChanged));
    }

    #[test]
    fn answers_that_are_never_alike_have_another_form() {
        check(
            |at| SamplingEvidence { agreed: at == 3, changed: at == 3, ..GOOD },
            Some(SuspensionReason::NeverAgreed),
        );
    }

    #[test]
    fn a_verifier_without_verdicts_is_none() {
        let each = |verified| SamplingEvidence {
            compared: false,
            agreed: false,
            verified: Some(verified),
            escalated: Some(false),
            ..GOOD
        };
        check(|_| each(false), Some(SuspensionReason::NeverVerified));
        check(|at| each(at % 2 == 0), None);
    }

    #[test]
    fn a_cascade_whose_first_step_decides_nothing_is_of_no_use() {
        let each = |escalated| SamplingEvidence { escalated: Some(escalated), ..GOOD };
        check(|_| each(true), Some(SuspensionReason::AlwaysEscalated));
        check(|at| each(at % 10 != 0), None);
        check(|_| each(false), None);
    }

    fn canary(canary: impl Fn(u32) -> bool, others: impl Fn(u32) -> bool) -> Option<SuspensionReason> {
        let mut watch = CanaryWatch::default();
        (0..200).find_map(|at| {
            let ended = |failed| CanaryEvidence::Ended { failed };
            watch.observe(false, ended(others(at))).or_else(|| watch.observe(true, ended(canary(at))))
        })
    }

    #[test]
    fn a_new_model_that_fails_more_often_is_not_tried_any_more() {
        assert_eq!(canary(|at| at % 3 == 0, |at| at % 20 == 0), Some(SuspensionReason::CanaryFails));
        assert_eq!(canary(|at| at % 20 == 5, |at| at % 20 == 0), None);
        assert_eq!(canary(|_| false, |at| at % 3 == 0), None, "nobody minds a better one");
        assert_eq!(canary(|_| true, |_| true), None, "it is not its fault");
    }

    #[test]
    fn a_new_model_whose_answers_are_judged_worse_is_not_tried_any_more() {
        let mut watch = CanaryWatch::default();
        let judged = |score| CanaryEvidence::Judged(Chance::new(score));
        for _ in 0..40 {
            assert_eq!(watch.observe(false, judged(0.9)), None);
        }
        let found = (0..40).find_map(|_| watch.observe(true, judged(0.4)));
        assert_eq!(found, Some(SuspensionReason::CanaryJudgedWorse));
    }
}
