//! From a flight to its story.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::catalog::{
    Candidate, ChoiceOutcome, ChoiceUsage, Decision, DecisionOutcome, Demand, Offer, Stakes, Verdict,
    VerdictSource,
};
use crate::execute::ChoiceProgress;
use crate::gateway::run::running_request::RunningRequest;
use crate::history::RequestRecord;
use crate::learn::DemandSummary;
use crate::plan;
use crate::units::{AccountId, Chance, Money, Timestamp, Tokens};

use crate::gateway::feedback::QuestionFingerprint;

/// What a decision rests on that its flight has no other use for.
#[derive(Debug)]
pub(in crate::gateway) struct DecisionContext {
    /// Whose request it is.
    pub(in crate::gateway) account: AccountId,
    /// When it was decided.
    pub(in crate::gateway) at: Timestamp,
    /// What the prior predicted, before anything learned online.
    pub(in crate::gateway) prior: Demand,
    /// What success, time and money count for.
    pub(in crate::gateway) stakes: Stakes,
    /// The question, to be known again.
    pub(in crate::gateway) question: Option<QuestionFingerprint>,
    signals: Mutex<Vec<(VerdictSource, Chance, f64)>>,
}

/// How a flight ended.
pub(in crate::gateway) struct RequestEnding<'a> {
    pub(in crate::gateway) offer: &'a Offer,
    pub(in crate::gateway) progress: &'a [ChoiceProgress],
    pub(in crate::gateway) spent: &'a [ChoiceUsage],
    pub(in crate::gateway) ended: &'static str,
    pub(in crate::gateway) error: Option<&'static str>,
    pub(in crate::gateway) cost: Money,
    pub(in crate::gateway) reserved: Money,
    pub(in crate::gateway) attempts: u32,
    pub(in crate::gateway) given_up: Tokens,
}

impl DecisionContext {
    pub(in crate::gateway) fn new(
        account: AccountId,
        at: Timestamp,
        prior: Demand,
        stakes: Stakes,
        asked: Option<QuestionFingerprint>,
    ) -> DecisionContext {
        DecisionContext { account, at, prior, stakes, question: asked, signals: Mutex::default() }
    }

    /// Something is said of the answer while it is made: by a verifier, by a vote. It becomes part of the story.
    pub(in crate::gateway) fn add_signal(&self, source: VerdictSource, success: Chance, weight: f64) {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).push((source, success, weight));
    }
}

impl RunningRequest {
    /// The story of this flight.
    pub(in crate::gateway) fn request_record(&self, close: &RequestEnding<'_>) -> Arc<RequestRecord> {
        let grounds = &self.decision_context;
        let (decision, outcome) = (self.decision(), self.outcome(close));
        let (id, at) = (self.id, outcome.at);
        let mut story =
            RequestRecord { account: grounds.account.clone(), decision, outcome, verdicts: Vec::new() };
        let said = grounds.signals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (source, success, weight) in said {
            story.set_verdict(Verdict { id, source, at, success, weight });
        }
        Arc::new(story)
    }

    fn decision(&self) -> Decision {
        let (plan, grounds) = (&self.plan, &self.decision_context);
        let predicted =
            |model: &str| Some((grounds.prior.models.get(model)?, self.demand.models.get(model)?));
        let candidates = Candidate::of_plan(plan, predicted);
        let chosen = candidates.iter().position(|candidate| candidate.model == plan.best.model);
        let mut decision = Decision {
            id: self.id,
            at: grounds.at,
            route: self.route.clone(),
            policy: format!("{}/{}", self.decided_by, plan::POLICY).into(),
            class: grounds.prior.class,
            difficulty: grounds.prior.difficulty,
            confidence: grounds.prior.confidence,
            // A few numbers: they can be written as JSON.
            context: serde_json::to_value(DemandSummary::of(&grounds.prior)).unwrap_or_default(),
            stakes: grounds.stakes,
            choices: self.request.choices,
            candidates,
            chosen: chosen.unwrap_or_default(),
            explored: false,
            why: plan.why.clone(),
            episode: self.step.as_ref().map(|stepping| stepping.id().clone()),
        };
        decision.explored = plan.propensity < 1.0 && decision.regret() > 0.0;
        decision
    }

    fn outcome(&self, close: &RequestEnding<'_>) -> DecisionOutcome {
        let since = |at: Instant| at.duration_since(self.arrived).as_secs_f64();
        let choices = close.progress.iter().zip(close.spent);
        let choices = choices.map(|(choice, spent)| ChoiceOutcome::new(spent, choice.phases.was_rescued()));
        DecisionOutcome {
            at: Timestamp::now(),
            ended: close.ended.into(),
            error: close.error.map(Into::into),
            model: close.offer.model.clone(),
            enforced: close.offer.class,
            thinking: close.offer.thinking,
            solution: close.offer.solution,
            choices: choices.collect(),
            cost: close.cost,
            reserved: close.reserved,
            attempts: close.attempts,
            given_up: close.given_up,
            fell_back: close.offer.model != self.plan.best.model,
            seconds: self.arrived.elapsed().as_secs_f64(),
            first_token: close.progress.iter().filter_map(|choice| choice.first).min().map(since),
            first_answer: close.progress.iter().filter_map(|choice| choice.first_answer).min().map(since),
        }
    }
}
