//! The numbers by which free answers are foretold. `make free` fits them.

use super::free_answer::FreeAnswerScale;

/// What ships.
pub const FREE_ANSWERS: FreeAnswerScale = FreeAnswerScale {
    per_level: 2.00,
    middle: 7.20,
    per_fold_shorter: 2.16,
    per_fold_longer: 1.65,
    per_fold_unthought: 2.05,
    unthought_per_level: 0.85,
};
