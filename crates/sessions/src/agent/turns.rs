//! How many turns runs usually take, learned from those that ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use stint_types::catalog::TaskClass;
use stint_types::units::{Chance, Count};

/// How many turns an episode may take: the usual number, and, once it is over and the agent calls on, some more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCap {
    /// After which the episode is asked to end.
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

/// How an episode went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnObservation {
    /// The turns that it took.
    pub turns: Count,
    /// True if it came to its end by itself; false if a cap, a budget or silence ended it, or it still runs.
    pub is_complete: bool,
}

/// How many turns runs usually take, by class of task and model. It can be saved.
///
/// Each number of turns has how many episodes ended there by themselves and how many were ended there; older runs count less.
/// Quantiles are those of the product-limit estimate (Kaplan and Meier, *Nonparametric estimation from incomplete
/// observations*, 1958), so that runs which our own caps ended do not pull the caps down. Caps at P50, extended once to P75:
/// Gao and Peng, *More with Less: An Empirical Study of Turn-Control Strategies for Efficient Coding Agents* (arXiv
/// 2510.16786).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnStatistics {
    kinds: BTreeMap<TaskClass, BTreeMap<Arc<str>, TurnHistogram>>,
}

/// Runs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TurnHistogram {
    /// By turns, from 1: how many ended by themselves, and how many were ended.
    runs: Vec<(f64, f64)>,
}

impl TurnStatistics {
    /// Longer runs count as this long.
    pub const TURNS_MAX: usize = 512;
    /// What an episode still counts for when the next one has come.
    const FORGET: f64 = 0.995;
    /// For how many episodes the known ones must count before they cap others.
    const RUNS_MIN: f64 = 20.0;
    /// The share of runs that is never capped, so that long ones go on being seen.
    const UNCAPPED: f64 = 0.05;

    /// Takes in an episode.
    pub fn learn(&mut self, class: TaskClass, model: &Arc<str>, run: TurnObservation) {
        self.kinds.entry(class).or_default().entry(model.clone()).or_default().learn(run);
    }

    /// How many turns an episode may take; nothing if too little is known, and for the few episodes that are left alone.
    /// `drawn` is a random number, drawn once for the episode.
    pub fn cap(&self, class: TaskClass, model: &str, drawn: Chance) -> Option<TurnCap> {
        if drawn.get() < TurnStatistics::UNCAPPED {
            return None;
        }
        let seen = self.kinds.get(&class)?.get(model)?;
        if seen.weight() < TurnStatistics::RUNS_MIN {
            return None;
        }
        let usual = seen.quantile(0.5)?;
        Some(TurnCap { usual, extended: seen.quantile(0.75).unwrap_or(usual).max(usual) })
    }
}

impl TurnHistogram {
    fn learn(&mut self, run: TurnObservation) {
        for (ended, cut) in &mut self.runs {
            *ended *= TurnStatistics::FORGET;
            *cut *= TurnStatistics::FORGET;
        }
        let at = usize::try_from(run.turns.0.max(1)).unwrap_or(usize::MAX).min(TurnStatistics::TURNS_MAX) - 1;
        if self.runs.len() <= at {
            self.runs.resize(at + 1, (0.0, 0.0));
        }
        let (ended, cut) = &mut self.runs[at];
        *(if run.is_complete { ended } else { cut }) += 1.0;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known after runs of so many turns, which ended by themselves or were ended at a cap.
    fn learned(runs: impl IntoIterator<Item = (u64, bool)>) -> TurnStatistics {
        let mut turns = TurnStatistics::default();
        for (taken, is_complete) in runs {
            turns.learn(
                TaskClass::Agentic,
                &"m".into(),
                TurnObservation { turns: Count(taken), is_complete },
            );
        }
        turns
    }

    fn cap(turns: &TurnStatistics) -> Option<(u64, u64)> {
        let cap = turns.cap(TaskClass::Agentic, "m", Chance::new(0.5))?;
        Some((cap.usual.0, cap.extended.0))
    }

    #[test]
    fn caps_are_the_median_and_the_upper_quartile() {
        let turns = learned((0..420).map(|at| (1 + (at * 8) % 21, true)));
        assert_eq!(cap(&turns), Some((11, 16)));
    }

    #[test]
    fn runs_that_our_own_caps_ended_do_not_pull_the_caps_down() {
        let free = |at: u64| 1 + (at * 7) % 40;
        let capped = |at| (free(at).min(20), free(at) <= 20);
        // A fifth of the runs is left alone.
        let mixed = (0..400).map(|at| if at % 5 == 0 { (free(at), true) } else { capped(at) });
        let (usual, extended) = cap(&learned(mixed)).unwrap();
        assert!((18..=22).contains(&usual) && (26..=34).contains(&extended), "{usual} {extended}");
        let naive = (0..400).map(|at| (capped(at).0, true));
        assert_eq!(cap(&learned(naive)).unwrap().1, 20, "which is what counting them as ended would do");
    }

    #[test]
    fn nothing_is_capped_by_too_few_runs_or_by_none_that_ended() {
        assert_eq!(cap(&learned((0..19).map(|_| (5, true)))), None);
        assert!(cap(&learned((0..30).map(|_| (5, true)))).is_some());
        assert_eq!(cap(&learned((0..100).map(|_| (5, false)))), None);
        assert_eq!(learned([]).cap(TaskClass::Math, "m", Chance::new(1.0)), None);
    }

    #[test]
    fn old_runs_are_forgotten_and_some_are_never_capped() {
        let turns = learned((0..1_000).map(|_| (30, true)).chain((0..600).map(|_| (4, true))));
        assert_eq!(cap(&turns), Some((4, 4)));
        assert_eq!(turns.cap(TaskClass::Agentic, "m", Chance::new(0.01)), None);
        let long = learned((0..100).map(|_| (1_000_000, true)));
        assert_eq!(cap(&long), Some((512, 512)));
    }

    #[test]
    fn what_was_learned_is_the_same_after_saving() {
        let turns = learned((0..100).map(|at| (1 + at % 20, at % 3 > 0)));
        let saved = serde_json::to_string(&turns).unwrap();
        assert_eq!(cap(&serde_json::from_str(&saved).unwrap()), cap(&turns));
    }
}
