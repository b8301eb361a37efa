//! The constants and the table.

use std::fmt::Write;

use stint_decide::estimate::FreeAnswerScale;

use super::exam::Exam;
use super::fit::foretold;

/// The file of constants.
pub fn constants(scale: &FreeAnswerScale) -> String {
    let FreeAnswerScale {
        per_level,
        middle,
        per_fold_shorter,
        per_fold_longer,
        per_fold_unthought,
        unthought_per_level,
    } = scale;
    format!(
        "//! The numbers by which free answers are foretold. `make free` fits them.\n\nuse super::free_answer::FreeAnswerScale;\n\n\
         /// What ships.\npub const FREE_ANSWERS: FreeAnswerScale = FreeAnswerScale {{\n    per_level: {per_level:.2},\n    \
         middle: {middle:.2},\n    per_fold_shorter: {per_fold_shorter:.2},\n    per_fold_longer: {per_fold_longer:.2},\n    \
         per_fold_unthought: {per_fold_unthought:.2},\n    unthought_per_level: {unthought_per_level:.2},\n}};\n"
    )
}

pub(super) fn report(scale: &FreeAnswerScale, exams: &[Exam]) -> String {
    let mut text = format!("{}\n", include_str!("preface.md").trim_end());
    let FreeAnswerScale {
        per_level,
        middle,
        per_fold_shorter,
        per_fold_longer,
        per_fold_unthought,
        unthought_per_level,
    } = scale;
    let _ = write!(
        text,
        "\nEach unit of the level counts {per_level:.2}. A model that gets half of MMLU-Pro right is right in half of its free answers \
         where the usual thought has e^{middle:.2} tokens. Each e-fold of a shorter one adds {per_fold_shorter:.2} to the logit, \
         and each of a longer one takes {per_fold_longer:.2}. Without a thought it takes {per_fold_unthought:.2} more, \
         less {unthought_per_level:.2} for each unit of a level above 0.\n\n| set | usual thought, ln tokens | models | weight | foretold | reached \
         | off, mean | off, mean of distances |\n|---|---|---|---|---|---|---|---|\n"
    );
    for exam in exams {
        let thought = mean(exam.questions.iter().map(|question| question.thought));
        let spread = mean(exam.questions.iter().map(|question| (question.thought - thought).powi(2))).sqrt();
        let told = mean(exam.models.iter().map(|model| foretold(scale, exam, model.level)));
        let share = mean(exam.models.iter().map(|model| model.share));
        let off =
            mean(exam.models.iter().map(|model| (foretold(scale, exam, model.level) - model.share).abs()));
        let _ = writeln!(
            text,
            "| {} | {thought:.2} ± {spread:.2} | {} | {} | {told:.3} | {share:.3} | {:+.3} | {off:.3} |",
            exam.name,
            exam.models.len(),
            exam.weight,
            told - share
        );
    }
    text
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / f64::max(count, 1.0)
}
