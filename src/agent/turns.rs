//! How many turns runs usually take, learned from those that ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::TaskClass;
use crate::units::{Chance, Count};

/// How many turns a run may take: the usual number, and, once it is over and the agent calls on, some more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCap {
    /// After which the run is asked to end.
    pub usual: Count,
    /// What is granted once beyond that; the same where nothing is.
    pub extended: Count,
}

impl TurnCap {
    /// So many and no more.
    pub fn fixed(turns: Count) -> TurnCap {
        TurnCap { usual: turns, extended: turns }
    }
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The turns that it took.
    pub turns: Count,
    /// True where it came to its end by itself; false where a cap, a budget or silence ended it, or it still runs.
    pub is_complete: bool,
}

/// How many turns runs usually take, by class of task and model. It can be saved.
///
/// Each number of turns has how many runs ended there by themselves and how many were ended there; older runs count less.
/// Quantiles are those of the product-limit estimate (Kaplan and Meier, *Nonparametric estimation from incomplete
/// observations*, 1958), so that runs which our own caps ended do not pull the caps down. Caps at P50, extended once to P75:
/// Gao and Peng, *More with Less: An Empirical Study of Turn-Control Strategies for Efficient Coding Agents* (arXiv
/// 2510.16786).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    kinds: BTreeMap<TaskClass, BTreeMap<Arc<str>, Seen>>,
}

/// Runs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// By turns, from 1: how many ended by themselves, and how many were ended.
    runs: Vec<(f64, f64)>,
}

impl Turns {
    /// The longest run that is told from longer ones.
    pub const TURNS_MAX: usize = 512;
    /// What a run still counts for when the next one has come.
    const FORGET: f64 = 0.995;
    /// For how many runs the known ones must count before they cap others.
    const RUNS_MIN: f64 = 20.0;
    /// The share of runs that is never capped, so that long ones go on being seen.
    const UNCAPPED: f64 = 0.05;

    /// Takes in a run.
    pub fn learn(&mut self, class: TaskClass, model: &Arc<str>, run: Run) {
        self.kinds.entry(class).or_default().entry(model.clone()).or_default().learn(run);
    }

    /// How many turns a run may take; nothing where too little is known, and for the few runs that are left alone. `drawn`
    /// is a random number, drawn once for the run.
    pub fn cap(&self, class: TaskClass, model: &str, drawn: Chance) -> Option<TurnCap> {
        if drawn.get() < Turns::UNCAPPED {
            return None;
        }
        let seen = self.kinds.get(&class)?.get(model)?;
        if seen.weight() < Turns::RUNS_MIN {
            return None;
        }
        let usual = seen.quantile(0.5)?;
        Some(TurnCap { usual, extended: seen.quantile(0.75).unwrap_or(usual).max(usual) })
    }
}

impl Seen {
    fn learn(&mut self, run: Run) {
        for (ended, cut) in &mut self.runs {
            *ended *= Turns::FORGET;
            *cut *= Turns::FORGET;
        }
        let at = usize::try_from(run.turns.0.max(1)).unwrap_or(usize::MAX).min(Turns::TURNS_MAX) - 1;
        if self.runs.len() <= at {
            self.runs.resize(at + 1, (0.0, 0.0));
        }
        match run.is_complete {
            true => self.runs[at].0 += 1.0,
            false => self.runs[at].1 += 1.0,
        }
    }

    fn weight(&self) -> f64 {
        self.runs.iter().map(|(ended, cut)| ended + cut).sum()
    }

    /// The fewest turns within which such a share of runs would have ended by itself.
    fn quantile(&self, share: f64) -> Option<Count> {
        let (mut running, mut going) = (self.weight(), 1.0);
        for (turns, (ended, cut)) in (1..).zip(&self.runs) {
            if running > 0.0 {
                going *= 1.0 - ended / running;
            }
            if going <= 1.0 - share + 1e-9 {
                return Some(Count(turns));
            }
            running -= ended + cut;
        }
        None
    }
}
