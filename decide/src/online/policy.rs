//! The simple policies that the product's beliefs are measured against.

use stint_types::units::SeededRng;

use super::arena::{ARMS, Arena, Question};

/// One way of choosing, which may learn from what it chose.
pub trait Policy {
    /// Which model answers.
    fn choose(&mut self, question: &Question, dice: &mut SeededRng) -> usize;
    /// What came of it.
    fn learn(&mut self, question: &Question, arm: usize, result: &Outcome);
}

/// What came of a choice.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Whether the answer was right.
    pub right: f64,
    /// What that is worth less what it cost.
    pub utility: f64,
}

/// What a question's answer is worth less what it cost, by model.
#[derive(Debug, Clone, Copy)]
pub struct Utility {
    /// What a cost of the whole scale counts.
    pub lambda: f64,
    /// The cost that counts as one.
    pub scale: f64,
}

impl Utility {
    /// Of an answer.
    pub fn of(&self, right: f64, cost: f64) -> f64 {
        right - self.lambda * (cost / self.scale).min(1.0)
    }
}

/// Always the same model.
pub struct Fixed(pub usize);

impl Policy for Fixed {
    fn choose(&mut self, _: &Question, _: &mut SeededRng) -> usize {
        self.0
    }
    fn learn(&mut self, _: &Question, _: usize, _: &Outcome) {}
}

/// Knows every answer beforehand.
pub struct Oracle(pub Utility);

impl Policy for Oracle {
    fn choose(&mut self, question: &Question, _: &mut SeededRng) -> usize {
        best(std::array::from_fn(|arm| self.0.of(question.right[arm], question.cost[arm])))
    }
    fn learn(&mut self, _: &Question, _: usize, _: &Outcome) {}
}

/// Upper confidence bounds without a context (Auer, Cesa-Bianchi and Fischer, 2002).
#[derive(Default)]
pub struct Bounds {
    sums: [f64; ARMS],
    counts: [f64; ARMS],
    width: f64,
}

impl Bounds {
    /// Knows nothing; its bounds are so wide.
    pub fn new(width: f64) -> Bounds {
        Bounds { width, ..Bounds::default() }
    }
}

impl Policy for Bounds {
    fn choose(&mut self, _: &Question, _: &mut SeededRng) -> usize {
        let all: f64 = self.counts.iter().sum();
        best(std::array::from_fn(|arm| match self.counts[arm] {
            count if count < 1.0 => f64::INFINITY,
            count => self.sums[arm] / count + self.width * (2.0 * all.ln() / count).sqrt(),
        }))
    }
    fn learn(&mut self, _: &Question, arm: usize, outcome: &Outcome) {
        self.sums[arm] += outcome.utility;
        self.counts[arm] += 1.0;
    }
}

/// A linear model of utility for each arm, with upper confidence bounds (Li et al., 2010): discounted where `forget`
/// is below 1 (Russac et al., 2019).
pub struct Linear {
    context: fn(&Question) -> Vec<f64>,
    inverse: [Vec<Vec<f64>>; ARMS],
    sums: [Vec<f64>; ARMS],
    alpha: f64,
    forget: f64,
}

impl Linear {
    /// Knows nothing.
    pub fn cold(context: fn(&Question) -> Vec<f64>, sample: &Question, alpha: f64, forget: f64) -> Linear {
        let size = context(sample).len();
        let identity: Vec<Vec<f64>> =
            (0..size).map(|i| (0..size).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        Linear {
            context,
            inverse: std::array::from_fn(|_| identity.clone()),
            sums: std::array::from_fn(|_| vec![0.0; size]),
            alpha,
            forget,
        }
    }

    /// Has seen every offline answer, which together count for `worth` requests.
    pub fn warm(mut self, arena: &Arena, utility: Utility, worth: f64) -> Linear {
        let weight = (worth / arena.offline.len() as f64).sqrt();
        for question in &arena.offline {
            for arm in 0..ARMS {
                let value = utility.of(question.right[arm], question.cost[arm]);
                self.add(question, arm, value, weight);
            }
        }
        self
    }

    /// Sherman and Morrison's update.
    fn add(&mut self, question: &Question, arm: usize, value: f64, weight: f64) {
        let context: Vec<f64> = (self.context)(question).iter().map(|x| x * weight).collect();
        let image = times(&self.inverse[arm], &context);
        let divisor = 1.0 + dot(&image, &context);
        for (row, left) in self.inverse[arm].iter_mut().zip(&image) {
            row.iter_mut().zip(&image).for_each(|(entry, right)| *entry -= left * right / divisor);
        }
        self.sums[arm].iter_mut().zip(&context).for_each(|(sum, x)| *sum += x * value * weight);
    }
}

impl Policy for Linear {
    fn choose(&mut self, question: &Question, _: &mut SeededRng) -> usize {
        let context = (self.context)(question);
        best(std::array::from_fn(|arm| {
            let image = times(&self.inverse[arm], &context);
            dot(&image, &self.sums[arm]) + self.alpha * dot(&image, &context).max(0.0).sqrt()
        }))
    }
    fn learn(&mut self, question: &Question, arm: usize, outcome: &Outcome) {
        if self.forget < 1.0 {
            self.inverse[arm].iter_mut().flatten().for_each(|entry| *entry /= self.forget);
            self.sums[arm].iter_mut().for_each(|sum| *sum *= self.forget);
        }
        self.add(question, arm, outcome.utility, 1.0);
    }
}

/// The predicted successes of all models and the length, as in the best policy known.
pub fn narrow(question: &Question) -> Vec<f64> {
    let mut context = vec![1.0];
    context.extend(question.predicted);
    context.push(question.prompt.ln_1p() / 5.0);
    context
}

/// What can be counted by hand.
pub fn wide(question: &Question) -> Vec<f64> {
    let mut context = vec![1.0];
    context.extend(question.surface.iter().map(|x| x / 5.0));
    context
}

/// What a policy is told of a model that regresses.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// Which one.
    pub top: usize,
    /// From which request on.
    pub from: usize,
    /// The share of its right answers that it keeps.
    pub keeps: f64,
}

/// The prior's word, for ever.
pub struct Frozen {
    told: Option<Told>,
    asked: usize,
    utility: Utility,
    output: [f64; ARMS],
    prices: [f64; ARMS],
}

impl Frozen {
    /// With each model's mean length offline.
    pub fn new(arena: &Arena, utility: Utility) -> Frozen {
        let mean = |arm: usize| {
            arena.offline.iter().map(|question| question.output[arm]).sum::<f64>()
                / arena.offline.len() as f64
        };
        Frozen {
            told: None,
            asked: 0,
            utility,
            output: std::array::from_fn(mean),
            prices: arena.arms.map(|arm| arm.price * 1e-6),
        }
    }

    /// The same, but that it is told of a regression.
    pub fn told(self, told: Told) -> Frozen {
        Frozen { told: Some(told), ..self }
    }
}

impl Policy for Frozen {
    fn choose(&mut self, question: &Question, _: &mut SeededRng) -> usize {
        let fallen = self.told.filter(|told| self.asked >= told.from);
        self.asked += 1;
        best(std::array::from_fn(|arm| {
            let cost = self.prices[arm] * (question.prompt + self.output[arm]);
            let keeps = fallen.filter(|told| told.top == arm).map_or(1.0, |told| told.keeps);
            self.utility.of(keeps * question.predicted[arm], cost)
        }))
    }
    fn learn(&mut self, _: &Question, _: usize, _: &Outcome) {}
}

/// The place of the largest.
pub fn best(values: [f64; ARMS]) -> usize {
    (0..ARMS).max_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a))).unwrap_or(0)
}

fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
