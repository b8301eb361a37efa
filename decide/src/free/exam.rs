//! Sets of questions, each with models of some levels that were asked them.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use stint_decide::estimate::ability::{
    Benchmark, BenchmarkScores, SHIPPED, levels_from_scores, model_ability,
};
use stint_decide::estimate::{FREE_ANSWERS, estimate};
use stint_types::catalog::{AbilityLevel, Calibration, LengthPrior, ModelAbility, TaskClass};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::{SeededRng, Tokens};

use super::published::{JUDGED_GSM8K, JUDGED_PROGRAMS, MATHEMATICS, RUN_IN_THE_HEAD};
use crate::lengths::{self, LeftOut, LeftOutBy};
use crate::{abilities, data};

/// So many of a set's questions are looked at.
const QUESTIONS: usize = 400;
/// At levels so far apart the traits' part is reckoned.
const LEVELS: [f64; 3] = [-1.0, 0.5, 2.0];

/// A question as it is foretold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    /// How long a thought it usually gets, as a logarithm of tokens.
    pub(super) thought: f64,
    /// What kind of work it is taken for.
    pub(super) class: TaskClass,
    /// The logit of success at each of the levels, but for what is fitted here.
    traits: [f64; LEVELS.len()],
}

/// What models reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reached {
    /// The model's level.
    pub(super) level: f64,
    /// The share that it got right.
    pub(super) share: f64,
}

/// A set of questions.
#[derive(Debug, Clone)]
pub(super) struct Exam {
    /// What it is called.
    pub(super) name: &'static str,
    /// Its questions, or some of them.
    pub(super) questions: Vec<Question>,
    /// True if they were asked to think.
    pub(super) after_thought: bool,
    /// Who was asked.
    pub(super) models: Vec<Reached>,
    /// How much it counts.
    pub(super) weight: f64,
}

impl Question {
    /// The logit of success at a level, but for what is fitted here.
    pub(super) fn logit(&self, level: f64) -> f64 {
        let at = if level < LEVELS[1] { 0 } else { 1 };
        let share = (level - LEVELS[at]) / (LEVELS[at + 1] - LEVELS[at]);
        self.traits[at] + share * (self.traits[at + 1] - self.traits[at])
    }
}

#[derive(Deserialize)]
struct Program {
    source: String,
    text: Option<String>,
    level: Option<serde_json::Value>,
    #[serde(default)]
    scores: BTreeMap<String, Option<f64>>,
}

/// All sets.
///
/// # Errors
/// When the data or the catalogue cannot be read.
pub(super) fn exams(
    folder: &Path,
    catalogue: &Path,
    shipped: &Calibration,
) -> Result<Vec<Exam>, Box<dyn Error>> {
    let thirds = lengths::left_out(folder, LeftOutBy::Third, shipped.priors.lengths())?;
    let foreteller = Foreteller::of(&thirds, shipped);
    let exam =
        |name, questions, models, weight| Exam { name, questions, after_thought: false, models, weight };
    let published =
        |of: fn(&(f64, f64, f64)) -> f64| MATHEMATICS.iter().map(|row| reached(row.0, of(row))).collect();
    let gsm8k = data::gsm8k(folder)?;
    let school: Vec<Question> = some(gsm8k.iter().map(|row| row.question.as_str()).collect())
        .into_iter()
        .map(|text| foreteller.shipped(text))
        .collect();
    let judged = JUDGED_GSM8K.iter().map(|&(name, level)| {
        let right = gsm8k.iter().map(|row| row.right(name)).sum::<f64>();
        reached(level, right / gsm8k.len().max(1) as f64)
    });
    let mut all = vec![
        exam("GSM8K, published", school.clone(), published(|row| row.1), 0.5),
        exam("GSM8K, judged", school, judged.collect(), 0.5),
        exam("MATH", foreteller.set("math"), published(|row| row.2), 1.0),
        exam(
            "CRUXEval",
            foreteller.set("cruxeval"),
            RUN_IN_THE_HEAD.iter().map(|row| reached(row.0, row.1)).collect(),
            0.0,
        ),
    ];
    let (plain, thinking) = competitions(catalogue)?;
    all.push(exam("AIME, without a thought", foreteller.set("aime"), plain, 0.5));
    let after_thought = |exam: Exam| Exam { after_thought: true, ..exam };
    all.push(after_thought(exam("AIME, with a thought", foreteller.set("aime"), thinking, 0.5)));
    let programs: Vec<Program> = data::rows(&folder.join("difficulty.jsonl.gz"))?;
    for (name, level) in [
        ("LiveCodeBench, easy", "easy"),
        ("LiveCodeBench, medium", "medium"),
        ("LiveCodeBench, hard", "hard"),
    ] {
        let is_of = |row: &&Program| {
            row.source.starts_with("livecodebench")
                && row.level.as_ref().and_then(serde_json::Value::as_str) == Some(level)
        };
        let rows: Vec<&Program> = programs.iter().filter(is_of).collect();
        let texts = some(rows.iter().filter_map(|row| row.text.as_deref()).collect());
        let models = JUDGED_PROGRAMS.iter().map(|&(name, share)| {
            let scores: Vec<f64> = rows.iter().filter_map(|row| *row.scores.get(name)?).collect();
            reached(share, scores.iter().sum::<f64>() / scores.len().max(1) as f64)
        });
        all.push(after_thought(exam(name, foreteller.texts(&texts), models.collect(), 0.3)));
    }
    Ok(all)
}

/// A model with this share of MMLU-Pro, and of the questions.
fn reached(knowledge: f64, share: f64) -> Reached {
    Reached { level: AbilityLevel::from_share(knowledge, 0.0).logit, share }
}

/// What the catalogue's models reached in competitions, without a thought and with one, each by its level in mathematics.
fn competitions(catalogue: &Path) -> Result<(Vec<Reached>, Vec<Reached>), Box<dyn Error>> {
    let known = |scores: &BenchmarkScores| {
        scores.contains_key(&Benchmark::MmluPro) || scores.contains_key(&Benchmark::GpqaDiamond)
    };
    let (mut plain, mut thinking) = (Vec::new(), Vec::new());
    for model in abilities::read(catalogue)? {
        let Some(ability) = model_ability(&SHIPPED, &model.scores, true) else { continue };
        for (scores, after_thought, reached) in
            [(&model.scores.plain, false, &mut plain), (&model.scores.thinking, true, &mut thinking)]
        {
            let own = levels_from_scores(SHIPPED.reader(after_thought), scores);
            if let (Some(share), Some(_), true) = (scores.get(&Benchmark::Aime2025), own, known(scores)) {
                let level = ability.level(TaskClass::Math, after_thought).logit;
                reached.push(Reached { level, share: share.get() });
            }
        }
    }
    Ok((plain, thinking))
}

/// Says of texts what weights say that did not see them.
struct Foreteller<'a> {
    thirds: &'a [LeftOut],
    calibrations: Vec<Calibration>,
    shipped: Calibration,
}

impl<'a> Foreteller<'a> {
    fn of(thirds: &'a [LeftOut], shipped: &Calibration) -> Foreteller<'a> {
        let name = |at: usize| Arc::<str>::from(format!("level {at}"));
        let ability = |level: &f64| ModelAbility::same(AbilityLevel { logit: *level, spread: 0.2 });
        let abilities: BTreeMap<Arc<str>, ModelAbility> =
            LEVELS.iter().enumerate().map(|(at, level)| (name(at), ability(level))).collect();
        let shipped = Calibration { abilities, ..shipped.clone() };
        let calibration = |out: &LeftOut| Calibration {
            priors: Arc::new(shipped.priors.with_lengths(LengthPrior::clone(&out.prior))),
            ..shipped.clone()
        };
        Foreteller { thirds, calibrations: thirds.iter().map(calibration).collect(), shipped }
    }

    /// Some texts of a set.
    fn set(&self, set: &str) -> Vec<Question> {
        let of_set = |out: &'a LeftOut| {
            out.texts.iter().filter(move |(_, (of, _))| of == set).map(|(text, _)| text.as_str())
        };
        self.texts(&some(self.thirds.iter().flat_map(of_set).collect()))
    }

    fn texts(&self, texts: &[&str]) -> Vec<Question> {
        let one = |text: &&str| {
            let at = self.thirds.iter().position(|out| out.texts.contains_key(*text))?;
            Some(question(text, &self.calibrations[at]))
        };
        texts.iter().filter_map(one).collect()
    }

    fn shipped(&self, text: &str) -> Question {
        question(text, &self.shipped)
    }
}

fn question(text: &str, calibration: &Calibration) -> Question {
    let names: Vec<Arc<str>> = calibration.abilities.keys().cloned().collect();
    let prompts = names.iter().map(|name| (name.clone(), Tokens(100))).collect();
    let demand =
        estimate(&Request::new("auto", vec![Message::text(Role::User, text)]), &prompts, calibration);
    let thought = demand.models[&names[0]].thinking.mu;
    let traits = std::array::from_fn(|at| {
        let chance = demand.models[&names[at]].done.get().clamp(1e-6, 1.0 - 1e-6);
        (chance / (1.0 - chance)).ln()
            - FREE_ANSWERS.easier(thought)
            - FREE_ANSWERS.beyond(LEVELS[at], demand.class)
    });
    Question { thought, class: demand.class, traits }
}

fn some(mut texts: Vec<&str>) -> Vec<&str> {
    SeededRng::new(701).shuffle(&mut texts);
    texts.truncate(QUESTIONS);
    texts
}
