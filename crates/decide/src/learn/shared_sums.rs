//! What all models' outcomes together say of the weights that they share, as the sums that it follows from. Who learns keeps them:
//! a request reads only what follows ([`super::shared_belief`]).

use super::belief::Belief;
use super::features::{FEATURE_COUNT, FeatureRow, WORD_PLACES};
use super::matrix::{self, SquareMatrix};
use super::settings::Settings;
use super::shared_belief::SharedBelief;
use super::variances;
use super::word_sums::WordSum;

/// The sums, the prior's included.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SharedSums {
    precision: SquareMatrix<FEATURE_COUNT>,
    product: FeatureRow,
    /// By place; nothing where no word was met.
    words: Vec<WordSum>,
    own_word: f64,
    prior_word: f64,
}

/// Whether a model's part comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Add,
    Remove,
}

impl SharedSums {
    /// Nothing learned.
    pub(super) fn new(settings: &Settings) -> SharedSums {
        SharedSums {
            precision: matrix::diagonal(&variances::inverse(&variances::shared(settings))),
            product: [0.0; FEATURE_COUNT],
            words: Vec::new(),
            own_word: variances::own_word(settings),
            prior_word: variances::shared_word(settings),
        }
    }

    /// Puts what a model's outcomes say now in the place of what they said before, and says what follows.
    pub(super) fn replace(&mut self, before: Option<&Belief>, now: &Belief, shared: &mut SharedBelief) {
        before.into_iter().for_each(|before| self.change(before, Change::Remove));
        self.change(now, Change::Add);
        if let Some(covariance) = matrix::inverse(&self.precision) {
            shared.mean = matrix::product(&covariance, &self.product);
            shared.variance = std::array::from_fn(|i| covariance[i][i]);
        }
        if !now.words().is_empty() {
            shared.update_words(&self.words);
        }
    }

    fn change(&mut self, belief: &Belief, change: Change) {
        let sign = match change {
            Change::Add => 1.0,
            Change::Remove => -1.0,
        };
        let (precision, product) = belief.of_shared();
        for i in 0..FEATURE_COUNT {
            (0..FEATURE_COUNT).for_each(|j| self.precision[i][j] += sign * precision[i][j]);
            self.product[i] += sign * product[i];
        }
        if !belief.words().is_empty() && self.words.is_empty() {
            let unknown = WordSum { precision: self.prior_word.recip(), product: 0.0 };
            self.words = vec![unknown; WORD_PLACES];
        }
        for (sum, word) in self.words.iter_mut().zip(belief.words()) {
            let said = word.of_shared(self.own_word);
            sum.precision += sign * said.precision;
            sum.product += sign * said.product;
        }
    }
}
