//! One policy's report: what it would have reached, and whether that can be concluded.

use serde::Serialize;

use super::estimate::{PolicyMeasure, ReplayRow, WEIGHT_MAX};
use super::{LoggedRequest, ReplayPolicy};

/// The least that is concluded from: so many requests must agree, by their effective number.
const EFFECTIVE_MIN: f64 = 200.0;
/// The largest share of what the policy would choose that was never tried.
const UNTRIED_MAX: f64 = 0.02;

/// Dollars a request: less than this is the rounding of sums, not a gain.
const GAIN_MIN: f64 = 1e-12;

/// What can be concluded about a policy compared with the logged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Its value is higher, at 95 %.
    Better,
    /// Its value is lower, at 95 %.
    Worse,
    /// Neither is shown.
    NoDifference,
    /// Too few answers have a verdict.
    TooFewJudged,
    /// The logged policy chose as this one would on too few requests.
    TooFewAgree,
    /// The logged policy never tried too much of what this one would choose.
    NeverTried,
}

/// What a policy would have reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Logged requests that ended, one way or another, with more than one candidate or not.
    pub requests: usize,
    /// How many of them somebody judged.
    pub judged: usize,
    /// The share of what it would choose that had no chance under the logged policy.
    pub untried: f64,
    /// Success, over the judged.
    pub success: PolicyMeasure,
    /// Dollars a request, over all.
    pub cost: PolicyMeasure,
    /// Seconds a request, over all.
    pub seconds: PolicyMeasure,
    /// Worth of success less cost and time at their prices, in dollars a request, over the judged.
    pub value: PolicyMeasure,
    /// What follows.
    pub conclusion: Conclusion,
}

impl Conclusion {
    /// In words, for people.
    pub fn description(self) -> &'static str {
        match self {
            Conclusion::Better => "better",
            Conclusion::Worse => "worse",
            Conclusion::NoDifference => "no difference shown",
            Conclusion::TooFewJudged => "unknown: too few answers were judged",
            Conclusion::TooFewAgree => "unknown: it agrees with what was chosen too seldom",
            Conclusion::NeverTried => "unknown: much of what it would choose was never tried",
        }
    }

    /// True if something follows.
    pub fn is_conclusive(self) -> bool {
        matches!(self, Conclusion::Better | Conclusion::Worse | Conclusion::NoDifference)
    }
}

/// Judges a policy by what was logged.
pub fn evaluate(logged: &[LoggedRequest], policy: &ReplayPolicy) -> ReplayReport {
    let weighed: Vec<WeightedRequest> =
        logged.iter().filter_map(|one| WeightedRequest::of(one, policy)).collect();
    let judged: Vec<&WeightedRequest> = weighed.iter().filter(|one| one.success.is_some()).collect();
    let every: Vec<&WeightedRequest> = weighed.iter().collect();
    let measure = |of: &[&WeightedRequest], row: &dyn Fn(&WeightedRequest) -> ReplayRow| {
        PolicyMeasure::of(&of.iter().map(|one| row(one)).collect::<Vec<_>>())
    };
    let value = measure(&judged, &|one| one.value());
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let untried = weighed.iter().fold(0.0, |sum, one| sum + one.untried) / weighed.len().max(1) as f64;
    ReplayReport {
        requests: weighed.len(),
        judged: judged.len(),
        untried,
        success: measure(&judged, &|one| one.success()),
        cost: measure(&every, &|one| one.cost()),
        seconds: measure(&every, &|one| one.seconds()),
        value,
        conclusion: conclusion(untried, judged.len(), &value),
    }
}

fn conclusion(untried: f64, judged: usize, value: &PolicyMeasure) -> Conclusion {
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let few = (judged as f64) < EFFECTIVE_MIN;
    if untried > UNTRIED_MAX {
        Conclusion::NeverTried
    } else if few {
        Conclusion::TooFewJudged
    } else if value.effective < EFFECTIVE_MIN {
        Conclusion::TooFewAgree
    } else if value.gain.low > GAIN_MIN {
        Conclusion::Better
    } else if value.gain.high < -GAIN_MIN {
        Conclusion::Worse
    } else {
        Conclusion::NoDifference
    }
}

/// One request under a policy.
struct WeightedRequest<'a> {
    logged: &'a LoggedRequest,
    shares: Vec<f64>,
    weight: f64,
    untried: f64,
    success: Option<f64>,
}

impl<'a> WeightedRequest<'a> {
    /// Nothing if there was nothing to choose, or the log does not say how likely the choice was.
    fn of(logged: &'a LoggedRequest, policy: &ReplayPolicy) -> Option<WeightedRequest<'a>> {
        let decision = &logged.decision;
        let propensity = decision.choice()?.propensity;
        if propensity <= 0.0 {
            return None;
        }
        let shares = policy.shares(decision);
        let tried = decision.candidates.iter().map(|candidate| candidate.propensity > 0.0);
        let untried = shares.iter().zip(tried).filter(|(_, tried)| !tried).map(|(share, _)| share).sum();
        let weight = (shares.get(decision.chosen)? / propensity).min(WEIGHT_MAX);
        Some(WeightedRequest { logged, shares, weight, untried, success: logged.success() })
    }

    fn success(&self) -> ReplayRow {
        self.row(self.success.unwrap_or_default(), |one| one.success.get())
    }

    fn cost(&self) -> ReplayRow {
        self.row(self.logged.outcome.cost.as_dollars(), |one| one.cost.as_dollars())
    }

    fn seconds(&self) -> ReplayRow {
        self.row(self.logged.outcome.seconds, |one| one.seconds)
    }

    /// In the logged route's own stakes, so that policies are compared by one yardstick.
    fn value(&self) -> ReplayRow {
        let stakes = &self.logged.decision.stakes;
        let outcome = &self.logged.outcome;
        let worth = |success: f64, dollars: f64, seconds: f64| {
            stakes.worth * success - stakes.shadow_price * dollars - stakes.second * seconds
        };
        let seen = worth(self.success.unwrap_or_default(), outcome.cost.as_dollars(), outcome.seconds);
        self.row(seen, |one| worth(one.success.get(), one.cost.as_dollars(), one.seconds))
    }

    fn row(&self, seen: f64, predicted: impl Fn(&stint_types::catalog::Candidate) -> f64) -> ReplayRow {
        let decision = &self.logged.decision;
        let hoped =
            self.shares.iter().zip(&decision.candidates).map(|(share, one)| share * predicted(one)).sum();
        let predicted = decision.choice().map_or(0.0, predicted);
        ReplayRow { weight: self.weight, observed: seen, predicted, expected: hoped }
    }
}
