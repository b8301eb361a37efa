//! How success at questions with free answers goes with the level of a model and with how long a thought the question gets.
//!
//! Levels are on the scale of MMLU-Pro, whose ten options leave less between weak and strong models than a free answer does. Of
//! one model the logit of success falls with the usual length of the thought. Both were fitted, in squares of logits, to scores on
//! GSM8K and MATH (*The Llama 3 Herd of Models*, 2024, table 2), the catalogue's on AIME, and judged answers to GSM8K and
//! `LiveCodeBench`. No unit of a level counts for more than 2 (competitions alone would have it count for 2.6), and texts with a
//! thought of e^5.35 tokens, such as questions for a fact, are as easy as any: judgements.

use stint_types::catalog::TaskClass;

/// The numbers by which free answers are foretold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FreeAnswerScale {
    /// What each unit of the level adds to the logit of success.
    pub per_level: f64,
    /// On a text whose thought is so long, as a logarithm of tokens, a model that gets half of MMLU-Pro right is right in half of
    /// its answers.
    pub middle: f64,
    /// By how much the logit falls for each e-fold of a shorter thought,
    pub per_fold_shorter: f64,
    /// and of a longer one.
    pub per_fold_longer: f64,
    /// By how much more it falls for each of those where a model at level 0 does not think: what takes long is the less seen at once.
    pub per_fold_unthought: f64,
    /// By how much less that is for each unit of a higher level: strong models see more at once.
    pub unthought_per_level: f64,
}

impl FreeAnswerScale {
    /// No text is easier or harder than that.
    pub const EASIER_MAX: f64 = 4.0;

    /// By how much the logit of success is higher than that of MMLU-Pro's usual question, for a model at level 0.
    pub fn easier(&self, thought: f64) -> f64 {
        let shorter = self.middle - thought;
        let per_fold = if shorter > 0.0 { self.per_fold_shorter } else { self.per_fold_longer };
        (per_fold * shorter).clamp(-Self::EASIER_MAX, Self::EASIER_MAX)
    }

    /// What a model at this level is worse off without a thought beside that, as a logit of 0 or less, on a text whose thought is so
    /// long.
    pub fn unthought(&self, thought: f64, level: f64) -> f64 {
        let per_fold = (self.per_fold_unthought - self.unthought_per_level * level.max(0.0)).max(0.0);
        -(per_fold * (thought - self.middle)).clamp(0.0, Self::EASIER_MAX)
    }

    /// What a level adds beyond what it adds at questions of MMLU-Pro. Measured are calculations and programs. Talk is taken to lie
    /// half way between those and choices: a judgement.
    pub fn beyond(&self, level: f64, class: TaskClass) -> f64 {
        let share = match class {
            TaskClass::Math | TaskClass::Code | TaskClass::Agentic => 1.0,
            TaskClass::MultipleChoice | TaskClass::Extraction | TaskClass::Chat => 0.5,
        };
        share * (self.per_level - 1.0) * level
    }
}

#[cfg(test)]
mod tests {
    use super::super::free_answer_fitted::FREE_ANSWERS;
    use super::*;

    #[test]
    fn a_question_is_the_harder_the_longer_its_thought_and_no_harder_than_the_hardest() {
        let easier = [2.0, 5.0, 6.5, 7.5, 8.5, 20.0].map(|thought| FREE_ANSWERS.easier(thought));
        assert!(easier.is_sorted_by(|one, next| one >= next), "{easier:?}");
        assert!(
            easier[2] > 0.5 && easier[3] < 0.0 && easier[5] >= -FreeAnswerScale::EASIER_MAX,
            "{easier:?}"
        );
    }

    #[test]
    fn the_longer_a_thought_is_the_more_is_lost_without_it() {
        let lost = [5.0, 7.0, 8.0, 9.0].map(|thought| FREE_ANSWERS.unthought(thought, 1.0));
        assert!(lost[0] == 0.0 && lost[1] == 0.0 && lost[2] < -0.1 && lost[3] < lost[2], "{lost:?}");
    }

    /// The best models without a thought reached .60 of AIME, where .47 was foretold with one number for all; the weakest .04.
    #[test]
    fn the_stronger_a_model_is_the_less_it_loses_without_a_thought() {
        let lost = [-1.0, 0.0, 1.0, 1.7, 4.0].map(|level| FREE_ANSWERS.unthought(8.2, level));
        assert!(lost.is_sorted() && lost[3] > -0.8 && lost[1] < -1.6 && lost[4] <= 0.0, "{lost:?}");
    }

    #[test]
    fn models_lie_further_apart_at_calculations_than_in_talk() {
        let apart = |class| FREE_ANSWERS.beyond(2.0, class) - FREE_ANSWERS.beyond(0.0, class);
        assert!(apart(TaskClass::Math) > apart(TaskClass::Chat) && apart(TaskClass::Chat) > 0.0);
    }
}
