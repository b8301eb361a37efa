//! What a probe of a small model says of a request, added to its estimate.

use stint_types::catalog::{Demand, ModelDemand};
use stint_types::units::{Chance, Difficulty};

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProbeSignal {
    /// So many cheap drafts, and how many of them gave the commonest answer.
    Agreement {
        /// All drafts; two or three say something, one says nothing.
        drafts: u32,
        /// Those with the commonest answer; one at least.
        agreed: u32,
    },
    /// The mean entropy of the next token over a draft's first tokens, in nats.
    Uncertainty {
        /// The mean.
        nats: f64,
    },
}

/// How far the logit of success of a model that resembles the prober moves from full disagreement to full agreement.
const AGREEMENT: f64 = 2.0;
/// A draft's usual entropy: here nothing moves.
const USUAL_NATS: f64 = 0.5;
/// How far the logit moves for each e-fold of entropy.
const PER_FOLD: f64 = 0.6;
/// No signal moves a logit further.
const SHIFT_MAX: f64 = 1.5;

/// The demand after a probe.
///
/// What is hard for one model is mostly hard for all (the first of the prior's traits has three fifths of what
/// can be told of 29 models), so every model's success moves by the same logit. How far is a judgement until
/// outcomes teach better; the spread of each belief shrinks by a quarter, for something was measured. Pure.
#[must_use]
pub fn with_signal(mut demand: Demand, signal: ProbeSignal) -> Demand {
    let shift = shift(signal);
    if shift == Some(0.0) || shift.is_none() {
        return demand;
    }
    let shift = shift.unwrap_or_default();
    for model in demand.models.values_mut() {
        shift_model(model, shift);
    }
    let harder = demand.difficulty.get() - shift / 10.0;
    demand.difficulty = Difficulty::new(harder);
    demand.confidence = Chance::new(1.0 - (1.0 - demand.confidence.get()) * 0.75);
    demand
}

/// By how much the logits move; none where the probe says nothing.
fn shift(signal: ProbeSignal) -> Option<f64> {
    let shift = match signal {
        ProbeSignal::Agreement { drafts, agreed } if drafts >= 2 => {
            // The share of the other drafts that agree with the commonest answer; ½ moves nothing.
            let others = f64::from(agreed.clamp(1, drafts) - 1) / f64::from(drafts - 1);
            AGREEMENT * (others - 0.5)
        }
        ProbeSignal::Uncertainty { nats } if nats.is_finite() && nats >= 0.0 => {
            -PER_FOLD * (nats.max(0.01) / USUAL_NATS).ln()
        }
        ProbeSignal::Agreement { .. } | ProbeSignal::Uncertainty { .. } => return None,
    };
    Some(shift.clamp(-SHIFT_MAX, SHIFT_MAX))
}

fn shift_model(model: &mut ModelDemand, shift: f64) {
    model.done = shift_logit(model.done, shift);
    model.blind = shift_logit(model.blind, shift);
    model.spread *= 0.75;
}

/// A chance whose logit is moved; what is impossible or certain stays so.
fn shift_logit(chance: Chance, shift: f64) -> Chance {
    let odds = chance.get() * shift.exp();
    Chance::new(odds / (odds + 1.0 - chance.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::{LengthTails, LogNormal, MeasuredLengths, RequestTraits, TaskClass};
    use stint_types::units::Tokens;

    fn check(signal: ProbeSignal) -> f64 {
        let model = ModelDemand {
            thinking: LogNormal { mu: 5.0, sigma: 1.0 },
            solution: Tokens(100),
            prompt: Tokens(10),
            done: Chance::new(0.7),
            blind: Chance::new(0.5),
            bend: 1.0,
            saturation: 1.0,
            spread: 0.2,
            prompt_least: Tokens(10),
            prompt_usual: Tokens::ZERO,
            measured: MeasuredLengths::default(),
            tails: LengthTails::default(),
        };
        let demand = Demand {
            class: TaskClass::Math,
            difficulty: Difficulty::new(0.5),
            confidence: Chance::new(0.2),
            request: RequestTraits::default(),
            models: [("one".into(), model)].into(),
        };
        let after = with_signal(demand, signal);
        let model = &after.models["one"];
        assert!(model.blind < model.done);
        model.done.get()
    }

    #[test]
    fn drafts_that_agree_raise_the_chance_and_drafts_that_differ_lower_it() {
        assert!(check(ProbeSignal::Agreement { drafts: 3, agreed: 3 }) > 0.8);
        assert!(check(ProbeSignal::Agreement { drafts: 3, agreed: 1 }) < 0.6);
        assert!((check(ProbeSignal::Agreement { drafts: 3, agreed: 2 }) - 0.7).abs() < 1e-9);
        assert!((check(ProbeSignal::Agreement { drafts: 1, agreed: 1 }) - 0.7).abs() < 1e-9);
    }

    #[test]
    fn an_uncertain_draft_lowers_the_chance_within_bounds() {
        assert!(check(ProbeSignal::Uncertainty { nats: 1.5 }) < 0.65);
        assert!(check(ProbeSignal::Uncertainty { nats: 0.1 }) > 0.75);
        assert!(check(ProbeSignal::Uncertainty { nats: 1e9 }) > 0.3);
        assert!((check(ProbeSignal::Uncertainty { nats: f64::NAN }) - 0.7).abs() < 1e-9);
    }
}
