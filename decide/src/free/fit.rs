//! The fit: the numbers by which the foretold shares of all sets are least off, in logits.

use stint_decide::estimate::FreeAnswerScale;

use super::exam::{Exam, Question, Reached};

/// Shares of nearly none and nearly all are not told apart.
const SHARE_LEAST: f64 = 0.02;
/// Where the search begins, and by how much each number moves at first: none of them is what ships, so that a fit can be repeated.
const START: [f64; 5] = [1.5, 7.2, 2.0, 0.2, 0.0];
const STEP: f64 = 0.4;
const STEP_LEAST: f64 = 0.01;
/// No unit of a level counts for more. Competitions alone would have it count for 2.6, at levels far above the middle; a weak
/// model would then fail at what it can do.
const PER_LEVEL_MAX: f64 = 2.0;
/// No set has what is trivial. Texts with so long a thought, such as questions for a fact, are taken to be as easy as any.
const TRIVIAL: f64 = 5.35;

/// The scale that the sets tell.
pub(super) fn fit(exams: &[Exam]) -> FreeAnswerScale {
    let (mut best, mut step) = (START, STEP);
    let mut least = loss(exams, &scale(best));
    while step > STEP_LEAST {
        let moves = (0..best.len()).flat_map(|at| [(at, step), (at, -step)]);
        let tried = moves.map(|(at, by)| {
            let mut numbers = best;
            numbers[at] += by;
            numbers[0] = numbers[0].min(PER_LEVEL_MAX);
            numbers[3] = numbers[3].max(0.0);
            numbers[4] = numbers[4].max(0.0);
            (loss(exams, &scale(numbers)), numbers)
        });
        match tried.min_by(|one, other| one.0.total_cmp(&other.0)).filter(|tried| tried.0 < least) {
            Some((loss, numbers)) => (least, best) = (loss, numbers),
            None => step /= 2.0,
        }
    }
    scale(best.map(|number| (number * 20.0).round() / 20.0))
}

fn scale(numbers: [f64; 5]) -> FreeAnswerScale {
    let [per_level, middle, per_fold_longer, per_fold_unthought, unthought_per_level] = numbers;
    let per_fold_shorter = FreeAnswerScale::EASIER_MAX / (middle - TRIVIAL);
    FreeAnswerScale {
        per_level,
        middle,
        per_fold_shorter,
        per_fold_longer,
        per_fold_unthought,
        unthought_per_level,
    }
}

/// The share of a set that is foretold of a model.
pub(super) fn foretold(scale: &FreeAnswerScale, exam: &Exam, level: f64) -> f64 {
    let chance = |logit: f64| 1.0 / (1.0 + (-logit).exp());
    let one = |question: &Question| {
        let unthought = if exam.after_thought { 0.0 } else { scale.unthought(question.thought, level) };
        let (easier, beyond) = (scale.easier(question.thought), scale.beyond(level, question.class));
        chance(question.logit(level) + easier + unthought + beyond)
    };
    let chances = exam.questions.iter().map(one);
    chances.sum::<f64>() / exam.questions.len().max(1) as f64
}

fn loss(exams: &[Exam], scale: &FreeAnswerScale) -> f64 {
    let of = |exam: &Exam| {
        let off = |model: &Reached| (logit(foretold(scale, exam, model.level)) - logit(model.share)).powi(2);
        exam.weight * exam.models.iter().map(off).sum::<f64>() / exam.models.len().max(1) as f64
    };
    exams.iter().map(of).sum()
}

pub(super) fn logit(share: f64) -> f64 {
    let share = share.clamp(SHARE_LEAST, 1.0 - SHARE_LEAST);
    (share / (1.0 - share)).ln()
}
