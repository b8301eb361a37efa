//! What is believed of a model's level before its own outcomes: by those of its family, and by those of all models.
//!
//! A level is a number that each model has, such as by how much its thoughts are longer than was predicted. It is taken for the
//! sum of what all models have in common, of what a family has besides, and of the model's own, each normal around zero (Gelman
//! and Hill, *Data Analysis Using Regression and Multilevel/Hierarchical Models*, 2007, ch. 12). So a model that nobody has
//! asked yet begins where its family stands. A family are the models whose names begin with the same word.

use std::sync::Arc;

/// How far apart levels are expected to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LevelVariances {
    /// What all models have in common.
    pub all: f64,
    /// What a family has besides.
    pub family: f64,
    /// A model's own.
    pub own: f64,
}

/// What a model's outcomes say of its level, as a normal observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LevelEvidence {
    /// How precisely; zero where they say nothing.
    pub precision: f64,
    /// The level that they say.
    pub level: f64,
}

/// What is believed of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LevelPrior {
    pub mean: f64,
    pub variance: f64,
}

/// All models' levels, by family.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LevelPool {
    variances: LevelVariances,
    families: Vec<(Arc<str>, Sum)>,
    /// What all families say of what they have in common, its prior included.
    common: Sum,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sum {
    precision: f64,
    product: f64,
}

impl Sum {
    fn add(&mut self, other: Sum, sign: f64) {
        self.precision = (self.precision + sign * other.precision).max(0.0);
        self.product += sign * other.product;
    }

    /// What it says of something that it is expected to be within this variance of.
    fn through(self, variance: f64) -> Sum {
        let kept = 1.0 / (1.0 + variance * self.precision);
        Sum { precision: kept * self.precision, product: kept * self.product }
    }
}

impl LevelEvidence {
    /// Of a model without outcomes.
    pub(super) const NONE: LevelEvidence = LevelEvidence { precision: 0.0, level: 0.0 };

    fn sum(self) -> Sum {
        Sum { precision: self.precision, product: self.precision * self.level }
    }
}

impl LevelPool {
    /// Nothing is known of any model.
    pub(super) fn new(variances: LevelVariances) -> LevelPool {
        let common = Sum { precision: variances.all.recip(), product: 0.0 };
        LevelPool { variances, families: Vec::new(), common }
    }

    /// True if nothing was ever said of a model.
    pub(super) fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    /// Puts what a model's outcomes say now in the place of what they said before.
    pub(super) fn replace(&mut self, model: &str, before: LevelEvidence, now: LevelEvidence) {
        let (family, own) = (family_of(model), self.variances.own);
        let at = self.families.iter().position(|(name, _)| name.eq_ignore_ascii_case(family));
        let at = at.unwrap_or_else(|| {
            self.families.push((family.into(), Sum::default()));
            self.families.len() - 1
        });
        let Some((_, sum)) = self.families.get_mut(at) else { return };
        self.common.add(sum.through(self.variances.family), -1.0);
        sum.add(before.sum().through(own), -1.0);
        sum.add(now.sum().through(own), 1.0);
        self.common.add(sum.through(self.variances.family), 1.0);
    }

    /// What others' outcomes say of a model's level; `own` is what its own say, which is left out.
    pub(super) fn prior(&self, model: &str, own: LevelEvidence) -> LevelPrior {
        let family = family_of(model);
        let of_family = self.families.iter().find(|(name, _)| name.eq_ignore_ascii_case(family));
        let mut relatives = of_family.map_or(Sum::default(), |(_, sum)| *sum);
        let mut others = self.common;
        others.add(relatives.through(self.variances.family), -1.0);
        relatives.add(own.sum().through(self.variances.own), -1.0);
        let from_others = others.through(self.variances.family);
        relatives.add(from_others, 1.0);
        let variance = relatives.precision.max(1e-9).recip();
        LevelPrior { mean: relatives.product * variance, variance: variance + self.variances.own }
    }
}

/// The first word of the last part of a path such as `maker/name`.
fn family_of(model: &str) -> &str {
    let bytes = model.as_bytes();
    let start = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let letters = |byte: &u8| byte.is_ascii_alphabetic();
    let from = bytes[start..].iter().position(letters).map_or(bytes.len(), |at| start + at);
    let word = bytes[from..].iter().position(|byte| !letters(byte)).unwrap_or(bytes.len() - from);
    // Both ends stand beside a letter of ASCII, or at an end.
    model.get(from..from + word).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIANCES: LevelVariances = LevelVariances { all: 0.1, family: 0.2, own: 0.1 };

    fn pool(levels: &[(&str, f64)]) -> LevelPool {
        let mut pool = LevelPool::new(VARIANCES);
        for &(model, level) in levels {
            pool.replace(model, LevelEvidence::NONE, LevelEvidence { precision: 100.0, level });
        }
        pool
    }

    fn prior(pool: &LevelPool, model: &str) -> LevelPrior {
        pool.prior(model, LevelEvidence::NONE)
    }

    #[test]
    fn a_model_begins_where_its_family_stands_and_a_stranger_nearer_to_zero() {
        let pool = pool(&[("qwen3-8b", 1.0), ("Qwen/Qwen3-32B", 1.2), ("gpt-5", 0.0)]);
        let (relative, stranger) = (prior(&pool, "qwen3-14b"), prior(&pool, "claude-opus-4-8"));
        assert!(relative.mean > 0.75 && (0.0..0.4).contains(&stranger.mean), "{relative:?} {stranger:?}");
        assert!(relative.variance < stranger.variance);
        let nobody = prior(&LevelPool::new(VARIANCES), "mine");
        assert!(nobody.mean.abs() < 1e-12 && (nobody.variance - 0.4).abs() < 1e-9, "{nobody:?}");
    }

    #[test]
    fn what_a_model_says_of_itself_does_not_come_back_to_it() {
        let own = LevelEvidence { precision: 100.0, level: 3.0 };
        let alone = pool(&[("qwen3-8b", 3.0)]).prior("qwen3-8b", own);
        assert!(alone.mean.abs() < 1e-9 && (alone.variance - 0.4).abs() < 1e-9, "{alone:?}");
    }

    #[test]
    fn what_was_replaced_is_gone() {
        let mut changed = pool(&[("qwen3-8b", 1.0), ("gpt-5", -1.0)]);
        let before = LevelEvidence { precision: 100.0, level: 1.0 };
        changed.replace("qwen3-8b", before, LevelEvidence { precision: 50.0, level: -2.0 });
        let mut fresh = pool(&[("gpt-5", -1.0)]);
        fresh.replace("qwen3-8b", LevelEvidence::NONE, LevelEvidence { precision: 50.0, level: -2.0 });
        let (one, other) = (prior(&changed, "qwen3-14b"), prior(&fresh, "qwen3-14b"));
        assert!((one.mean - other.mean).abs() < 1e-9 && (one.variance - other.variance).abs() < 1e-9);
    }

    #[test]
    fn families_are_told_by_the_first_word_of_a_name() {
        let families =
            ["meta-llama/Llama-3.1-8B", "o3", "01-ai/Yi-34B", "gpt-5.1", "", "é/智ab智", "12"].map(family_of);
        assert_eq!(families, ["Llama", "o", "Yi", "gpt", "", "ab", ""]);
    }
}
