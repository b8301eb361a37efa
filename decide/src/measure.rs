//! How good a router or an estimate is, by the usual formulas.

use std::cmp::Ordering;

/// The questions from the one to send to the stronger model first to the one to send last, in groups of equal score.
///
/// It is sorted once; a bootstrap only changes how often each question counts.
#[derive(Debug, Clone)]
pub struct Ranking {
    order: Vec<usize>,
    /// Where each group ends.
    ends: Vec<usize>,
}

/// The share of the gain that is had at each share of questions sent to the stronger model.
#[derive(Debug, Clone)]
pub struct Deferral {
    /// (share sent, share of the gain), from (0, 0) to (1, 1).
    pub points: Vec<(f64, f64)>,
}

impl Ranking {
    /// The questions, the first to send first.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Ranks by score, the highest first.
    pub fn of(scores: &[f64]) -> Ranking {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let ends = (1..=order.len())
            .filter(|&end| end == order.len() || scores[order[end]] < scores[order[end - 1]])
            .collect();
        Ranking { order, ends }
    }

    /// The curve where question `i` counts `counts[i]` times. Questions of one score are sent in random
    /// order, on average: a straight line.
    pub fn deferral(&self, gains: &[f64], counts: &[f64]) -> Deferral {
        let whole: f64 = counts.iter().sum();
        let gained: f64 = gains.iter().zip(counts).map(|(gain, count)| gain * count).sum();
        let mut points = vec![(0.0, 0.0)];
        let (mut sent, mut gain, mut from) = (0.0, 0.0, 0);
        for &end in &self.ends {
            for &question in &self.order[from..end] {
                sent += counts[question];
                gain += gains[question] * counts[question];
            }
            points.push((sent / whole, gain / gained));
            from = end;
        }
        Deferral { points }
    }
}

impl Deferral {
    /// APGR: the area under the curve. Random routing has ½; an oracle may have more than 1.
    pub fn area(&self) -> f64 {
        self.points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    }

    /// CPT: the smallest share sent that has this share of the gain.
    pub fn share_for(&self, gain: f64) -> f64 {
        let crossing = self.points.windows(2).find(|pair| pair[1].1 >= gain);
        crossing.map_or(1.0, |pair| {
            let (low, high) = (pair[0], pair[1]);
            if high.1 <= low.1 {
                high.0
            } else {
                low.0 + (high.0 - low.0) * (gain - low.1) / (high.1 - low.1)
            }
        })
    }
}

/// AIQ: the area under the non-decreasing concave hull of (cost, quality) points between two costs, by
/// their distance.
pub fn quality_area(points: &[(f64, f64)], cheapest: f64, dearest: f64) -> f64 {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        if hull.last().is_some_and(|last| point.1 <= last.1) {
            continue;
        }
        while hull.len() > 1 && turns_up(hull[hull.len() - 2], hull[hull.len() - 1], point) {
            hull.pop();
        }
        hull.push(point);
    }
    let at = |cost: f64| match hull.iter().position(|point| point.0 >= cost) {
        Some(0) => {
            if hull[0].0 <= cost {
                hull[0].1
            } else {
                0.0
            }
        }
        Some(right) => {
            let (low, high) = (hull[right - 1], hull[right]);
            low.1 + (high.1 - low.1) * (cost - low.0) / (high.0 - low.0)
        }
        None => hull.last().map_or(0.0, |last| last.1),
    };
    let inside = hull.iter().map(|point| point.0).filter(|&cost| cost > cheapest && cost < dearest);
    let costs: Vec<f64> = std::iter::once(cheapest).chain(inside).chain([dearest]).collect();
    let area: f64 =
        costs.windows(2).map(|pair| (pair[1] - pair[0]) * (at(pair[0]) + at(pair[1])) / 2.0).sum();
    area / (dearest - cheapest)
}

fn turns_up(first: (f64, f64), middle: (f64, f64), last: (f64, f64)) -> bool {
    (middle.1 - first.1) * (last.0 - first.0) <= (last.1 - first.1) * (middle.0 - first.0)
}

/// Spearman's correlation: that of the ranks, where ties share the mean of theirs.
pub fn spearman(left: &[f64], right: &[f64]) -> f64 {
    correlation(&ranks(left), &ranks(right))
}

/// The rank of each value, from ½ on.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value) == Ordering::Less);
        let through = sorted.partition_point(|other| other.total_cmp(value) != Ordering::Greater);
        count(below + through) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Pearson's correlation.
pub fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let (a, b) = (mean(left), mean(right));
    let product = |x: &[f64], x0: f64, y: &[f64], y0: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - x0) * (y - y0)).sum()
    };
    product(left, a, right, b) / (product(left, a, left, a) * product(right, b, right, b)).sqrt()
}

/// The mean squared distance of a chance from what happened.
pub fn brier(chances: &[f64], happened: &[f64]) -> f64 {
    chances.iter().zip(happened).map(|(chance, real)| (chance - real).powi(2)).sum::<f64>()
        / count(chances.len())
}

/// The expected calibration error over ten equal ranges of the chance.
pub fn calibration_error(chances: &[f64], happened: &[f64]) -> f64 {
    let mut ranges = [(0.0, 0.0); 10];
    for (chance, real) in chances.iter().zip(happened) {
        let range = (1..10).filter(|&edge| *chance >= f64::from(edge) / 10.0).count();
        ranges[range].0 += chance;
        ranges[range].1 += real;
    }
    ranges.iter().map(|(foretold, real)| (foretold - real).abs()).sum::<f64>() / count(chances.len())
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
fn count(rows: usize) -> f64 {
    rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(scores: &[f64], gains: &[f64]) -> Deferral {
        Ranking::of(scores).deferral(gains, &vec![1.0; gains.len()])
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} rather than {expected}");
    }

    #[test]
    fn one_score_for_all_is_random_routing() {
        close(curve(&[1.0; 4], &[1.0, 0.0, -1.0, 1.0]).area(), 0.5);
        close(curve(&[1.0; 4], &[1.0, 0.0, -1.0, 1.0]).share_for(0.8), 0.8);
    }

    #[test]
    fn who_sends_the_gains_first_has_more_than_half() {
        let perfect = curve(&[3.0, 2.0, 1.0, 0.0], &[1.0, 1.0, 0.0, 0.0]);
        close(perfect.area(), 0.75);
        close(perfect.share_for(0.5), 0.25);
        close(curve(&[0.0, 1.0, 2.0, 3.0], &[1.0, 1.0, 0.0, 0.0]).area(), 0.25);
        let oracle = curve(&[1.0, 1.0, 0.0, -1.0], &[1.0, 1.0, 0.0, -1.0]);
        assert!(oracle.area() > 1.0, "{}", oracle.area());
    }

    #[test]
    fn the_hull_lies_above_its_points_and_does_not_fall() {
        close(quality_area(&[(1.0, 0.0), (2.0, 0.1), (3.0, 1.0)], 1.0, 3.0), 0.5);
        close(quality_area(&[(1.0, 0.5), (2.0, 1.0), (3.0, 0.2)], 1.0, 3.0), 0.875);
    }

    #[test]
    fn ranks_are_compared_and_chances_weighed() {
        close(spearman(&[1.0, 2.0, 3.0], &[10.0, 100.0, 1000.0]), 1.0);
        close(spearman(&[1.0, 1.0, 2.0], &[5.0, 5.0, 1.0]), -1.0);
        close(brier(&[0.5, 1.0], &[1.0, 1.0]), 0.125);
        close(calibration_error(&[0.25, 0.25, 0.25, 0.25], &[1.0, 0.0, 0.0, 0.0]), 0.0);
        close(calibration_error(&[0.95, 0.95], &[1.0, 0.0]), 0.45);
    }
}
