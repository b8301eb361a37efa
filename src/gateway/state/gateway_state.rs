//! `GatewayState`: what all requests of a gateway share. Every stage reads it; it knows no stage.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::gateway::feedback::PromptRatios;
use crate::gateway::key_scope;
use crate::gateway::request::RequestRefusal;
use stint_types::chat::Request;
use stint_types::tasks::AccountTurns;
use stint_types::tenant::Tenant;
use stint_types::units::{RequestId, nearest};

use super::demotions::Demotions;
use super::live_requests::LiveRequests;
use super::pacing::Pacing;
use super::parts::GatewayParts;
use super::recipes::Recipes;
use super::trial_book::TrialBook;
use super::verifiers::Verifiers;
use super::wait_queues::WaitQueues;
use super::withdrawals::Withdrawals;

/// What all requests of a gateway share.
#[derive(Debug)]
pub(crate) struct GatewayState {
    pub(crate) parts: GatewayParts,
    pub(crate) demotions: Demotions,
    pub(crate) withdrawals: Withdrawals,
    pub(crate) verifiers: Verifiers,
    pub(crate) recipes: Recipes,
    pub(crate) pacing: Arc<Pacing>,
    pub(crate) prompt_ratios: Arc<PromptRatios>,
    /// What was tried of models that look worse.
    pub(crate) trials: Arc<TrialBook>,
    /// Requests that wait for money.
    pub(crate) wait_queues: Arc<WaitQueues>,
    /// Those that run now.
    pub(crate) live: Arc<LiveRequests>,
    /// Turns at passing answers on.
    pub(crate) relay_turns: AccountTurns,
    admissions: Arc<Semaphore>,
}

impl GatewayState {
    /// Of these parts, with nothing found out yet.
    pub(crate) fn new(parts: GatewayParts) -> GatewayState {
        let recipes = Recipes::of(&parts.catalog);
        recipes.show(&Recipes::default(), &parts.metrics);
        GatewayState {
            recipes,
            demotions: Demotions::default(),
            withdrawals: Withdrawals::default(),
            verifiers: Verifiers::of(&parts.catalog),
            pacing: Arc::default(),
            prompt_ratios: parts.learning.prompt_ratios(),
            trials: Arc::default(),
            wait_queues: Arc::default(),
            live: Arc::default(),
            relay_turns: AccountTurns::new(available_parallelism().map_or(1, NonZero::get)),
            admissions: Arc::new(Semaphore::new(parts.settings.flights_max)),
            parts,
        }
    }

    /// Of other parts, which take over from this while its requests go on. They share prices of money, places, how many
    /// tokens prompts have, what was tried, and what was found out about models that stay as they were.
    pub(crate) fn with_parts(&self, parts: GatewayParts) -> GatewayState {
        let (before, after) = (&self.parts.catalog, &parts.catalog);
        let next = GatewayState {
            recipes: self.recipes.carry_over(after),
            demotions: self.demotions.carry_over(before, after),
            withdrawals: self.withdrawals.carry_over(before, after),
            pacing: self.pacing.clone(),
            prompt_ratios: self.prompt_ratios.clone(),
            trials: self.trials.clone(),
            wait_queues: self.wait_queues.clone(),
            live: self.live.clone(),
            relay_turns: self.relay_turns.clone(),
            admissions: self.admissions.clone(),
            ..GatewayState::new(parts)
        };
        next.recipes.show(&self.recipes, &next.parts.metrics);
        next
    }

    /// A place among the requests in flight.
    pub(crate) fn acquire_admission(&self) -> Result<OwnedSemaphorePermit, RequestRefusal> {
        self.admissions.clone().try_acquire_owned().map_err(|_| {
            // Requests that are refused together should not come back together.
            let retry_after = Duration::from_secs(1 + RequestId::new().seed() % 3);
            RequestRefusal::Overloaded { retry_after }
        })
    }

    /// Refuses more choices than one request may ask for.
    pub(crate) fn check_choices(&self, request: &Request) -> Result<(), RequestRefusal> {
        let most = self.parts.settings.choices_max;
        if request.choices > most { Err(RequestRefusal::TooManyChoices { most }) } else { Ok(()) }
    }

    /// The refusal of a name that nothing has that this caller may name.
    pub(crate) fn unknown(&self, tenant: &Tenant, name: &str) -> RequestRefusal {
        let known = key_scope::catalog(&self.parts.catalog, &tenant.access);
        let names = known.models.keys().chain(known.routes.keys()).map(AsRef::as_ref);
        // Other gateways write the provider before the name, or not.
        let bare = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let same = names.clone().find(|known| bare(known) == bare(name));
        // Of a shorter name every letter may be a slip.
        let near = || nearest(name, names).filter(|_| name.len() > 2);
        let nearest = same.or_else(near).map(Into::into);
        RequestRefusal::UnknownModel { name: name.to_owned(), nearest }
    }
}
