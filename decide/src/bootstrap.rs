//! Intervals by drawing the questions again (Efron, *Bootstrap methods*, 1979). Everything is measured on
//! the same draws, so that differences are paired.

use stint_types::units::SeededRng;

/// What was measured on each draw.
#[derive(Debug, Clone)]
pub struct Draws {
    /// On the questions themselves.
    pub value: f64,
    /// On each draw.
    pub drawn: Vec<f64>,
}

/// A value and the range that holds 95 % of the draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// On the questions themselves.
    pub value: f64,
    /// One draw in forty is below.
    pub low: f64,
    /// One draw in forty is above.
    pub high: f64,
}

/// How often each question is counted, for each of so many draws.
pub fn draws(questions: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut dice = SeededRng::new(seed);
    let draw = |dice: &mut SeededRng| {
        let mut counts = vec![0.0; questions];
        (0..questions).for_each(|_| counts[dice.below(questions)] += 1.0);
        counts
    };
    (0..count).map(|_| draw(&mut dice)).collect()
}

/// The mean of several measures, draw by draw.
pub fn average<'a>(each: impl Iterator<Item = &'a Draws> + Clone) -> Draws {
    let count = each.clone().count().max(1) as f64;
    let length = each.clone().map(|draws| draws.drawn.len()).min().unwrap_or(0);
    let drawn =
        (0..length).map(|at| each.clone().map(|draws| draws.drawn[at]).sum::<f64>() / count).collect();
    Draws { value: each.map(|draws| draws.value).sum::<f64>() / count, drawn }
}

impl Draws {
    /// Measures on the questions themselves and on every draw.
    pub fn of(draws: &[Vec<f64>], measure: impl Fn(&[f64]) -> f64) -> Draws {
        let all = vec![1.0; draws.first().map_or(0, Vec::len)];
        Draws { value: measure(&all), drawn: draws.iter().map(|counts| measure(counts)).collect() }
    }

    /// How much more it is than another, draw by draw.
    pub fn minus(&self, other: &Draws) -> Draws {
        let pairs = self.drawn.iter().zip(&other.drawn);
        Draws { value: self.value - other.value, drawn: pairs.map(|(a, b)| a - b).collect() }
    }

    /// The 95 % interval.
    pub fn interval(&self) -> Interval {
        let mut sorted = self.drawn.clone();
        sorted.sort_by(f64::total_cmp);
        let edge = sorted.len() / 40;
        let at = |place: usize| sorted.get(place).copied().unwrap_or(self.value);
        Interval { value: self.value, low: at(edge), high: at(sorted.len().saturating_sub(edge + 1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors_either_way() {
        let mut dice = SeededRng::new(1);
        let values: Vec<f64> = (0..400).map(|_| dice.standard_normal()).collect();
        let measure = |counts: &[f64]| values.iter().zip(counts).map(|(v, c)| v * c).sum::<f64>() / 400.0;
        let mean = Draws::of(&draws(400, 800, 2), measure);
        let interval = mean.interval();
        assert!((0.15..0.25).contains(&(interval.high - interval.low)), "{interval:?}");
        assert!(mean.minus(&mean).interval() == Interval { value: 0.0, low: 0.0, high: 0.0 });
    }
}
