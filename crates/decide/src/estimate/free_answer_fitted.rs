//! The numbers by which free answers are foretold. They are of a first fit; `make free` gives 2.00, 7.10, 2.29 and 1.70 on the same data.

use super::free_answer::FreeAnswerScale;

/// What ships.
pub const FREE_ANSWERS: FreeAnswerScale =
    FreeAnswerScale { per_level: 2.00, middle: 7.05, per_fold_shorter: 2.35, per_fold_longer: 1.60 };
