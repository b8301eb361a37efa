//! A call of a model beside the request's own, in order to decide about it: small, and reserved like any other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::fleet::{AffinityKey, Permit, PermitRequest};
use crate::catalog::{Allowance, ChoiceUsage, Market, Model, Offer, Route, WorstCase};
use crate::chat::Request;
use crate::execute::{ChoiceJob, ChoiceProgress, ChoiceTerms, answer_text, collect_choice};
use crate::{estimate, plan};

use super::running_request::{RunningRequest, spent_by_choice, terms};
use crate::gateway::RequestUpdate;
use crate::gateway::request::reservation::RequestReservation;
use crate::gateway::request::{needs, scope};

/// How long such a call may take.
const TIME_MAX: Duration = Duration::from_secs(30);
/// So many times as long as is expected it may take, and so long always.
const LATENESS: f64 = 4.0;
const PATIENCE_MIN: Duration = Duration::from_secs(3);

/// A call beside the request's own, priced.
pub(in crate::gateway) struct AuxiliaryCall {
    model: Arc<Model>,
    pub(in crate::gateway) request: Arc<Request>,
    /// How it is served, and the most it can take.
    pub(in crate::gateway) offer: Offer,
}

impl RunningRequest {
    /// What a call beside the request's own would take; nothing where its model cannot be asked.
    pub(in crate::gateway) fn price_auxiliary(&self, model: &str, request: Request) -> Option<AuxiliaryCall> {
        self.price_auxiliary_as(self.parts.catalog.models.get(model)?, request)
    }

    /// The same of a model as it is here taken to be.
    pub(in crate::gateway) fn price_auxiliary_as(
        &self,
        model: &Arc<Model>,
        request: Request,
    ) -> Option<AuxiliaryCall> {
        let fleet = self.parts.fleets.get(&model.name)?;
        let ledger = &self.parts.ledger;
        let left = ledger.allowance(&self.account, &scope::of(&self.request.extra), ledger.now());
        if model.tariff.is_none() && left.limits_money(&model.name) {
            return None;
        }
        let prompts = BTreeMap::from([(model.name.clone(), fleet.prompt_tokens(&request))]);
        let conditions = BTreeMap::from([(model.name.clone(), fleet.conditions())]);
        // Whether it fits is for the reservation to say, which has room of its own.
        let planned = plan::plan(&plan::PlanRequest {
            demand: &estimate::estimate(&request, &prompts, &self.parts.calibration),
            models: &[&**model],
            route: &Route::with_defaults(&model.name),
            market: &Market { models: conditions, ..Market::default() },
            allowance: &Allowance::default(),
            budget: &request.budget,
            needs: &needs::of(&request),
            choices: request.choices,
            streams: false,
            sticky: None,
            explore: None,
            opening_quantile: self.parts.settings.opening_quantile,
        });
        let offer = planned.ok()?.best;
        Some(AuxiliaryCall { model: model.clone(), request: Arc::new(request), offer })
    }

    /// Sets its worst case aside beside `own`, runs it, and says what it answers; nothing where there is no money, no
    /// place, or no answer of every choice.
    pub(in crate::gateway) async fn run_auxiliary(
        &self,
        aside: &AuxiliaryCall,
        own: WorstCase,
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> Option<Vec<String>> {
        if !books.extend_for_auxiliary(aside.offer.worst, own).await {
            return None;
        }
        // Whoever is much later than expected would not have been asked.
        let usual = Duration::try_from_secs_f64(LATENESS * aside.offer.seconds).unwrap_or(TIME_MAX);
        let patience = usual.clamp(PATIENCE_MIN, TIME_MAX);
        let deadline = self.deadline.min(Instant::now() + patience);
        let want = PermitRequest {
            affinity: AffinityKey::of(&aside.request),
            flow: self.party,
            calls: aside.request.choices,
            priority: self.priority,
            deadline,
        };
        let seat = tokio::select! {
            biased;
            () = reports.closed() => return None,
            seat = self.parts.fleets.get(&aside.model.name)?.acquire(want) => seat.ok()?,
        };
        let mut progress: Vec<ChoiceProgress> =
            (0..aside.request.choices).map(|_| ChoiceProgress::new(self.auxiliary_terms(aside))).collect();
        let answers = tokio::select! {
            biased;
            () = reports.closed() => None,
            answers = self.auxiliary_answers(aside, &seat, deadline, &mut progress) => answers,
        };
        let spent: Vec<ChoiceUsage> = spent_by_choice(&progress);
        books.record_auxiliary(self.bill(&aside.offer, &spent));
        answers
    }

    async fn auxiliary_answers(
        &self,
        aside: &AuxiliaryCall,
        seat: &Permit,
        deadline: Instant,
        progress: &mut [ChoiceProgress],
    ) -> Option<Vec<String>> {
        let seed = self.id.seed();
        let jobs: Vec<ChoiceJob> = (0..aside.request.choices)
            .map(|index| ChoiceJob {
                backend: seat.backend(),
                request: aside.request.clone(),
                index,
                seed: seed.wrapping_add(u64::from(index)),
                deadline,
                cut_before: None,
            })
            .collect();
        let runs = jobs.iter().zip(progress).map(|(job, progress)| collect_choice(job, progress));
        let ended = futures_util::future::join_all(runs).await;
        ended.into_iter().map(|(ended, events)| ended.ok().map(|_| answer_text(&events))).collect()
    }

    fn auxiliary_terms(&self, aside: &AuxiliaryCall) -> ChoiceTerms {
        let AuxiliaryCall { model, request, offer } = aside;
        let fleet = self.parts.fleets.get(&model.name);
        let prompt = fleet.map(|fleet| fleet.prompt_tokens(request)).unwrap_or_default();
        terms(offer, Some(model), prompt, request)
    }
}
