//! How long thoughts and answers are, beside what the prior predicted, for each kind of work and by what the prior says of the
//! request besides.
//!
//! A thought's length is corrected on the prior's own scale ([`super::thought_lengths`]). A cut thought counts as the mean and
//! the square that longer thoughts have under what is believed now: the step of the expectation-maximisation for
//! right-censored data, taken once for each outcome (Cappé and Moulines, *On-line expectation–maximization algorithm for latent
//! data models*, 2009). Of an answer it is the length that is predicted and not its logarithm, for money is linear in it.
//! A model that hardly anybody asked goes by others' levels ([`super::shared_levels`]).

use stint_types::catalog::{LengthTails, LogNormal, ModelDemand, ThinkingStopReason};
use stint_types::units::Tokens;

use super::features::{CLASSES, COUNTS, FeatureRow, OWN, PROMPT, RequestFeatures, class_index};
use super::length_tails;
use super::level_pool::{LevelEvidence, LevelPrior};
use super::outcome_sample::OutcomeSample;
use super::shared_levels::{LengthEvidence, SharedLevels};
use super::slopes::{self, LengthSlopes, SlopePriors};
use super::thought_lengths::{self, Correction, ThoughtLengths};
use super::thought_requests::{self, RequestBelief, ThoughtRequest};

/// How many outcomes make a length a measured one. For so many counts the prediction of an answer, and in a class what is said of
/// all classes.
const PRIOR: f64 = 20.0;
/// What counts beforehand in the slopes of answers.
const ANSWER_PRIORS: SlopePriors = SlopePriors { slopes: &[20.0], class: PRIOR };

/// How many features an answer's length may depend on.
const ANSWER_FEATURES: usize = 5;
/// What an answer's length may depend on: the model's own prediction, the prompt, the trait of how long models write, and the
/// lengths of the question and of its options.
const ANSWER_PLACES: [usize; ANSWER_FEATURES] = [OWN, PROMPT, COUNTS - 1, COUNTS, COUNTS + 10];
/// Sums for each class of answers: how many, and Σ ratio.
const ANSWER_SUMS_EACH: usize = 2;
const ANSWER_SUMS: usize = ANSWER_SUMS_EACH * CLASSES;
/// Where each part of the sums ends.
const THOUGHTS_END: usize = thought_lengths::SUMS;
const ANSWERS_END: usize = THOUGHTS_END + ANSWER_SUMS;
const TAILS_END: usize = ANSWERS_END + length_tails::SUMS;
const ANSWER_SLOPES_END: usize = TAILS_END + slopes::sums_of(ANSWER_FEATURES);
/// All sums: thoughts, answers, how far out they were, the slopes of answers, and which requests are thought about longer.
pub(super) const SUMS: usize = ANSWER_SLOPES_END + thought_requests::SUMS;

/// A longer answer than this many times what was predicted counts as such a one.
const RATIO_MAX: f64 = 20.0;
/// What a request makes of its answer's length, at least and at most, as a share of its class's mean.
const REQUEST_RATIO: std::ops::RangeInclusive<f64> = 0.2..=5.0;
/// By how many of the prior's sigma a request makes its thought longer at most.
const REQUEST_SHIFT_MAX: f64 = 2.0;

/// What is believed about lengths.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LengthBelief {
    thoughts: ThoughtLengths,
    requests: RequestBelief,
    /// Of all classes, and of each: how many answers, and Σ ratio.
    answers: (f64, f64),
    classes: [(f64, f64); CLASSES],
    answer_slopes: LengthSlopes<ANSWER_FEATURES>,
    evidence: LengthEvidence,
    /// How far out lengths are, before and after its thoughts were measured.
    tails: [LengthTails; 2],
}

/// An outcome as lengths go by it.
pub(super) struct LengthOutcome<'a> {
    pub sample: &'a OutcomeSample,
    /// What it tells of requests like its own, which may have been met before.
    pub weight: f64,
    pub features: RequestFeatures<'a>,
    /// The features with what was predicted of a finished thought.
    pub row: FeatureRow,
}

impl<'a> LengthOutcome<'a> {
    pub(super) fn of(sample: &'a OutcomeSample, weight: f64) -> LengthOutcome<'a> {
        let features = RequestFeatures::of(sample.class, &sample.request);
        let row = features.row(&sample.predicted, 1.0);
        LengthOutcome { sample, weight, features, row }
    }
}

impl LengthBelief {
    /// What follows from the sums.
    pub(super) fn of(sums: &[f64]) -> LengthBelief {
        let thoughts = ThoughtLengths::of(&sums[..THOUGHTS_END]);
        let mut classes = [(0.0, 0.0); CLASSES];
        let each = sums[THOUGHTS_END..ANSWERS_END].chunks_exact(ANSWER_SUMS_EACH);
        classes.iter_mut().zip(each).for_each(|(class, sums)| *class = (sums[0], sums[1]));
        let answers = classes.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        let mut tails = [0.0; length_tails::SUMS];
        tails.copy_from_slice(&sums[ANSWERS_END..TAILS_END]);
        let evidence = LengthEvidence { thought: thoughts.evidence(), answer: answer_level(answers), tails };
        LengthBelief {
            requests: RequestBelief::of(&sums[ANSWER_SLOPES_END..], thoughts.within()),
            answer_slopes: LengthSlopes::of(&sums[TAILS_END..ANSWER_SLOPES_END], 1.0, ANSWER_PRIORS),
            thoughts,
            answers,
            classes,
            evidence,
            tails: [LengthTails::default(); 2],
        }
    }

    /// Takes up how far out all models' lengths are.
    pub(super) fn update_tails(&mut self, shared: &SharedLevels) {
        self.tails = length_tails::tails(&shared.tails, Some(&self.evidence.tails));
    }

    /// What it says to other models.
    pub(super) fn evidence(&self) -> &LengthEvidence {
        &self.evidence
    }

    /// Corrects what the prior predicted of a request with these features.
    pub(super) fn adjust(
        &self,
        model: &str,
        shared: &SharedLevels,
        class: usize,
        (features, row): (&RequestFeatures<'_>, &FeatureRow),
        demand: &mut ModelDemand,
    ) {
        let level = shared.thoughts.prior(model, self.evidence.thought);
        let request = ThoughtRequest::of(class, &demand.thinking, row, features.words());
        apply(self.thoughts.correction(class, level), self.requests.longer(&request), demand);
        let usual = shared.answers.prior(model, self.evidence.answer);
        let ratio = updated(self.classes[class], updated(self.answers, usual.mean.exp()));
        let more = self.answer_slopes.beyond_mean(class, &answer_features(row));
        let ratio = (ratio + more).clamp(REQUEST_RATIO.start() * ratio, REQUEST_RATIO.end() * ratio);
        demand.solution = Tokens::round((demand.solution.as_f64() * ratio).max(1.0));
        demand.measured.thinking |= self.thoughts.count() >= PRIOR;
        demand.measured.solution |= self.answers.0 >= PRIOR;
        demand.tails = self.tails[usize::from(demand.measured.thinking)];
    }
}

/// Corrects what was predicted of a model without outcomes, by what others' say of all.
pub(super) fn adjust_unseen(model: &str, shared: &SharedLevels, demand: &mut ModelDemand) {
    if shared.is_empty() {
        return;
    }
    if !demand.measured.thinking {
        let level = shared.thoughts.prior(model, LevelEvidence::NONE);
        let nothing = ThoughtLengths::of(&[0.0; thought_lengths::SUMS]);
        apply(nothing.correction(0, level), 0.0, demand);
    }
    if !demand.measured.solution {
        let LevelPrior { mean, .. } = shared.answers.prior(model, LevelEvidence::NONE);
        demand.solution = Tokens::round((demand.solution.as_f64() * mean.exp()).max(1.0));
    }
    demand.tails = shared.usual_tails[usize::from(demand.measured.thinking)];
}

fn apply(correction: Correction, more: f64, demand: &mut ModelDemand) {
    let LogNormal { mu, sigma } = demand.thinking;
    let shift = correction.shift + more.clamp(-REQUEST_SHIFT_MAX, REQUEST_SHIFT_MAX);
    demand.thinking = LogNormal { mu: mu + shift * sigma, sigma: sigma * correction.scale };
}

fn updated((count, ratios): (f64, f64), before: f64) -> f64 {
    ((ratios + PRIOR * before) / (count + PRIOR)).max(0.01)
}

/// What answers say of how long a model's are: their ratios vary about as much as they are long.
fn answer_level((count, ratios): (f64, f64)) -> LevelEvidence {
    if count <= 0.0 || ratios <= 0.0 {
        return LevelEvidence::NONE;
    }
    LevelEvidence { precision: count, level: (ratios / count).ln() }
}

fn answer_features(row: &FeatureRow) -> [f64; ANSWER_FEATURES] {
    ANSWER_PLACES.map(|place| row[place])
}

/// Adds an outcome's lengths to the sums; `demand` has what was believed of them so far.
pub(super) fn add(
    sums: &mut [f64],
    outcome: &LengthOutcome<'_>,
    believed: &LengthBelief,
    demand: &ModelDemand,
) {
    let LengthOutcome { sample, weight, features, row } = outcome;
    let class = class_index(sample.class);
    if let Some((mean, variance)) = observed_log_length(sample, &demand.thinking) {
        let LogNormal { mu, sigma } = sample.predicted.thinking;
        let sigma = sigma.max(1e-3);
        let u = ((mean - mu) / sigma).clamp(-12.0, 12.0);
        let seen = (u, u * u + variance / sigma.powi(2));
        thought_lengths::add(&mut sums[..THOUGHTS_END], class, seen, sample.predicted.measured.thinking);
        let request = ThoughtRequest::of(class, &sample.predicted.thinking, row, features.words());
        let surprise = u - (demand.thinking.mu - mu) / sigma;
        let sums = &mut sums[ANSWER_SLOPES_END..];
        believed.requests.add(sums, &request, (u, surprise, *weight));
    }
    if sample.solution > Tokens::ZERO {
        let usual = sample.predicted.solution.as_f64().max(1.0);
        let least = match sample.solution_ended {
            ended if ended.is_cut() => demand.solution.as_f64(),
            _ => 0.0,
        };
        let ratio = (sample.solution.as_f64().max(least) / usual).min(RATIO_MAX);
        let at = THOUGHTS_END + class * ANSWER_SUMS_EACH;
        sums[at] += 1.0;
        sums[at + 1] += ratio;
        let slopes = &mut sums[TAILS_END..ANSWER_SLOPES_END];
        slopes::add(slopes, class, &answer_features(row), (ratio, 1.0));
    }
    length_tails::add(&mut sums[ANSWERS_END..TAILS_END], sample, demand);
}

/// The mean and variance of ln L that an outcome says: none where there was no thought.
fn observed_log_length(sample: &OutcomeSample, believed: &LogNormal) -> Option<(f64, f64)> {
    let length = sample.usual_thinking();
    match sample.ended {
        ThinkingStopReason::None => None,
        _ if length <= 0.0 => None,
        ThinkingStopReason::Closed | ThinkingStopReason::Stopped => Some((length.ln(), 0.0)),
        ThinkingStopReason::Cut => Some(believed.log_beyond(length)),
    }
}
