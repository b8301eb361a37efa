//! What one model's thoughts say of its level, by kind of work.
//!
//! Lengths are counted on the prior's own scale, u = (ln L − mu)/sigma, which is standard normal where the prior is right. Of a
//! model that nobody measured beforehand nearly half of that variance is its unknown level, so that a few thoughts tell most of
//! it, and the rest is known the better the more they are. Of one that was measured the prediction counts for more.

use super::features::CLASSES;
use super::level_pool::{LevelEvidence, LevelPrior};

/// Sums for each class: how many thoughts, Σu and Σu².
pub(super) const SUMS_EACH: usize = 3;
/// Those of all classes, then how many were of a model that was measured beforehand.
pub(super) const SUMS: usize = SUMS_EACH * CLASSES + 1;

/// For how many thoughts the spread counts that is expected beforehand.
const SPREAD_PRIOR: f64 = 20.0;
/// The variance of u about the level of a class where the level is not known: with the level's own (0.43) and a third of it for
/// the class it makes 1.
const WITHIN: f64 = 0.427_5;
/// For how many thoughts a model's level counts in a class, where it was not measured.
const CLASS_PRIOR: f64 = 3.0;
/// The same of a model that was measured, and for how many the prediction counts in its level.
const MEASURED_PRIOR: f64 = 20.0;

/// What is believed of a model's thoughts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThoughtLengths {
    all: ClassSums,
    classes: [ClassSums; CLASSES],
    /// True if its prediction was measured on it, and not guessed.
    is_measured: bool,
    /// The variance about a class's level.
    within: f64,
}

/// A length's correction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Correction {
    /// By how many of the prior's sigma ln L is longer.
    pub shift: f64,
    /// How many times the prior's sigma it is spread.
    pub scale: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ClassSums {
    count: f64,
    first: f64,
    second: f64,
}

impl ClassSums {
    fn of(sums: &[f64]) -> ClassSums {
        let &[count, first, second] = sums else { return ClassSums::default() };
        ClassSums { count, first, second }
    }

    /// Σ(u − ū)².
    fn scatter(&self) -> f64 {
        if self.count > 0.0 { (self.second - self.first.powi(2) / self.count).max(0.0) } else { 0.0 }
    }

    /// The variance about their mean, where one was expected beforehand.
    fn within(&self, expected: f64) -> f64 {
        (self.scatter() + SPREAD_PRIOR * expected) / (self.count + SPREAD_PRIOR)
    }

    /// Where the prior of the level counts for so many outcomes: the second step of a model that was measured.
    fn updated(&self, before: Correction) -> Correction {
        let (count, weight) = (self.count + MEASURED_PRIOR, MEASURED_PRIOR);
        let shift = (self.first + weight * before.shift) / count;
        let square = (self.second + weight * (before.scale.powi(2) + before.shift.powi(2))) / count;
        Correction { shift, scale: (square - shift.powi(2)).max(0.0).sqrt() }
    }
}

impl ThoughtLengths {
    /// What follows from the sums.
    pub(super) fn of(sums: &[f64]) -> ThoughtLengths {
        let mut classes = [ClassSums::default(); CLASSES];
        let mut all = ClassSums::default();
        for (class, sums) in classes.iter_mut().zip(sums.chunks_exact(SUMS_EACH)) {
            *class = ClassSums::of(sums);
            all.count += class.count;
            all.first += class.first;
            all.second += class.second;
        }
        // What lies between classes is not spread within one.
        let scatter: f64 = classes.iter().map(ClassSums::scatter).sum();
        let within = (scatter + SPREAD_PRIOR * WITHIN) / (all.count + SPREAD_PRIOR);
        let measured = sums.last().copied().unwrap_or_default();
        ThoughtLengths { all, classes, is_measured: measured > all.count / 2.0, within }
    }

    /// How many thoughts it rests on.
    pub(super) fn count(&self) -> f64 {
        self.all.count
    }

    /// The variance of u about a class's level.
    pub(super) fn within(&self) -> f64 {
        self.within
    }

    /// What they say of the model's level to others: the less, the fewer kinds of work they are from. Nothing of a model that was
    /// measured: what is predicted of that says nothing of others.
    pub(super) fn evidence(&self) -> LevelEvidence {
        let squares: f64 = self.classes.iter().map(|class| class.count.powi(2)).sum();
        if self.is_measured || squares <= 0.0 {
            return LevelEvidence::NONE;
        }
        let kinds = self.all.count.powi(2) / squares;
        let variance = self.within / self.all.count + self.within / (CLASS_PRIOR * kinds);
        LevelEvidence { precision: variance.recip(), level: self.all.first / self.all.count }
    }

    /// How lengths of a class are corrected, where others say so much of the model's level.
    pub(super) fn correction(&self, class: usize, prior: LevelPrior) -> Correction {
        let own = self.classes.get(class).copied().unwrap_or_default();
        let Correction { shift, scale } = if self.is_measured {
            let usual = self.all.updated(Correction { shift: 0.0, scale: 1.0 });
            own.updated(usual)
        } else {
            self.guessed(&own, prior)
        };
        Correction { shift: shift.clamp(-8.0, 8.0), scale: scale.clamp(0.1, 5.0) }
    }

    fn guessed(&self, own: &ClassSums, prior: LevelPrior) -> Correction {
        let weight = self.within / prior.variance;
        let level = (self.all.first + weight * prior.mean) / (self.all.count + weight);
        let level_variance = self.within / (self.all.count + weight);
        let (counted, left) = (own.count + CLASS_PRIOR, CLASS_PRIOR / (own.count + CLASS_PRIOR));
        let within = own.within(self.within);
        Correction {
            shift: (own.first + CLASS_PRIOR * level) / counted,
            scale: (within * (1.0 + counted.recip()) + left.powi(2) * level_variance).sqrt(),
        }
    }
}

/// Adds a thought of a class: the mean and the square of its u.
pub(super) fn add(sums: &mut [f64], class: usize, (first, second): (f64, f64), is_measured: bool) {
    if let Some(own) = sums.chunks_exact_mut(SUMS_EACH).nth(class) {
        own.iter_mut().zip([1.0, first, second]).for_each(|(sum, more)| *sum += more);
    }
    if let Some(measured) = sums.last_mut().filter(|_| is_measured) {
        *measured += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: LevelPrior = LevelPrior { mean: 0.0, variance: 0.43 };

    /// So many thoughts of mathematics, of a usual length or above and below it.
    fn thoughts(count: usize, usual: f64, is_measured: bool) -> ThoughtLengths {
        let mut sums = [0.0; SUMS];
        for at in 0..count {
            let u = if at % 2 == 0 { usual + 0.6 } else { usual - 0.6 };
            add(&mut sums, 0, (u, u * u), is_measured);
        }
        ThoughtLengths::of(&sums)
    }

    fn check(lengths: &ThoughtLengths, class: usize, prior: LevelPrior) -> Correction {
        lengths.correction(class, prior)
    }

    #[test]
    fn without_thoughts_nothing_is_corrected() {
        let Correction { shift, scale } = check(&thoughts(0, 0.0, false), 3, NOBODY);
        assert!(shift.abs() < 1e-12 && (scale - 1.0).abs() < 1e-6, "{shift} {scale}");
    }

    #[test]
    fn a_few_thoughts_tell_most_of_a_level_that_was_guessed_and_little_of_one_that_was_measured() {
        let (guessed, measured) =
            (check(&thoughts(6, 1.5, false), 0, NOBODY), check(&thoughts(6, 1.5, true), 0, NOBODY));
        assert!(guessed.shift > 1.2 && guessed.scale < 0.9, "{guessed:?}");
        assert!(measured.shift < 0.7, "{measured:?}");
    }

    #[test]
    fn other_kinds_of_work_follow_less_surely() {
        let lengths = thoughts(30, 1.5, false);
        let (own, other) = (check(&lengths, 0, NOBODY), check(&lengths, 1, NOBODY));
        assert!(own.shift > other.shift && other.shift > 1.3, "{own:?} {other:?}");
        assert!(own.scale < other.scale, "{own:?} {other:?}");
    }

    #[test]
    fn a_model_that_hardly_anybody_asked_goes_by_its_relatives() {
        let relatives = LevelPrior { mean: 1.0, variance: 0.2 };
        let one = check(&thoughts(0, 0.0, false), 0, relatives);
        assert!((one.shift - 1.0).abs() < 1e-9 && one.scale < 1.0, "{one:?}");
    }
}
