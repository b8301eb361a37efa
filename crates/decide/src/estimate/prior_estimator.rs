//! Estimates the demand of models that have no coefficients of their own. It uses the traits of the question, which were
//! fitted to many models' answers to many questions, how long a thought its text usually gets, and the ability of the model.
//!
//! A model that the prior knows by name uses its own loadings. Any other uses its level of ability in the class of work, on the
//! scale of MMLU-Pro. The level places it on the line through the models that are known. So a stronger model
//! has a sensible chance of success, and a sensible gain over a weaker one, from its first request on. A model has one level
//! after a thought and one without: what was published of models that do not think was measured with their reasoning written
//! out, so nothing is taken off that.

use stint_types::catalog::{Calibration, Loadings, LogNormal, ModelAbility, ModelDemand, TRAITS, TaskClass};
use stint_types::units::{Chance, Difficulty, Tokens};

use super::ability;
use super::free_answer_fitted::FREE_ANSWERS;
use super::lengths::TextLengths;
use super::prior::{self, QuestionTraits};
use super::{LENGTH_MAX, ModelEstimate, RequestView, demand, hardness, logistic};

/// The median of what is predicted of the logarithm of a thought's length, over 2,980 everyday prompts of public sets
/// (BELLE, `IFEval`, `prompts.chat`, self-instruct and others): a model's own usual length takes its place.
const EVERYDAY_LOG_LENGTH: f64 = 6.1;
/// The standard deviation, over models, of how long their thoughts are.
const MODEL_SPREAD: f64 = 0.7;

/// So many options make a choice; fewer are an answer of one's own.
const OPTIONS_MIN: usize = 3;

/// How far an estimate is trusted of a model that was measured on its operator's own tasks.
const MEASURED_CONFIDENCE: f64 = 0.6;

/// A request as models are told about it that were never measured here.
pub(super) struct PriorEstimator<'a> {
    calibration: &'a Calibration,
    /// What the old judgement says, for all that the prior cannot tell.
    usual: ModelDemand,
    usual_confidence: f64,
    usual_difficulty: f64,
    traits: Option<QuestionTraits>,
    lengths: Option<TextLengths>,
    /// By how much the logit of success is higher than on a usual question of MMLU-Pro, beside what its traits say.
    easier: f64,
    /// How long a thought it usually gets, as a logarithm, if its answer is free: then levels lie further apart.
    free_thought: Option<f64>,
    class: TaskClass,
}

impl<'a> PriorEstimator<'a> {
    pub(super) fn of(
        calibration: &'a Calibration,
        view: &RequestView<'_>,
        traits: Option<QuestionTraits>,
        lengths: Option<TextLengths>,
    ) -> PriorEstimator<'a> {
        let options = view.reading.options.len();
        let free = lengths.filter(|_| options < OPTIONS_MIN);
        let (trusted, easier) = match free {
            Some(TextLengths { thought, .. }) => (trust_in_traits(view.class), FREE_ANSWERS.easier(thought)),
            None => (1.0, prior::free_question_bonus(options)),
        };
        let scaled = |traits: QuestionTraits| QuestionTraits {
            values: traits.values.map(|value| value * trusted),
            ..traits
        };
        let traits = traits.map(scaled);
        let usual = demand(&calibration.prior, view.features);
        let solution = lengths.map_or(usual.solution, |lengths| usual_solution(calibration, lengths));
        let difficulty = traits.as_ref().map(|traits| {
            1.0 - logistic(calibration.priors.general().curve.at_half.logit(&traits.values) + easier)
        });
        PriorEstimator {
            calibration,
            usual_difficulty: difficulty.unwrap_or_else(|| hardness(&usual.thinking)),
            usual: ModelDemand { solution, ..usual },
            usual_confidence: calibration.prior.confidence,
            traits,
            lengths,
            easier,
            free_thought: free.map(|lengths| lengths.thought),
            class: view.class,
        }
    }

    /// How hard the text is, where it is known how long a thought it usually gets.
    pub(super) fn difficulty(&self) -> Option<Difficulty> {
        self.lengths.map(|lengths| lengths.difficulty())
    }

    pub(super) fn estimate_model(&self, name: &str) -> ModelEstimate {
        let mut estimate = self.predict(name);
        if let Some(curve) = self.calibration.curves.get(name) {
            curve.apply(&mut estimate.demand);
            estimate.confidence = estimate.confidence.max(MEASURED_CONFIDENCE);
        }
        estimate
    }

    /// What is predicted of a model that was not measured here.
    fn predict(&self, name: &str) -> ModelEstimate {
        let thinking = self.thinking(name);
        let usual = ModelDemand { thinking, ..self.usual.clone() };
        let difficulty = self.usual_difficulty;
        let Some(traits) = &self.traits else {
            return ModelEstimate { demand: usual, confidence: self.usual_confidence, difficulty };
        };
        let ability = self.calibration.abilities.get(name).copied();
        let ability = ability.unwrap_or_else(|| ModelAbility::same(ability::usual_level()));
        let known = self.calibration.priors.general().models.get(name);
        let (done, blind) = self.logits(&ability, known, &traits.values);
        let claimed = known.is_none().then(|| ability.level(self.class, true).spread);
        let sure = PriorCertainty::of(claimed, traits.familiarity);
        let (done, blind) = (Chance::new(logistic(done)), Chance::new(logistic(blind)));
        ModelEstimate {
            demand: ModelDemand { done, blind, spread: sure.spread, ..usual },
            confidence: sure.confidence,
            difficulty,
        }
    }

    /// The logits of success after a thought and without one.
    fn logits(&self, ability: &ModelAbility, known: Option<&Loadings>, traits: &[f64; TRAITS]) -> (f64, f64) {
        let (thinking, plain) = (ability.level(self.class, true), ability.level(self.class, false));
        let curve = &self.calibration.priors.general().curve;
        let is_free = self.free_thought.is_some();
        let beyond = |level: f64| if is_free { FREE_ANSWERS.beyond(level, self.class) } else { 0.0 };
        let unthought =
            |level: f64| self.free_thought.map_or(0.0, |thought| FREE_ANSWERS.unthought(thought, level));
        let logit = |loadings: &Loadings, level: f64| loadings.logit(traits) + self.easier + beyond(level);
        match known {
            // Those of the prior were measured without thoughts, and where their traits are zero they tell their level.
            Some(own) => {
                let gap = (thinking.logit - plain.logit).max(0.0);
                (logit(own, own.level + gap) + gap, logit(own, own.level) + unthought(own.level))
            }
            None => {
                let of = |level: f64| logit(&curve.at(level), level);
                (of(thinking.logit), of(plain.logit) + unthought(plain.logit))
            }
        }
    }

    /// How long a model thinks. Its own usual length takes the place of a usual model's, where it is known.
    fn thinking(&self, name: &str) -> LogNormal {
        let own = self.calibration.thoughts.get(name);
        let longer = own.map_or(0.0, |usual| usual - EVERYDAY_LOG_LENGTH);
        let LogNormal { mu, sigma } = match self.lengths {
            None => self.usual.thinking,
            Some(lengths) => {
                let spread = self.calibration.priors.lengths().thought_spread;
                let known = if own.is_some() { MODEL_SPREAD } else { 0.0 };
                let sigma = (spread * spread - known * known).max(0.25).sqrt();
                LogNormal { mu: lengths.thought, sigma }
            }
        };
        LogNormal { mu: (mu + longer).clamp(0.0, LENGTH_MAX.ln()), sigma }
    }
}

/// The mean of a usual model's answers. About half of the spread lies between models, and is a level that outcomes teach.
fn usual_solution(calibration: &Calibration, lengths: TextLengths) -> Tokens {
    let variance = calibration.priors.lengths().answer_spread.powi(2) / 2.0;
    Tokens::round((lengths.answer + variance / 2.0).clamp(0.0, LENGTH_MAX.ln()).exp())
}

/// How far the traits are believed of a free answer. They were fitted on choices; how hard a free calculation or program is, its
/// length tells better.
fn trust_in_traits(class: TaskClass) -> f64 {
    match class {
        TaskClass::Math | TaskClass::Code | TaskClass::Agentic => 0.25,
        TaskClass::MultipleChoice | TaskClass::Extraction | TaskClass::Chat => 0.5,
    }
}

/// How far a guess is trusted.
struct PriorCertainty {
    confidence: f64,
    spread: f64,
}

impl PriorCertainty {
    /// Judgements: a model that was measured is told better than one of which an ability is claimed or guessed, with that
    /// spread of its logit, and both the worse the fewer of the words are known. Beyond what it was fitted on a prior is sure of
    /// little.
    fn of(claimed: Option<f64>, familiarity: f64) -> PriorCertainty {
        /// What a unit of the logit makes of a chance, where it makes most.
        const STEEPEST: f64 = 0.25;
        let (confidence, spread) = match claimed {
            None => (0.5, 0.1),
            Some(spread) => (0.25, 0.14_f64.hypot(STEEPEST * spread)),
        };
        let strange = 1.0 - familiarity.clamp(0.0, 1.0);
        PriorCertainty { confidence: confidence * (1.0 - 0.8 * strange), spread: spread + 0.12 * strange }
    }
}
