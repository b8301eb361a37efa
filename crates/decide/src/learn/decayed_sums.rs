//! Sums of evidence that fade, on a clock that replicas share.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::word_sums::WordSums;

/// Discounted sums. Each outcome is a tick, wherever it was seen, and a tick discounts all that came before it. The
/// sums are kept discounted to their own last tick; before they are added to others' they are discounted to the
/// latest, so that sums which replicas kept apart are those that one replica would have kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct DecayedSums {
    /// Ticks made here.
    own: f64,
    /// Ticks made elsewhere that the sums have been discounted by.
    #[serde(rename = "heard")]
    remote: f64,
    /// What is summed.
    pub sums: Vec<f64>,
    /// The same of words, where they count.
    #[serde(default, skip_serializing_if = "WordSums::is_empty")]
    pub words: WordSums,
}

impl DecayedSums {
    /// Nothing yet, of so many sums.
    pub(super) fn new(count: usize) -> DecayedSums {
        DecayedSums { own: 0.0, remote: 0.0, sums: vec![0.0; count], words: WordSums::default() }
    }

    /// Ticks made here; of what was gathered, those made by all that it was gathered from.
    pub(super) fn own_ticks(&self) -> f64 {
        self.own
    }

    /// All ticks that it knows of.
    pub(super) fn ticks(&self) -> f64 {
        self.own + self.remote
    }

    /// An outcome that counts for `weight` of a sure one has come: what was before it fades.
    pub(super) fn tick(&mut self, weight: f64, forget: f64) {
        self.decay(forget.powf(weight));
        self.own += weight;
    }

    /// What is left of a sum that was added at that moment of the clock. Where the clock is behind, it was never added here.
    pub(super) fn remaining(&self, since: f64, forget: f64) -> f64 {
        let past = self.ticks() - since;
        if past < 0.0 { 0.0 } else { forget.powf(past) }
    }

    /// Only a share is left. It is no tick: what others have seen since does not fade by it.
    pub(super) fn scale_down(&mut self, share: f64) {
        self.decay(share);
    }

    /// Takes note of the ticks of all others together.
    pub(super) fn apply_remote_ticks(&mut self, elsewhere: f64, forget: f64) {
        self.decay(forget.powf((elsewhere - self.remote).max(0.0)));
        self.remote = elsewhere;
    }

    /// What others have made, added up and discounted to the latest tick of all, this one's included.
    pub(super) fn merged<'a>(
        &self,
        others: impl Iterator<Item = &'a DecayedSums> + Clone,
        forget: f64,
    ) -> DecayedSums {
        let elsewhere: f64 = others.clone().map(|other| other.own).sum();
        let mut gathered =
            DecayedSums { own: elsewhere, remote: self.own, ..DecayedSums::new(self.sums.len()) };
        for other in others {
            gathered.add(other, forget);
        }
        gathered
    }

    /// Adds another's sums, discounted to this one's now.
    fn add(&mut self, other: &DecayedSums, forget: f64) {
        let kept = forget.powf((self.ticks() - other.ticks()).max(0.0));
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += kept * more;
        }
        self.words.add(&other.words, kept);
    }

    /// This one's sums and what was gathered, at this one's now.
    pub(super) fn combined_with(&self, gathered: Option<&DecayedSums>, forget: f64) -> Cow<'_, DecayedSums> {
        let Some(gathered) = gathered else { return Cow::Borrowed(self) };
        let mut whole = self.clone();
        whole.add(gathered, forget);
        Cow::Owned(whole)
    }

    /// Takes over the ticks of a replica that is gone, as if they had been made here. A replica that knows of both still knows of
    /// as many ticks as before.
    pub(super) fn take_over(&mut self, gone: &DecayedSums, forget: f64) {
        let now = self.ticks().max(gone.ticks()).max(self.own + gone.own);
        self.decay(forget.powf(now - self.ticks()));
        self.own += gone.own;
        self.remote = now - self.own;
        self.add(gone, forget);
    }

    /// True if it has the same shape and holds only numbers.
    pub(super) fn is_sound(&self, count: usize) -> bool {
        let numbers = self.own.is_finite() && self.remote.is_finite();
        numbers
            && self.words.is_sound()
            && self.sums.len() == count
            && self.sums.iter().all(|sum| sum.is_finite())
    }

    fn decay(&mut self, kept: f64) {
        self.sums.iter_mut().for_each(|sum| *sum *= kept);
        self.words.decay(kept);
    }
}
