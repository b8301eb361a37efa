//! Gathers the inputs of a plan before money is reserved: the routing rules, the estimated demand, the models and their
//! prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::gateway::RequestRefusal;
use crate::gateway::request::needs;
use crate::gateway::state::{GatewayState, Pacing};
use stint_backend::fleet::{AffinityKey, FlowId};
use stint_decide::estimate;
use stint_ledger::{LimitStatus, RequestScope};
use stint_prompt::{prompt_text, token_bound};
use stint_types::catalog::{Capability, Demand, Market, Model, ModelConditions, Needs, Route, Specialty};
use stint_types::chat::{CompletionKind, Request, Role};
use stint_types::tenant::Tenant;
use stint_types::units::Tokens;

use super::approximations::approximate;
use super::plan_inputs::{ModelAffinity, PlanInputs};
use super::routing_rules::RoutingRules;
use super::{routing_rules, task_worth};

/// A refusal names at most so many models that would accept the request.
const TAKERS_MAX: usize = 3;

/// A request as it was asked, and as it is to be sent.
pub(super) struct PreparedRequest {
    /// As its caller wrote it. Its difficulty is estimated from this.
    pub(super) original: Arc<Request>,
    /// As it is sent to a model.
    pub(super) request: Arc<Request>,
    /// The model that its episode is with.
    pub(super) sticky: Option<ModelAffinity>,
    /// An upper bound of that model's prompt, by what was counted of the one before.
    pub(super) prompt_bound: Option<(Arc<str>, Tokens)>,
    /// True for a step of an episode.
    pub(super) is_step: bool,
}

/// Estimates the demand and looks at the market.
pub(super) fn gather_inputs(
    state: &GatewayState,
    tenant: &Tenant,
    request: Arc<Request>,
) -> Result<PlanInputs, RequestRefusal> {
    let rules = rules(state, tenant, &request)?;
    let prepared = PreparedRequest {
        original: request.clone(),
        request,
        sticky: None,
        prompt_bound: None,
        is_step: false,
    };
    Ok(gather_inputs_with(state, tenant, prepared, rules))
}

/// The routing rules of a request.
pub(super) fn rules(
    state: &GatewayState,
    tenant: &Tenant,
    request: &Request,
) -> Result<RoutingRules, RequestRefusal> {
    let catalog = &state.parts.catalog;
    let share = || {
        let user = request.extra.get("user").and_then(serde_json::Value::as_str).unwrap_or_default();
        AffinityKey::of(request).stable_share(&format!("{} {user}", tenant.account.as_str()))
    };
    let is_suspended = |route: &str| state.recipes.suspension(route).is_some();
    routing_rules::rules(catalog, &tenant.access, &request.model, share, is_suspended)
        .ok_or_else(|| state.unknown(tenant, &request.model))
}

/// The same for a request as it is to be sent, by rules that are known.
pub(super) fn gather_inputs_with(
    state: &GatewayState,
    tenant: &Tenant,
    prepared: PreparedRequest,
    rules: RoutingRules,
) -> PlanInputs {
    let PreparedRequest { original, request, sticky, prompt_bound, is_step } = prepared;
    let (route, no_vote) = allowed_vote(state, rules.route, &request);
    let rules = RoutingRules { route, ..rules };
    let needs = needs::of(&request);
    let flow = FlowId::of(&tenant.account);
    let (mut models, wrong_specialty) = candidates(state, flow, &rules, &original, sticky.as_ref(), &needs);
    models.iter_mut().for_each(|model| rule_out_thinking(state, model, &request));
    let able: Vec<&Arc<Model>> = models.iter().filter(|model| is_able(model, &needs)).collect();
    let prompts = prompt_bounds(state, &able, &request, &needs, prompt_bound.as_ref());
    let (mut market, paced) = market(state, tenant, &rules.route, &able);
    let mut prior = estimate::estimate(&original, &prompts, &state.parts.calibration);
    reckon_prompts(state, &mut prior, &request);
    let mut demand = prior.clone();
    state.parts.learning.adjust(&mut demand);
    market.worth_factor *= task_worth::factor(&rules.route, &able, &demand);
    let trials = rules.route.trials.filter(|_| !is_step && may_try(&original));
    let takers = takers(state, tenant, &needs);
    PlanInputs {
        original,
        request,
        needs,
        rules,
        no_vote,
        prior,
        demand,
        market,
        models,
        wrong_specialty,
        paced,
        opening_quantile: state.parts.settings.opening_quantile,
        sticky,
        may_try: trials.is_some(),
        trials: trials.and_then(|bounds| state.trials.share(bounds)),
        takers,
        flow,
    }
}

/// Whether a model that looks worse may be tried with a request: not where its caller states what success counts for, nor in the
/// middle of an agent's work.
fn may_try(original: &Request) -> bool {
    let is_of_agent =
        !original.tools.is_empty() || original.messages.iter().any(|message| message.role == Role::Tool);
    original.budget.preference.is_none() && !is_of_agent
}

/// The models that may serve it, as they are known to its account by now, the episode's own first; and one that was left out because it was
/// made for another kind of question.
fn candidates(
    state: &GatewayState,
    flow: FlowId,
    rules: &RoutingRules,
    original: &Request,
    sticky: Option<&ModelAffinity>,
    needs: &Needs,
) -> (Vec<Arc<Model>>, Option<Arc<str>>) {
    let all = state.parts.catalog.candidates(&rules.route);
    let (able, beyond): (Vec<_>, Vec<_>) = all.partition(|model| is_for(model, rules, original));
    let wrong_specialty = beyond.first().map(|model| model.name.clone());
    let known = able.into_iter().map(|model| (model, as_known(state, flow, model))).collect();
    let mut models = approximate(known, needs, original);
    if let Some(own) = models.iter().position(|model| sticky.is_some_and(|stuck| stuck.model == model.name)) {
        // Of equals the first is taken.
        models[..=own].rotate_right(1);
    }
    // Models that accept every member of the request take precedence over those that would drop some.
    if models.iter().any(|model| is_able(model, needs) && model.accepts_all_members(needs)) {
        models.retain(|model| model.accepts_all_members(needs));
    }
    (models, wrong_specialty)
}

/// An upper bound of the prompt for each model that is able. The others will be refused, so that their tokenizers need not
/// read it. What images, sounds and files may have at most adds up to more than any context takes; texts are measured by their bytes alone.
fn prompt_bounds(
    state: &GatewayState,
    able: &[&Arc<Model>],
    request: &Arc<Request>,
    needs: &Needs,
    counted: Option<&(Arc<str>, Tokens)>,
) -> BTreeMap<Arc<str>, Tokens> {
    let bound = |model: &&Arc<Model>| {
        let most = state.parts.fleets.get(&model.name)?.prompt_tokens(request);
        let is_media = |needed: &Capability| matches!(needed, Capability::Images | Capability::Documents);
        let has_media = needs.capabilities.iter().any(is_media);
        let most = if has_media { most.min(model.context) } else { most };
        let counted = counted.filter(|(name, _)| *name == model.name);
        Some((model.name.clone(), counted.map_or(most, |(_, counted)| most.min(*counted))))
    };
    able.iter().filter_map(bound).collect()
}

/// What a dollar is worth to this account now, and how the models stand; with the limits that pace it.
fn market(
    state: &GatewayState,
    tenant: &Tenant,
    route: &Route,
    able: &[&Arc<Model>],
) -> (Market, Vec<LimitStatus>) {
    let ledger = &state.parts.ledger;
    let paced =
        Pacing::paced_lines(ledger.statement(&tenant.account, &RequestScope::default(), ledger.now()));
    let flow = FlowId::of(&tenant.account);
    let fleets = able.iter().filter_map(|model| Some((&model.name, state.parts.fleets.get(&model.name)?)));
    let mut models: BTreeMap<Arc<str>, ModelConditions> =
        fleets.clone().map(|(name, fleet)| (name.clone(), fleet.conditions_for(flow))).collect();
    // A short pause that a provider has asked for is waited for where nothing else can be asked.
    if !models.values().any(|conditions| conditions.healthy) {
        models.extend(
            fleets.filter_map(|(name, fleet)| Some((name.clone(), fleet.conditions_after_pause(flow)?))),
        );
    }
    let market = Market {
        shadow_price: state.pacing.price(&tenant.account, &paced, ledger.now()),
        worth_factor: state.pacing.factor(route),
        models,
        at: Some(ledger.now()),
    };
    (market, paced)
}

/// Says of the prompts that nobody has counted how few tokens they can have, and about how many they have.
fn reckon_prompts(state: &GatewayState, demand: &mut Demand, request: &Request) {
    let (least, text) = (token_bound::min_prompt_tokens(request), prompt_text::of_request(request));
    for (name, model) in &mut demand.models {
        let fleet = state.parts.fleets.get(name);
        if !fleet.is_some_and(|fleet| fleet.counts_exactly()) {
            model.prompt_least = least.min(model.prompt);
            model.prompt_usual = state.prompt_ratios.expected(name, &text);
        }
    }
}

/// A model as it may be offered to this account by what was found out about it.
fn as_known(state: &GatewayState, flow: FlowId, model: &Arc<Model>) -> Arc<Model> {
    let model = state.withdrawals.apply(state.demotions.apply(model, flow));
    let reported = state.parts.fleets.get(&model.name).and_then(|fleet| fleet.context());
    match reported.filter(|context| *context < model.context) {
        Some(context) => Arc::new(Model { context, ..(*model).clone() }),
        None => model,
    }
}

/// A model that cannot think for this request is planned as one that does not: its answer has all the room.
fn rule_out_thinking(state: &GatewayState, model: &mut Arc<Model>, request: &Request) {
    let fleet = state.parts.fleets.get(&model.name).filter(|_| model.thinking_max > Tokens::ZERO);
    if let Some(why) = fleet.and_then(|fleet| fleet.thinking_ruled_out(request)) {
        *model = Arc::new(model.without_thinking(why));
    }
}

/// The models that this key may name and that are sent all of a request's members, where some are not known here.
fn takers(state: &GatewayState, tenant: &Tenant, needs: &Needs) -> Vec<Arc<str>> {
    if needs.members.is_empty() {
        return Vec::new();
    }
    let takes = |model: &&Arc<Model>| {
        tenant.access.can_name_model(&model.name) && is_able(model, needs) && model.accepts_all_members(needs)
    };
    let models = state.parts.catalog.models.values().filter(takes);
    models.map(|model| model.name.clone()).take(TAKERS_MAX).collect()
}

/// Whether a model may be chosen for a request: one that was made for one kind of question only for such, unless it is
/// asked for by its name.
fn is_for(model: &Model, rules: &RoutingRules, original: &Request) -> bool {
    match model.specialty {
        Some(Specialty::Arithmetic) if original.kind == CompletionKind::Chat => {
            rules.named == model.name || estimate::is_arithmetic(original)
        }
        _ => true,
    }
}

/// True if a model can do what is wanted beyond text.
fn is_able(model: &Model, needs: &Needs) -> bool {
    model.services.contains(&needs.service)
        && needs.capabilities.iter().all(|need| model.has_capability(*need))
}

/// The route as it may serve the request, and why there is no vote where it has one: answers that are always the same, or
/// that are not compared, are made once, and so are those of a recipe that is suspended.
fn allowed_vote(state: &GatewayState, route: Route, request: &Request) -> (Route, Option<&'static str>) {
    if route.vote.is_none() {
        return (route, None);
    }
    let sampling = &request.sampling;
    let calls =
        !request.tools.is_empty() && request.tool_choice.as_ref().is_none_or(|choice| choice != "none");
    let why = if sampling.temperature == Some(0.0) || sampling.top_k == Some(1) {
        "no vote, since every answer would be the same at this temperature"
    } else if request.kind == CompletionKind::Text || calls {
        "no vote, since such answers are not compared"
    } else if let Some(reason) = state.recipes.suspension(&route.name) {
        reason.as_words()
    } else {
        return (route, None);
    };
    (Route { vote: None, cascade: false, ..route }, Some(why))
}
