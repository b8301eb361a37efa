//! The distribution of a thought's length, and the moments of it that a budget asks for.
//!
//! The log-normal was chosen over the gamma by the likelihood of lengths that neither was fitted on: the embedded
//! model's, and those of 29 models on MMLU-Pro (`crates/decide/src/estimate/prior.md`).

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// The distribution of a length in tokens: ln L ~ Normal(mu, sigma).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogNormal {
    /// The mean of ln L.
    pub mu: f64,
    /// The standard deviation of ln L, above zero.
    pub sigma: f64,
}

/// What becomes of thoughts under a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedMoments {
    /// [`LogNormal::cdf`].
    pub finished: f64,
    /// [`LogNormal::mean_within`].
    pub within: f64,
    /// [`LogNormal::mean_beyond`].
    pub beyond: f64,
}

/// Below this spread a length counts as known; it keeps divisions finite.
const SIGMA_MIN: f64 = 1e-3;

impl LogNormal {
    /// The length that half of the thoughts reach.
    pub fn median(&self) -> f64 {
        self.mu.exp()
    }

    /// The length that lies so many standard deviations of ln L from the median.
    pub fn quantile(&self, deviations: f64) -> f64 {
        (self.mu + deviations * self.sigma()).exp()
    }

    /// `E[L] = exp(mu + sigma²/2)`.
    pub fn mean(&self) -> f64 {
        (self.mu + self.sigma().powi(2) / 2.0).exp()
    }

    /// F(t), the chance that a thought is finished within `t` tokens.
    pub fn cdf(&self, t: f64) -> f64 {
        if t > 0.0 { normal_cdf(self.z(t)) } else { 0.0 }
    }

    /// `E[min(L, t)]`, what a budget of `t` is expected to take: `E[L]·Φ(z − sigma) + t·(1 − Φ(z))` with
    /// `z = (ln t − mu)/sigma`, the lognormal's partial expectation (Johnson, Kotz, Balakrishnan, *Continuous
    /// Univariate Distributions* 1, ch. 14).
    pub fn mean_within(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return 0.0;
        }
        let z = self.z(t);
        let mean = self.mean();
        (mean * normal_cdf(z - self.sigma()) + t * normal_cdf(-z)).min(mean).min(t)
    }

    /// `E[L | L > t]`, how long the thoughts are that a budget of `t` cuts: `E[L]·Φ(sigma − z)/Φ(−z)`. Never
    /// less than `t`.
    pub fn mean_beyond(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return self.mean();
        }
        let z = self.z(t);
        let longer = normal_cdf(-z);
        if longer < 1e-12 { t } else { (self.mean() * normal_cdf(self.sigma() - z) / longer).max(t) }
    }

    /// The mean and the variance of ln L among the thoughts that are longer than `t`: `mu + sigma·h` and
    /// `sigma²·(1 + z·h − h²)`, where h = φ(z)/Φ(−z) is the inverse Mills ratio (Tobin, *Estimation of
    /// relationships for limited dependent variables*, 1958).
    pub fn log_beyond(&self, t: f64) -> (f64, f64) {
        // Beyond this both densities vanish; what is that long is there by surprise, and just so long.
        const Z_MAX: f64 = 30.0;
        let z = if t > 0.0 { self.z(t).min(Z_MAX) } else { -Z_MAX };
        let ratio = (-z * z / 2.0).exp() / TAU.sqrt() / normal_cdf(-z);
        let shrunk = (1.0 + z * ratio - ratio * ratio).clamp(0.0, 1.0);
        ((self.mu + self.sigma() * ratio).max(t.max(1.0).ln()), self.sigma().powi(2) * shrunk)
    }

    /// All of these at once: they have the dear parts in common. Who asks often gives the `mean`.
    pub fn truncated_at(&self, t: f64, mean: f64) -> TruncatedMoments {
        let [moments] = self.truncated_at_each(&[t], mean);
        moments
    }

    /// The same under several budgets, step by step for all of them: the processor works on them side by side, where one
    /// budget alone is a long row of steps that wait for each other.
    pub fn truncated_at_each<const N: usize>(&self, budgets: &[f64; N], mean: f64) -> [TruncatedMoments; N] {
        let z = budgets.map(|t| self.z(t));
        let density = z.map(|z| (-z * z / 2.0).exp());
        let longer = normal_tails(&z, &density);
        // The density at z − sigma: exp(−(z − sigma)²/2) = exp(−z²/2)·t/E[L].
        let z_shifted = z.map(|z| z - self.sigma());
        let shifted = std::array::from_fn(|i| density[i] * budgets[i] / mean);
        let above = normal_tails(&z_shifted, &shifted);
        std::array::from_fn(|i| {
            let (t, (finished, longer)) = (budgets[i], both_sides(z[i], longer[i]));
            if t <= 0.0 {
                return TruncatedMoments { finished: 0.0, within: 0.0, beyond: mean };
            }
            let (below, above) = both_sides(z_shifted[i], above[i]);
            let beyond = if longer < 1e-12 { t } else { (mean * above / longer).max(t) };
            TruncatedMoments { finished, within: (mean * below + t * longer).min(mean).min(t), beyond }
        })
    }

    /// The hazard f(t)/(1 − F(t)): the chance that a thought that is not finished after `t` tokens is with the next.
    pub fn hazard(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return 0.0;
        }
        let z = self.z(t);
        // Mills' ratio: far out the normal density is z times what lies beyond it.
        let rate = if z > 30.0 { z } else { (-z * z / 2.0).exp() / TAU.sqrt() / normal_cdf(-z) };
        rate / (self.sigma() * t)
    }

    fn sigma(&self) -> f64 {
        self.sigma.max(SIGMA_MIN)
    }

    fn z(&self, t: f64) -> f64 {
        (t.ln() - self.mu) / self.sigma()
    }
}

/// Φ, the standard normal's distribution function. Hart's rational approximation (Hart et al., *Computer
/// Approximations*, 1968, in the form of West, *Better approximations to cumulative normal functions*,
/// Wilmott 2005). Its error is below 1e-14 everywhere, which the tests check.
fn normal_cdf(z: f64) -> f64 {
    let tail = upper_tail(z.abs());
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Φ(z) and 1 − Φ(z), given 1 − Φ(|z|).
fn both_sides(z: f64, tail: f64) -> (f64, f64) {
    if z > 0.0 { (1.0 - tail, tail) } else { (tail, 1.0 - tail) }
}

/// 1 − Φ(|z|) of each, given exp(−z²/2).
fn normal_tails<const N: usize>(z: &[f64; N], density: &[f64; N]) -> [f64; N] {
    let mut tails = std::array::from_fn(|i| near_tail(z[i].abs(), density[i]));
    for ((tail, z), density) in tails.iter_mut().zip(z).zip(density) {
        if z.abs() >= NEAR {
            *tail = far_tail(z.abs(), *density);
        }
    }
    tails
}

/// 1 − Φ(z) for z from 0 on.
fn upper_tail(z: f64) -> f64 {
    tail_of(z, (-z * z / 2.0).exp())
}

fn tail_of(z: f64, density: f64) -> f64 {
    if z < NEAR { near_tail(z, density) } else { far_tail(z, density) }
}

/// From here on the tail is a continued fraction.
const NEAR: f64 = 7.071_067_811_865_475;

fn far_tail(z: f64, density: f64) -> f64 {
    let fraction = [4.0, 3.0, 2.0, 1.0].iter().fold(z + 0.65, |below, above| z + above / below);
    density / (fraction * TAU.sqrt())
}

fn near_tail(z: f64, density: f64) -> f64 {
    const ABOVE: [f64; 7] = [
        3.526_249_659_989_11e-2,
        0.700_383_064_443_688,
        6.373_962_203_531_65,
        33.912_866_078_383,
        112.079_291_497_871,
        221.213_596_169_931,
        220.206_867_912_376,
    ];
    const BELOW: [f64; 8] = [
        8.838_834_764_831_84e-2,
        1.755_667_163_182_64,
        16.064_177_579_207,
        86.780_732_202_946_1,
        296.564_248_779_674,
        637.333_633_378_831,
        793.826_512_519_948,
        440.413_735_824_752,
    ];
    density * polynomial(&ABOVE, z) / polynomial(&BELOW, z)
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(z: f64, expected: f64) {
        assert!(
            (normal_cdf(z) - expected).abs() < 1e-14,
            "Φ({z}) is {} rather than {expected}",
            normal_cdf(z)
        );
    }

    #[test]
    fn the_normal_distribution_is_exact_to_fourteen_digits() {
        check(0.0, 0.5);
        check(0.1, 0.539827837277029);
        check(-0.5, 0.3085375387259869);
        check(1.0, 0.8413447460685429);
        check(-1.0, 0.15865525393145707);
        check(1.2815515655446, 0.8999999999999999);
        check(2.3263478740408408, 0.99);
        check(-3.0, 0.0013498980316300957);
        check(4.5, 0.9999966023268753);
        check(-6.0, 9.865876450377012e-10);
        check(7.0, 0.9999999999987201);
        check(-7.2, 3.0106279811174455e-13);
        check(-9.0, 1.1285884059538422e-19);
        check(-20.0, 2.7536241186063314e-89);
    }

    #[test]
    fn the_longer_thoughts_are_those_that_the_density_has_beyond() {
        let length = LogNormal { mu: 5.0, sigma: 0.8 };
        for t in [40.0_f64, 150.0, 700.0] {
            let steps = 40_000;
            let width = (5.0 + 8.0 * 0.8 - t.ln()) / f64::from(steps);
            let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
            for i in 0..steps {
                let x = t.ln() + (f64::from(i) + 0.5) * width;
                let density = (-((x - 5.0) / 0.8).powi(2) / 2.0).exp();
                (mass, first, second) = (mass + density, first + density * x, second + density * x * x);
            }
            let (mean, variance) = length.log_beyond(t);
            assert!((mean - first / mass).abs() < 1e-5, "{mean}");
            assert!((variance - (second / mass - (first / mass).powi(2))).abs() < 1e-5, "{variance}");
        }
        assert!((length.log_beyond(0.0).0 - 5.0).abs() < 1e-9);
        assert!(length.log_beyond(1e300).0.is_finite());
    }

    /// What becomes of thoughts under one budget, in one row.
    fn held_alone(length: &LogNormal, t: f64) -> TruncatedMoments {
        let (mean, z) = (length.mean(), length.z(t));
        if t <= 0.0 {
            return TruncatedMoments { finished: 0.0, within: 0.0, beyond: mean };
        }
        let density = (-z * z / 2.0).exp();
        let (finished, longer) = both_sides(z, tail_of(z.abs(), density));
        let shifted = z - length.sigma();
        let (below, above) = both_sides(shifted, tail_of(shifted.abs(), density * t / mean));
        let beyond = if longer < 1e-12 { t } else { (mean * above / longer).max(t) };
        TruncatedMoments { finished, within: (mean * below + t * longer).min(mean).min(t), beyond }
    }

    /// E[min(L, t)] by brute force: the integral of 1 − F from 0 to t.
    fn integrated(length: &LogNormal, t: f64) -> f64 {
        let steps = 20_000;
        let width = t / f64::from(steps);
        (0..steps).map(|i| (1.0 - length.cdf((f64::from(i) + 0.5) * width)) * width).sum()
    }

    #[test]
    fn the_expected_length_within_a_budget_is_the_integral_of_the_survivors() {
        for (mu, sigma, t) in [(3.5, 0.3, 33.0), (6.0, 1.2, 100.0), (6.0, 1.2, 4000.0), (2.0, 0.1, 9.0)] {
            let length = LogNormal { mu, sigma };
            let (closed, brute) = (length.mean_within(t), integrated(&length, t));
            assert!((closed - brute).abs() < 1e-4 * brute, "{closed} against {brute}");
        }
    }

    #[test]
    fn the_hazard_is_the_share_of_the_rest_that_ends_now_and_falls_for_long_thoughts() {
        let length = LogNormal { mu: 6.0, sigma: 1.1 };
        for t in [50.0, 400.0, 3000.0] {
            let ended = (length.cdf(t + 0.5) - length.cdf(t - 0.5)) / (1.0 - length.cdf(t));
            assert!(
                (length.hazard(t) - ended).abs() < 1e-3 * ended,
                "{t}: {} against {ended}",
                length.hazard(t)
            );
        }
        assert!(length.hazard(5000.0) < length.hazard(500.0));
        assert!(length.hazard(1e30) > 0.0 && length.hazard(0.0) <= 0.0);
    }

    proptest! {
        #[test]
        fn a_larger_budget_is_expected_to_take_more_but_never_more_than_it_may(
            mu in 0.0..10.0f64, sigma in 0.05..2.0f64, t in 0.0..1e5f64, more in 0.0..1e4f64,
        ) {
            let length = LogNormal { mu, sigma };
            let (less, longer) = (length.mean_within(t), length.mean_within(t + more));
            prop_assert!(less >= 0.0 && less <= t && less <= length.mean());
            prop_assert!(longer >= less * (1.0 - 1e-12));
            prop_assert!(length.cdf(t + more) >= length.cdf(t));
            prop_assert!((0.0..=1.0).contains(&length.cdf(t)));
            prop_assert!(length.mean_beyond(t) >= t);
        }

        #[test]
        fn all_at_once_are_each_by_itself(mu in 0.0..10.0f64, sigma in 0.05..2.0f64, t in 0.0..1e5f64) {
            let length = LogNormal { mu, sigma };
            let held = length.truncated_at(t, length.mean());
            let alike = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs() + 1e-12;
            prop_assert!(alike(held.finished, length.cdf(t)));
            prop_assert!(alike(held.within, length.mean_within(t)));
            // Far out it is a quotient of two tails that both vanish.
            prop_assert!((held.beyond / length.mean_beyond(t) - 1.0).abs() < 1e-6 || t > 1e3 * length.quantile(2.33));
            prop_assert!(held.within <= t && held.beyond >= t && (0.0..=1.0).contains(&held.finished));
        }

        #[test]
        fn several_budgets_side_by_side_are_each_alone_to_the_last_bit(
            mu in 0.0..10.0f64, sigma in 0.05..2.0f64, t in 0.0..1e5f64,
        ) {
            let length = LogNormal { mu, sigma };
            let budgets = [0.0, t / 1e3, t, t * 1e6];
            for (held, t) in length.truncated_at_each(&budgets, length.mean()).into_iter().zip(budgets) {
                let bits = |held: TruncatedMoments| [held.finished, held.within, held.beyond].map(f64::to_bits);
                prop_assert_eq!(bits(held), bits(held_alone(&length, t)));
            }
        }

        #[test]
        fn the_hazard_is_what_finishes_of_what_is_left(mu in 1.0..8.0f64, sigma in 0.1..2.0f64, z in -2.0..4.0f64) {
            let length = LogNormal { mu, sigma };
            let t = (mu + z * sigma).exp();
            let step = t * 1e-4;
            let left = |t: f64| normal_cdf(-length.z(t));
            let rate = (left(t) - left(t + step)) / left(t + step / 2.0) / step;
            prop_assert!((length.hazard(t + step / 2.0) / rate - 1.0).abs() < 1e-3);
        }
    }
}
