//! Sums of evidence that fade, on a clock that replicas share.

use serde::{Deserialize, Serialize};

/// Discounted sums. Each outcome is a tick, wherever it was seen, and a tick discounts all that came before it. The
/// sums are kept discounted to their own last tick; before they are added to others' they are discounted to the
/// latest, so that sums which replicas kept apart are those that one replica would have kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// Ticks made here.
    own: f64,
    /// Ticks made elsewhere that the sums have been discounted by.
    heard: f64,
    /// What is summed.
    pub sums: Vec<f64>,
}

impl Memory {
    /// Nothing yet, of so many sums.
    pub(super) fn new(count: usize) -> Memory {
        Memory { own: 0.0, heard: 0.0, sums: vec![0.0; count] }
    }

    /// Ticks made here; of what was gathered, those made by all that it was gathered from.
    pub(super) fn own(&self) -> f64 {
        self.own
    }

    /// All ticks that it knows of.
    pub(super) fn now(&self) -> f64 {
        self.own + self.heard
    }

    /// An outcome that counts for `weight` of a sure one has come: what was before it fades.
    pub(super) fn tick(&mut self, weight: f64, forget: f64) {
        self.fade(forget.powf(weight));
        self.own += weight;
    }

    /// What is left of a sum that was added at that moment of the clock. Where the clock is behind, it was never added here.
    pub(super) fn left(&self, since: f64, forget: f64) -> f64 {
        let past = self.now() - since;
        if past < 0.0 { 0.0 } else { forget.powf(past) }
    }

    /// Only a share is left. It is no tick: what others have seen since does not fade by it.
    pub(super) fn doubt(&mut self, share: f64) {
        self.fade(share);
    }

    /// Takes note of the ticks of all others together.
    pub(super) fn hear(&mut self, elsewhere: f64, forget: f64) {
        self.fade(forget.powf((elsewhere - self.heard).max(0.0)));
        self.heard = elsewhere;
    }

    /// What others have made, added up and discounted to the latest tick of all, this one's included.
    pub(super) fn gathered<'a>(
        &self,
        others: impl Iterator<Item = &'a Memory> + Clone,
        forget: f64,
    ) -> Memory {
        let elsewhere: f64 = others.clone().map(|other| other.own).sum();
        let mut gathered = Memory { own: elsewhere, heard: self.own, sums: vec![0.0; self.sums.len()] };
        for other in others {
            gathered.add(other, forget);
        }
        gathered
    }

    /// Adds another's sums, discounted to this one's now.
    fn add(&mut self, other: &Memory, forget: f64) {
        let kept = forget.powf((self.now() - other.now()).max(0.0));
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += kept * more;
        }
    }

    /// This one's sums and what was gathered, at this one's now.
    pub(super) fn with(&self, gathered: Option<&Memory>, forget: f64) -> Memory {
        let mut whole = self.clone();
        if let Some(gathered) = gathered {
            whole.add(gathered, forget);
        }
        whole
    }

    /// Takes over what another made that is gone, as if it had been made here. Whoever has heard of both has heard of
    /// as many ticks as before.
    pub(super) fn take_over(&mut self, gone: &Memory, forget: f64) {
        let now = self.now().max(gone.now()).max(self.own + gone.own);
        self.fade(forget.powf(now - self.now()));
        self.own += gone.own;
        self.heard = now - self.own;
        self.add(gone, forget);
    }

    /// True where it has the same shape and holds only numbers.
    pub(super) fn is_sound(&self, count: usize) -> bool {
        let numbers = self.own.is_finite() && self.heard.is_finite();
        numbers && self.sums.len() == count && self.sums.iter().all(|sum| sum.is_finite())
    }

    fn fade(&mut self, kept: f64) {
        self.sums.iter_mut().for_each(|sum| *sum *= kept);
    }
}
