//! One model that nobody has seen, and what is said of it.

use std::sync::Arc;

use stint_decide::learn::{BeliefStore, OutcomeSample, Settings};
use stint_types::catalog::{Demand, SolutionStopReason, ThinkingStopReason};
use stint_types::units::{SeededRng, Tokens};

use crate::measure::{mean, spearman};

use super::ANY;

/// How many others' thoughts are known before, of each of so many other models.
const OTHERS: usize = 8;
const THOUGHTS_EACH: usize = 40;

/// A text's demand, and the lengths of a model's thoughts on it.
type Thoughts = (Arc<Demand>, Vec<f64>);

/// In so many ways the texts are halved: of some thirty that are measured chance decides much.
const HALVINGS: u64 = 4;

/// A model with what it thought.
pub(super) struct Subject {
    name: Arc<str>,
    halvings: Vec<Halving>,
}

/// A model's thoughts, halved by their texts.
struct Halving {
    learned: Vec<Thoughts>,
    measured: Vec<Thoughts>,
}

/// What was learned before it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stage {
    /// How many of the model's own thoughts.
    pub(super) own: usize,
    /// True if other models' thoughts were learned before.
    pub(super) others: bool,
    /// Where thoughts are cut, as a multiple of the median that was predicted before anything was learned.
    pub(super) cut: Option<f64>,
}

/// What is found of a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    /// The rank correlation of what is foretold with what was thought.
    pub(super) rank: f64,
    /// The share of thoughts beyond the 99th percentile, and beyond the 90th.
    pub(super) beyond: [f64; 2],
    /// How far the median is off: the mean of ln L less what is foretold.
    pub(super) bias: f64,
}

impl Subject {
    /// Halves the texts, the same ways for each model with the same texts.
    pub(super) fn of(name: &str, texts: &[Thoughts]) -> Subject {
        let halving = |at: u64| {
            let mut learned = texts.to_vec();
            SeededRng::new(502 + 100 * at).shuffle(&mut learned);
            let measured = learned.split_off(learned.len() / 2);
            Halving { learned, measured }
        };
        Subject { name: name.into(), halvings: (0..HALVINGS).map(halving).collect() }
    }

    /// How many texts it is measured on, each time.
    pub(super) fn texts(&self) -> usize {
        self.halvings[0].measured.len()
    }

    /// What is foretold after so much, against what was thought: the mean over the halvings.
    pub(super) fn find(&self, stage: Stage, all: &[Subject]) -> Finding {
        let found: Vec<Finding> =
            (0..self.halvings.len()).map(|halving| self.find_in(halving, stage, all)).collect();
        let over = |value: &dyn Fn(&Finding) -> f64| mean(&found.iter().map(value).collect::<Vec<_>>());
        Finding {
            rank: over(&|one| one.rank),
            beyond: [over(&|one| one.beyond[0]), over(&|one| one.beyond[1])],
            bias: over(&|one| one.bias),
        }
    }

    /// Others teach only what they thought on texts that are learned from here.
    fn find_in(&self, halving: usize, stage: Stage, all: &[Subject]) -> Finding {
        let mut store = BeliefStore::new(Settings::default());
        let learned = &self.halvings[halving].learned;
        if stage.others {
            let mut others: Vec<&Subject> = all.iter().filter(|other| other.name != self.name).collect();
            SeededRng::new(503).shuffle(&mut others);
            for other in others.into_iter().take(OTHERS) {
                let known: Vec<&Thoughts> = other.halvings[halving]
                    .learned
                    .iter()
                    .filter(|(demand, _)| learned.iter().any(|own| Arc::ptr_eq(&own.0, demand)))
                    .collect();
                teach(&mut store, &other.name, &known, THOUGHTS_EACH, None);
            }
        }
        let own: Vec<&Thoughts> = learned.iter().collect();
        teach(&mut store, &self.name, &own, stage.own, stage.cut);
        self.halvings[halving].measure(&store, &self.name)
    }
}

impl Halving {
    fn measure(&self, store: &BeliefStore, name: &Arc<str>) -> Finding {
        let (mut foretold, mut thought) = (Vec::new(), Vec::new());
        let (mut beyond, mut count) = ([0.0; 2], 0.0);
        for (demand, lengths) in &self.measured {
            let mut demand = under_name(demand, name);
            store.adjust(&mut demand);
            let model = &demand.models[name];
            foretold.push(model.thinking.mu);
            thought.push(mean(&lengths.iter().map(|length| length.ln()).collect::<Vec<_>>()));
            for length in lengths {
                count += 1.0;
                let limits = [model.thinking_p99(), model.thinking_p90()];
                beyond
                    .iter_mut()
                    .zip(limits)
                    .for_each(|(sum, limit)| *sum += f64::from(u8::from(*length > limit)));
            }
        }
        let errors: Vec<f64> = thought.iter().zip(&foretold).map(|(real, told)| real - told).collect();
        Finding {
            rank: spearman(&foretold, &thought),
            beyond: beyond.map(|sum| sum / f64::max(count, 1.0)),
            bias: mean(&errors),
        }
    }
}

/// Learns so many thoughts, in random order.
fn teach(store: &mut BeliefStore, name: &Arc<str>, known: &[&Thoughts], most: usize, cut: Option<f64>) {
    let mut thoughts: Vec<(&Arc<Demand>, f64)> = known
        .iter()
        .flat_map(|(demand, lengths)| lengths.iter().map(move |&length| (demand, length)))
        .collect();
    SeededRng::new(504).shuffle(&mut thoughts);
    for (demand, length) in thoughts.into_iter().take(most) {
        let predicted = demand.models[ANY].clone();
        let limit = cut.map_or(f64::INFINITY, |times| times * predicted.thinking.median());
        let ended = if length > limit { ThinkingStopReason::Cut } else { ThinkingStopReason::Closed };
        store.observe(&OutcomeSample {
            model: name.clone(),
            class: demand.class,
            predicted,
            request: demand.request.clone(),
            budget: Tokens::MAX,
            effort: 1.0,
            thinking: Tokens::round(length.min(limit).max(1.0)),
            ended,
            solution: Tokens::ZERO,
            solution_ended: SolutionStopReason::Stop,
            success: None,
            weight: 1.0,
            alarm: 1.0,
        });
    }
}

fn under_name(demand: &Demand, name: &Arc<str>) -> Demand {
    let models = [(name.clone(), demand.models[ANY].clone())].into();
    Demand { models, ..demand.clone() }
}
