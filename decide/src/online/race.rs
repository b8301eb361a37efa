//! Runs every policy over the same questions.

use stint_decide::learn::Settings;
use stint_types::units::SeededRng;

use super::STEPS;
use super::arena::{ARMS, Arena};
use super::learned::{Learned, Way};
use super::mean;
use super::policy::{Bounds, Fixed, Frozen, Linear, Oracle, Outcome, Policy, Told, Utility, narrow, wide};

/// The share of its right answers that the best model keeps when it regresses.
const KEPT: f64 = 0.25;

/// Stint's own settings where a prior was fitted on answers of these models: it counts for little, since the beliefs are
/// shown those answers too.
pub(super) fn warm() -> Way {
    Way {
        settings: Settings { prior_weight: 60.0, ..Settings::default() },
        floor: 0.0,
        offline: super::arena::OFFLINE as f64,
        cold: false,
    }
}

/// Without any prior.
pub(super) fn cold() -> Way {
    Way { settings: Settings::default(), floor: 0.0, offline: 0.0, cold: true }
}

/// Who knows of the regression: of no account where there is none.
pub(super) const TOLD: &str = "frozen prior, told of the regression";

/// The request at which the best model regresses.
pub(super) const HALF: usize = STEPS / 2;

/// How a policy is made, before the first online question.
type Maker = Box<dyn Fn(&Arena, Utility) -> Box<dyn Policy>>;
/// One policy's name and how it is made.
type Entry = (String, Maker);

/// A policy's utilities, request by request.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Its name.
    pub name: String,
    /// As the data have it.
    pub steady: Vec<f64>,
    /// When the best model regresses half way.
    pub shifted: Vec<f64>,
}

/// All policies over one order of the questions.
pub(super) fn run(arena: &Arena, lambda: f64, seed: u64) -> Vec<Run> {
    let utility = Utility { lambda, scale: arena.scale };
    let top = best_fixed(arena, utility);
    let one = |(name, make): Entry| Run {
        name,
        steady: replay(arena, utility, make(arena, utility).as_mut(), seed, None),
        shifted: replay(arena, utility, make(arena, utility).as_mut(), seed, Some(top)),
    };
    entries().into_iter().map(one).collect()
}

/// The model that is best for all of them.
pub(super) fn best_fixed(arena: &Arena, utility: Utility) -> usize {
    let value = |arm: usize| mean(&replay(arena, utility, &mut Fixed(arm), 0, None));
    let values: [f64; ARMS] = std::array::from_fn(value);
    super::policy::best(values)
}

fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = vec![
        ("Stint, warm".into(), Box::new(|arena, utility| Box::new(Learned::new(arena, utility, warm())))),
        (
            "Stint, warm, 1 % anywhere".into(),
            Box::new(|arena, utility| Box::new(Learned::new(arena, utility, Way { floor: 0.01, ..warm() }))),
        ),
        ("Stint, cold".into(), Box::new(|arena, utility| Box::new(Learned::new(arena, utility, cold())))),
    ];
    let ways = [(0.03, 1.0, 200), (0.1, 1.0, 200), (0.1, 1.0, 2_000), (0.3, 1.0, 200), (0.1, 0.997, 200)];
    for (alpha, forget, worth) in ways {
        let all = if worth == 200 { "" } else { ", each answer in full" };
        let name = format!("LinUCB 7-d, warm, alpha {alpha}, gamma {forget}{all}");
        let make = move |arena: &Arena, utility| -> Box<dyn Policy> {
            Box::new(Linear::cold(narrow, &arena.online[0], alpha, forget).warm(
                arena,
                utility,
                f64::from(worth),
            ))
        };
        entries.push((name, Box::new(make)));
    }
    entries.push(("frozen prior".into(), Box::new(|arena, utility| Box::new(Frozen::new(arena, utility)))));
    entries.push((
        TOLD.into(),
        Box::new(|arena, utility| {
            let told = Told { top: best_fixed(arena, utility), from: HALF, keeps: KEPT };
            Box::new(Frozen::new(arena, utility).told(told))
        }),
    ));
    entries.push(("LinUCB 7-d, cold".into(), linear(narrow)));
    entries.push(("LinUCB 24-d, cold".into(), linear(wide)));
    for width in [0.2, 1.0] {
        let name = format!("UCB1, width {width}");
        entries.push((name, Box::new(move |_: &Arena, _| Box::new(Bounds::new(width)))));
    }
    for arm in 0..ARMS {
        let name = format!("always {}", super::arena::MEASURED[arm].name);
        entries.push((name, Box::new(move |_: &Arena, _| Box::new(Fixed(arm)))));
    }
    entries.push(("oracle".into(), Box::new(|_, utility| Box::new(Oracle(utility)))));
    entries
}

fn linear(context: fn(&super::arena::Question) -> Vec<f64>) -> Maker {
    Box::new(move |arena, _| Box::new(Linear::cold(context, &arena.online[0], 0.3, 1.0)))
}

/// One policy over the first online questions. From half way on, the model `regressed` keeps a quarter of its right
/// answers: the same ones for every policy.
fn replay(
    arena: &Arena,
    utility: Utility,
    policy: &mut dyn Policy,
    seed: u64,
    regressed: Option<usize>,
) -> Vec<f64> {
    let (mut dice, mut coin) = (SeededRng::new(1_000 + seed), SeededRng::new(2_000 + seed));
    let mut step = |(at, question): (usize, &super::arena::Question)| {
        let mut question = question.clone();
        let keeps = coin.next_f64() < KEPT;
        if let Some(arm) = regressed.filter(|_| at >= HALF && !keeps) {
            question.right[arm] = 0.0;
        }
        let arm = policy.choose(&question, &mut dice);
        let right = question.right[arm];
        let outcome = Outcome { right, utility: utility.of(right, question.cost[arm]) };
        policy.learn(&question, arm, &outcome);
        outcome.utility
    };
    arena.online.iter().take(STEPS).enumerate().map(&mut step).collect()
}
