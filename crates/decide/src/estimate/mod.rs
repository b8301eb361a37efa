//! How hard a request looks: from its text to the lengths and chances that the plan prices.
//!
//! Pure, and microseconds: surface features of what the last user message asks, and a small linear model for each of
//! a model's numbers. What the text cannot tell is not guessed at: it stays in the spread of the length.

pub mod ability;
mod arithmetic;
mod asking;
mod calculation;
mod classify;
mod common_words;
mod contest_proof;
mod cue;
mod curve;
mod cut_curve;
mod domain;
mod features;
mod fit;
mod follow_up;
mod formula;
mod free_answer;
mod free_answer_fitted;
mod grams;
mod known_grams;
mod length_features;
mod length_file;
mod lengths;
mod lexeme;
mod lexeme_counts;
mod light_task;
mod light_task_words;
mod looked_up;
mod number_kinds;
mod number_words;
mod option_shape;
mod phrase_list;
#[cfg(test)]
mod plain_reading;
pub mod prior;
mod prior_estimator;
mod prior_file;
mod rarest_words;
mod request_traits;
mod scale;
mod scripts;
mod sign_kind;
mod signal;
mod solve;
mod spelling;
mod standing_task;
mod standing_task_words;
mod stated_length;
mod step;
mod surface;
mod swar;
mod tally;
mod task_cues;
mod task_phrases;
mod text;
mod text_words;
mod whole_work;
mod whole_work_elsewhere;
mod whole_work_words;

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_types::catalog::{
    Calibration, Demand, Features, LengthTails, LogNormal, MeasuredLengths, ModelCalibration, ModelDemand,
    RequestTraits, TaskClass, TextPriors,
};
use stint_types::chat::Request;
use stint_types::units::{Chance, Difficulty, Tokens};

pub use arithmetic::is_arithmetic;
pub use curve::{CurveTrial, curve_points, fit_measured_curve, wilson_interval};
pub use features::{features, request_features};
pub use fit::{BudgetedAnswer, CalibrationTrace, fit};
pub use free_answer::FreeAnswerScale;
pub use free_answer_fitted::FREE_ANSWERS;
pub use length_file::{decode_lengths, encode_lengths};
pub use lengths::{LengthInput, TextLengths, deviations};
pub use prior_file::{PriorError, decode, encode};
pub use signal::{ProbeSignal, with_signal};

use prior::QuestionTraits;
use step::AgentStep;
use text::{QuestionText, TextAnalysis};
use text_words::TextWords;
use whole_work::WholeWork;

/// A prediction beyond this is a feature out of its range, not a length.
const LENGTH_MAX: f64 = 1e6;

/// The prior that ships with the binary.
static PRIOR: &[u8] = include_bytes!("prior.bin");

/// What a text says of lengths.
static LENGTHS: &[u8] = include_bytes!("lengths.bin");

/// Why the shipped data cannot be read, which the tests rule out.
#[derive(Debug, thiserror::Error)]
pub enum ShippedError {
    /// The coefficients.
    #[error("the shipped calibration is damaged; build from a clean checkout")]
    Calibration(#[source] toml::de::Error),
    /// The prior.
    #[error(transparent)]
    Prior(#[from] PriorError),
}

/// Estimates what a request needs of each model in `prompts`, which gives the upper bound of its prompt's
/// tokens.
pub fn estimate(
    request: &Request,
    prompts: &BTreeMap<Arc<str>, Tokens>,
    calibration: &Calibration,
) -> Demand {
    let text = QuestionText::of(request);
    let TextReading { analysis: reading, class, seen } = TextReading::of(&text, calibration);
    let features = features::of(&reading);
    let class = if request.tools.is_empty() { class } else { TaskClass::Agentic };
    let view = RequestView { reading: &reading, features: &features, class };
    let contest = if class == TaskClass::Math { contest_proof::contest_thought(&reading) } else { None };
    let least = contest.or_else(|| text.work.map(WholeWork::thought));
    // A step of an agent writes a part of the work.
    let written = text.work.filter(|_| request.tools.is_empty()).map(WholeWork::answer);
    let of_request = |lengths: TextLengths| {
        let lengths = lengths.with_answer_from(written).with_answer(text.answer);
        lengths.with_thought_from(least).of_step(&AgentStep::of(request))
    };
    let lengths = seen.lengths.map(of_request);
    let stranger = prior_estimator::PriorEstimator::of(calibration, &view, seen.traits, lengths);
    let (mut confidence, mut difficulty_sum) = (0.0, 0.0);
    let mut one = |name: &Arc<str>, prompt: Tokens| {
        let told = match calibration.models.get(name) {
            Some(own) => view.estimate_with_coefficients(own),
            None => stranger.estimate_model(name),
        };
        confidence += told.confidence;
        difficulty_sum += told.difficulty;
        (name.clone(), ModelDemand { prompt, prompt_least: prompt, ..told.demand })
    };
    let models: BTreeMap<_, _> = prompts.iter().map(|(name, &prompt)| one(name, prompt)).collect();
    let count = Tokens(models.len() as u64).as_f64().max(1.0);
    let strange = prompts.keys().any(|name| !calibration.models.contains_key(name));
    let difficulty = stranger.difficulty().filter(|_| strange);
    let difficulty = difficulty.unwrap_or_else(|| Difficulty::new(difficulty_sum / count));
    Demand { class, difficulty, confidence: Chance::new(confidence / count), request: seen.request, models }
}

/// What the shipped weights say of a text: nothing where they know no words.
#[derive(Default)]
struct PriorView {
    traits: Option<QuestionTraits>,
    lengths: Option<TextLengths>,
    request: RequestTraits,
}

/// A text taken apart, with its class and what the shipped weights see of it.
struct TextReading<'t> {
    analysis: TextAnalysis<'t>,
    class: TaskClass,
    seen: PriorView,
}

impl<'t> TextReading<'t> {
    fn of(text: &'t QuestionText<'_>, calibration: &Calibration) -> TextReading<'t> {
        let mut words = TextWords::of(&calibration.priors);
        let analysis = TextAnalysis::with(text, |lexeme| {
            if let Some(words) = &mut words {
                words.add(lexeme);
            }
        });
        let class = text.class.unwrap_or_else(|| classify::class_of(&analysis));
        let class = match (class, text.work) {
            (TaskClass::Chat, Some(WholeWork::System)) => TaskClass::Code,
            _ => class,
        };
        let seen = words.as_mut().map(|words| {
            words.look_up();
            PriorView::of(&analysis, class, words, calibration)
        });
        TextReading { analysis, class, seen: seen.unwrap_or_default() }
    }
}

impl PriorView {
    fn of(
        analysis: &TextAnalysis<'_>,
        class: TaskClass,
        words: &TextWords<'_>,
        calibration: &Calibration,
    ) -> PriorView {
        let (prior, lengths) = (calibration.priors.general(), calibration.priors.lengths());
        let surface = surface::of(analysis);
        let said = words.known.reading(prior, words.lexemes());
        let traits = prior::read(prior, &surface, &said).blend(prior);
        let request = request_traits::of(prior, &traits, &surface, &words.rarest);
        let lengths = lengths::of(lengths, analysis, class, &surface, words.known.longer(lengths));
        let lengths = lengths.map(|lengths| lengths.in_script_of(analysis));
        PriorView { traits: Some(traits), lengths, request }
    }
}

/// The coefficients that ship with the binary.
///
/// # Errors
/// When a data file is damaged, which the tests rule out.
pub fn shipped() -> Result<Calibration, ShippedError> {
    let calibration: Calibration =
        toml::from_str(include_str!("calibration.toml")).map_err(ShippedError::Calibration)?;
    let priors = Arc::new(TextPriors::of(decode(PRIOR)?, decode_lengths(LENGTHS)?));
    Ok(Calibration { priors, ..calibration })
}

/// What a model's coefficients say of a request with these features, if it is of the kind that they were
/// fitted on. The prompt is not counted.
pub fn demand(calibration: &ModelCalibration, features: &Features) -> ModelDemand {
    let chance = |weights| Chance::new(logistic(features.dot(weights)));
    ModelDemand {
        thinking: LogNormal {
            mu: features.dot(&calibration.thinking).clamp(0.0, LENGTH_MAX.ln()),
            sigma: calibration.sigma,
        },
        solution: Tokens::round(calibration.solution.max(1.0)),
        prompt: Tokens::ZERO,
        done: chance(&calibration.done),
        blind: chance(&calibration.blind),
        bend: calibration.bend,
        saturation: calibration.saturation,
        spread: 0.0,
        prompt_least: Tokens::ZERO,
        prompt_usual: Tokens::ZERO,
        measured: MeasuredLengths::default(),
        tails: LengthTails::default(),
    }
}

/// A request as the linear models see it.
struct RequestView<'a> {
    reading: &'a TextAnalysis<'a>,
    features: &'a Features,
    class: TaskClass,
}

/// The estimate for one model, with its uncertainty and how hard the request is for it.
struct ModelEstimate {
    demand: ModelDemand,
    confidence: f64,
    difficulty: f64,
}

impl RequestView<'_> {
    /// By a model's own coefficients. How sure they are of success goes with how familiar the request is.
    fn estimate_with_coefficients(&self, calibration: &ModelCalibration) -> ModelEstimate {
        /// The spread of a belief about which nothing is known: that of chances that are all as likely.
        const UNKNOWN: f64 = 0.289;
        let plain = demand(calibration, self.features);
        let familiar = domain::familiarity(&calibration.domain, self.class, self.reading);
        let shrunk = |chance: Chance| Chance::new(chance.get() * familiar);
        let confidence = calibration.confidence * familiar;
        let (done, blind) = (shrunk(plain.done), shrunk(plain.blind));
        let difficulty = hardness(&plain.thinking);
        let measured = MeasuredLengths { thinking: true, solution: true };
        let demand = ModelDemand { done, blind, spread: UNKNOWN * (1.0 - confidence), measured, ..plain };
        ModelEstimate { demand, confidence, difficulty }
    }
}

/// A thinking model's own thinking length is a free, honest label of difficulty: the usual thought, on a scale of
/// doublings on which a token is 0 and 2¹⁵ tokens are 1.
fn hardness(thinking: &LogNormal) -> f64 {
    const DOUBLINGS: f64 = 15.0;
    (thinking.median().log2() / DOUBLINGS).clamp(0.0, 1.0)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = Tokens(values.len() as u64).as_f64().max(1.0);
    values.sum::<f64>() / count
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::{AbilityLevel, ClassLevels, MeasuredCurve, ModelAbility};
    use stint_types::chat::{Message, Role};

    fn request(text: &str) -> Request {
        Request::new("auto", vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, text)])
    }

    fn check(text: &str) -> Demand {
        let prompts = ["reasoner", "stranger"].map(|name| (Arc::from(name), Tokens(50))).into();
        estimate(&request(text), &prompts, &shipped().unwrap())
    }

    #[test]
    fn a_long_calculation_is_expected_to_take_a_longer_thought_than_a_short_one() {
        let (short, long) = (check("What is 3+4?"), check("What is (34+15)*27-18*(9+4)?"));
        assert!(short.models["reasoner"].thinking.mu < long.models["reasoner"].thinking.mu);
        assert!(short.difficulty < long.difficulty);
        assert_eq!(short.class, TaskClass::Math);
    }

    #[test]
    fn whole_works_take_longer_than_their_parts_and_are_answered_at_length() {
        for (work, part) in [
            ("Write a compiler for a subset of C.", "Write a function that adds numbers."),
            ("Write a business plan for a bakery.", "Write a slogan for a bakery."),
        ] {
            let (work, part) = (check(work), check(part));
            let lengths = |demand: &Demand| demand.models["stranger"].clone();
            assert!(work.difficulty.get() > part.difficulty.get() + 0.1, "{work:?}");
            assert!(lengths(&work).solution > Tokens(2000) && lengths(&part).solution < Tokens(700));
            assert!(lengths(&work).done < lengths(&part).done);
        }
        assert_eq!(check("Write a compiler for a subset of C.").class, TaskClass::Code);
    }

    #[test]
    fn what_only_olympiads_ask_is_harder_than_other_proofs() {
        let olympiad =
            check("Find all functions f: R -> R with f(x+f(y)) = f(x)+y for all real numbers x and y.");
        let other = check(
            "Let a, b, c be positive real numbers with a+b+c=3. Prove that for all such numbers a^2+b^2+c^2 is at least 3.",
        );
        assert!(olympiad.difficulty.get() > other.difficulty.get() + 0.05);
        assert!(olympiad.models["stranger"].done < other.models["stranger"].done);
    }

    #[test]
    fn the_same_in_chinese_is_about_as_hard() {
        for (english, chinese) in [
            ("Why is the sky blue?", "天空为什么是蓝色的？"),
            (
                "Write a Python function that checks whether a string is a palindrome.",
                "写一个Python函数，检查一个字符串是否是回文。",
            ),
            ("How can I ask my boss for a higher salary?", "我该怎样向老板提出加薪？"),
        ] {
            let [english, chinese] = [english, chinese].map(|text| check(text).difficulty.get());
            assert!((english - chinese).abs() < 0.1, "{english} and {chinese}");
        }
    }

    #[test]
    fn a_fifth_of_a_strangers_thought_keeps_most_of_its_gain_and_a_thousandth_nothing() {
        let demand = &check("Prove that there is no largest prime number.").models["stranger"];
        let kept = |share: f64| demand.rise(share);
        assert!((0.52..0.74).contains(&kept(0.2)), "{}", kept(0.2));
        assert!(kept(0.001) < 0.01, "{}", kept(0.001));
    }

    #[test]
    fn a_measured_curve_takes_the_place_of_what_is_usual_and_hard_requests_stay_harder() {
        let curve = MeasuredCurve {
            done_shift: 1.0,
            blind_shift: -1.0,
            spread: 0.05,
            thought_shift: 0.7,
            sigma: 0.4,
            solution_factor: 2.0,
            bend: 2.5,
            saturation: 1.4,
        };
        let of = |text: &str, curves: BTreeMap<Arc<str>, MeasuredCurve>| {
            let prompts = [("stranger".into(), Tokens(50))].into();
            estimate(&request(text), &prompts, &Calibration { curves, ..shipped().unwrap() }).models["stranger"].clone()
        };
        let measured = |text: &str| of(text, [("stranger".into(), curve)].into());
        let (usual, now) = (of("What is 12+30?", BTreeMap::new()), measured("What is 12+30?"));
        assert!(now.done > usual.done && now.blind < usual.blind);
        assert!((now.thinking.mu - usual.thinking.mu - 0.7).abs() < 1e-9 && (now.bend - 2.5).abs() < 1e-9);
        assert!(now.measured.thinking && now.solution == usual.solution * 2);
        assert!(measured("Prove that there is no largest prime number.").thinking.mu > now.thinking.mu);
    }

    #[test]
    fn a_model_is_trusted_only_with_what_it_was_fitted_on() {
        let (sum, talk) = (check("What is 12+30?"), check("What is the capital of France?"));
        assert!(sum.models["reasoner"].done.get() > 0.8, "{}", sum.models["reasoner"].done);
        assert!(talk.models["reasoner"].done.get() < talk.models["stranger"].done.get() / 2.0);
        assert!(talk.confidence < sum.confidence);
    }

    #[test]
    fn a_model_without_coefficients_gets_the_prior() {
        let demand = check("Hello!");
        let stranger = &demand.models["stranger"];
        assert!((20.0..500.0).contains(&stranger.thinking.median()), "{}", stranger.thinking.median());
        assert_eq!(stranger.prompt, Tokens(50));
    }

    /// What is said of a weak, a usual and a strong model of which only the ability is known.
    fn by_ability(text: &str) -> Demand {
        let abilities = [("weak", 0.4), ("usual", 0.6), ("strong", 0.8)];
        let ability = |share| ModelAbility::same(AbilityLevel::from_share(share, 0.2));
        let abilities = abilities.map(|(name, share)| (Arc::from(name), ability(share))).into();
        let prompts = ["weak", "usual", "strong", "silent"].map(|name| (Arc::from(name), Tokens(50))).into();
        estimate(&request(text), &prompts, &Calibration { abilities, ..shipped().unwrap() })
    }

    #[test]
    fn a_model_never_seen_is_told_by_its_ability_and_gains_more_where_others_fail() {
        let chance = |demand: &Demand, name: &str| demand.models[name].done.get();
        let hard = "A particle of mass m moves in the potential V(x) = kx^4/4. Using the Bohr-Sommerfeld \
                    quantization condition, determine how the energy levels scale with n.\nA) n\nB) n^(4/3)\nC) \
                    n^2\nD) n^(2/3)\nE) n^(1/2)\nF) n^3\nG) n^(3/4)\nH) n^(5/3)\nI) n^(1/3)\nJ) n^(3/2)";
        for demand in [by_ability("What is the capital of France?"), by_ability(hard)] {
            assert!(chance(&demand, "weak") < chance(&demand, "usual"));
            assert!(chance(&demand, "usual") < chance(&demand, "strong"));
            assert!((chance(&demand, "usual") - chance(&demand, "silent")).abs() < 1e-12);
        }
        assert!(
            chance(&by_ability(hard), "usual")
                < chance(&by_ability("What is the capital of France?"), "usual")
        );
    }

    #[test]
    fn a_model_is_told_by_its_level_in_the_class_of_work_and_less_surely_where_that_is_a_guess() {
        let usual = AbilityLevel::from_share(0.6, 0.2);
        let math = AbilityLevel::from_share(0.9, 0.2);
        let levels = ClassLevels { math, ..ClassLevels::same(usual) };
        let counts = ModelAbility { thinking: Some(levels), plain: levels };
        let guessed = ModelAbility::same(AbilityLevel { spread: 1.0, ..usual });
        let abilities = [("usual", ModelAbility::same(usual)), ("counts", counts), ("guessed", guessed)];
        let prompts = abilities.map(|(name, _)| (Arc::from(name), Tokens(50))).into();
        let abilities = abilities.map(|(name, ability)| (Arc::from(name), ability)).into();
        let calibration = Calibration { abilities, ..shipped().unwrap() };
        let told = |text: &str| estimate(&request(text), &prompts, &calibration);
        let (sum, talk) = (told("What is (34+15)*27-18*(9+4)?"), told("What is the capital of France?"));
        assert_eq!(sum.class, TaskClass::Math);
        assert!(sum.models["usual"].done < sum.models["counts"].done);
        assert_eq!(talk.models["usual"].done, talk.models["counts"].done);
        assert_eq!(talk.models["usual"].done, talk.models["guessed"].done);
        assert!(talk.models["usual"].spread + 0.1 < talk.models["guessed"].spread);
    }

    #[test]
    fn a_strong_model_is_foretold_to_solve_what_a_weak_one_fails_at_and_both_what_is_easy() {
        let hard = "Let $ABC$ be a triangle with $AB = 13$, $BC = 14$ and $CA = 15$. A circle through $A$ is tangent to $BC$ at its \
                    midpoint and meets $AB$ and $AC$ again at $P$ and $Q$. Find the area of $APQ$ as a fraction in lowest terms.";
        let levels = [("weak", 0.3), ("strong", 0.87)];
        let of = |share: f64| ModelAbility::same(AbilityLevel::from_share(share, 0.2));
        let abilities = levels.map(|(name, share)| (Arc::from(name), of(share))).into();
        let calibration = Calibration { abilities, ..shipped().unwrap() };
        let prompts = levels.map(|(name, _)| (Arc::from(name), Tokens(50))).into();
        let chances = |text: &str| {
            let demand = estimate(&request(text), &prompts, &calibration);
            levels.map(|(name, _)| demand.models[name].done.get())
        };
        let ([weak, strong], [too, easily]) = (chances(hard), chances("What is the capital of France?"));
        assert!(weak < 0.25 && strong > 0.6, "{weak} {strong}");
        assert!(too > 0.85 && easily > 0.98, "{too} {easily}");
    }

    #[test]
    fn a_models_own_usual_thought_takes_the_place_of_what_is_said_of_any() {
        let thoughts = [("brief", 100.0), ("lengthy", 2000.0)];
        let thoughts = thoughts.map(|(name, usual)| (Arc::from(name), f64::ln(usual))).into();
        let calibration = Calibration { thoughts, ..shipped().unwrap() };
        let prompts = ["brief", "lengthy", "stranger"].map(|name| (Arc::from(name), Tokens(50))).into();
        let median = |text: &str, name: &str| {
            estimate(&request(text), &prompts, &calibration).models[name].thinking.median()
        };
        for text in ["Hello!", "Prove that the square root of two is irrational."] {
            let ratio = median(text, "lengthy") / median(text, "brief");
            assert!((ratio - 20.0).abs() < 1e-6, "{ratio}");
        }
        let everyday =
            "Write a short e-mail that invites my colleagues to lunch on Friday and asks what they like.";
        assert!((50.0..200.0).contains(&median(everyday, "brief")), "{}", median(everyday, "brief"));
    }

    #[test]
    fn strange_words_make_an_estimate_less_sure() {
        let plain = by_ability("Which of the following is true of the demand for a good?");
        let strange = by_ability("Qxv zrgh bnnt ploik wwqz, fjdks uuqop vbnxz?");
        assert!(strange.confidence < plain.confidence);
        assert!(strange.models["usual"].spread > plain.models["usual"].spread);
    }

    #[test]
    fn no_text_at_all_has_an_estimate_too() {
        let mut request = request("");
        request.messages.clear();
        let prompts = [(Arc::from("stranger"), Tokens(1))].into();
        assert_eq!(estimate(&request, &prompts, &shipped().unwrap()).class, TaskClass::Chat);
    }
}
