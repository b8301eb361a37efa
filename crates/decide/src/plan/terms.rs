//! What one model would take for one request: whether it can serve it, how, and the most that this costs. What it is expected to
//! reach is in `expectation`.

use std::sync::Arc;

use stint_types::catalog::{
    EffortLevel, EnforcementClass, GoesOn, Model, ModelConditions, ModelDemand, Rates, Service, Tariff,
    WorstCase,
};
use stint_types::chat::{CacheTtl, ReasoningEffort};
use stint_types::units::{Money, Price, Tokens};

use super::refusal::{PlanRefusal, RejectedBy};
use super::request::PlanRequest;

/// What a model without a price costs, where no money is limited.
static FREE: Tariff = Tariff::FREE;

/// What a model lacks that calls tools, but none where its thoughts are held.
const HELD_TOOLS: &str = "tools while its thinking is held";

/// One model, on its terms for this request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelTerms<'a> {
    pub model: &'a Model,
    pub demand: &'a ModelDemand,
    pub conditions: ModelConditions,
    /// How its thinking is held for this request.
    pub class: EnforcementClass,
    /// How an answer is asked for after a thought that was stopped, where that can be.
    resume: Option<EnforcementClass>,
    /// What is booked.
    tariff: &'a Tariff,
    pub choices: u32,
    /// The longest that its caller wants any of the prompt kept in the provider's cache.
    cache_ttl: CacheTtl,
    /// True if a text is to go on, without template or thought.
    raw: bool,
    /// True if the caller's limit is too small for the model's way, so that it is all that is sent.
    has_one_limit: bool,
    /// How an answer that was cut off by its limit is continued, if it is plain text.
    goes_on: GoesOn,
    /// True if a deadline may end the thought before its budget does: then a second call resumes from it.
    has_deadline: bool,
    /// How much of the prompt is in the provider's cache, where the episode is with this model.
    pub cached: Tokens,
    /// What tokens are expected to cost.
    pub dollars: DollarPrices,
    /// How long a thought is, on average.
    pub mean: f64,
}

/// The list prices that a model is weighed at, in dollars.
#[derive(Debug, Clone, Copy)]
pub(super) struct DollarPrices {
    /// For a call.
    pub call: f64,
    /// For a token that is read, and for one that is written.
    pub input: f64,
    pub output: f64,
    /// Less for one that is cached.
    pub saved: f64,
}

/// How much a model usually thinks at a word of its scale: about everyday requests, or about this one where that is more. A word asks for
/// a share of what a request takes, and not for a number of tokens.
pub(super) fn usual_at(level: &EffortLevel, model: &Model, demand: &ModelDemand) -> Tokens {
    let share = model.effort_length(&level.word).unwrap_or_default();
    level.usual.max(Tokens::round(share * demand.thinking.median()))
}

/// What a call reads and writes.
type CallTokens = (Tokens, Tokens);

impl<'a> ModelTerms<'a> {
    /// A model's terms, if it can be asked at all: capable, available, and priced where money is limited.
    pub(super) fn of(request: &PlanRequest<'a>, model: &'a Model) -> Result<ModelTerms<'a>, PlanRefusal> {
        if !model.services.contains(&request.needs.service) {
            return Err(PlanRefusal::NotCapable { what: request.needs.service.as_str() });
        }
        if let Some(lacking) = request.needs.capabilities.iter().find(|need| !model.has_capability(**need)) {
            return Err(PlanRefusal::NotCapable { what: lacking.as_str() });
        }
        check_members(request, model)?;
        let class = model.class(request.needs).ok_or(PlanRefusal::NotCapable { what: HELD_TOOLS })?;
        let limited = request.allowance.limits_money(&model.name) || request.budget.cost.is_some();
        if limited && model.tariff.is_none() {
            return Err(PlanRefusal::Unpriced { model: model.name.clone() });
        }
        let conditions = request.market.conditions(&model.name);
        let demand = request.demand.models.get(&model.name).ok_or(PlanRefusal::Unhealthy)?;
        if !conditions.healthy {
            return Err(PlanRefusal::Unhealthy);
        }
        let tariff = model.tariff.as_ref().unwrap_or(&FREE);
        let Some(weighed) = model.planning_tariff().or((request.models.len() == 1).then_some(&FREE)) else {
            return Err(PlanRefusal::PriceUnknown { model: model.name.clone() });
        };
        let weighed = request.market.at.map_or(*weighed, |now| weighed.between(now, now));
        let prompt = demand.prompt_expected();
        let list = weighed.list(prompt);
        let sticky = request.sticky.filter(|sticky| *sticky.model == *model.name);
        Ok(ModelTerms {
            model,
            demand,
            conditions,
            class,
            resume: model.resume_class(class, request.needs),
            tariff,
            choices: request.choices.max(1),
            raw: request.needs.service == Service::Completions,
            has_one_limit: false,
            goes_on: goes_on(request, model),
            cache_ttl: request.needs.cache_ttl,
            has_deadline: request.budget.deadline.is_some(),
            cached: sticky.map_or(Tokens::ZERO, |sticky| sticky.cached.min(prompt)),
            dollars: DollarPrices {
                call: weighed.call.as_dollars(),
                input: list.input.dollars_per_token(),
                output: list.output.dollars_per_token(),
                saved: weighed.saved_by_cache(prompt),
            },
            mean: demand.thinking.mean(),
        })
    }

    /// The terms under a limit of the caller's that leaves no room for a thought and its end, where the model cannot do without:
    /// that limit alone holds what is written, as without a gateway, and is tried once.
    pub(super) fn under_one_limit(&self) -> Option<ModelTerms<'a>> {
        let thinks = self.thinks() && self.class != EnforcementClass::Effort;
        let class = EnforcementClass::Effort;
        thinks.then_some(ModelTerms {
            class,
            resume: None,
            has_one_limit: true,
            goes_on: GoesOn::Never,
            ..*self
        })
    }

    /// False for a model that answers at once, and where no answer is asked for but how a text goes on.
    pub(super) fn thinks(&self) -> bool {
        self.model.thinking_max > Tokens::ZERO && !self.raw
    }

    /// Whether a thinking budget is one that the model can be given.
    pub(super) fn allows(&self, t: Tokens) -> bool {
        let model = self.model;
        if t == Tokens::ZERO {
            self.raw || !model.thinks_always
        } else {
            self.class != EnforcementClass::Native || t >= model.thinking_min
        }
    }

    /// How an answer is asked for after a thought of at most `t` that was stopped, where that can be. Nothing is set aside for
    /// stopping a thought that was not asked for: a model that thinks all the same is held by its limit, and offered otherwise
    /// from then on.
    pub(super) fn resume(&self, t: Tokens) -> Option<EnforcementClass> {
        self.resume.filter(|_| self.class != EnforcementClass::Native || t > Tokens::ZERO)
    }

    /// True if an answer behind a thought of at most `t` can be continued in another call.
    pub(super) fn goes_on(&self, t: Tokens) -> bool {
        match self.goes_on {
            GoesOn::Never => false,
            GoesOn::Resumed => self.class == EnforcementClass::Continue,
            GoesOn::Unthought => t == Tokens::ZERO && !self.hides_thoughts(),
        }
    }

    /// True if a text is to go on.
    pub(super) fn is_raw(&self) -> bool {
        self.raw
    }

    /// The least thought that the model can be given.
    pub(super) fn thinking_min(&self) -> Tokens {
        if self.allows(Tokens::ZERO) { Tokens::ZERO } else { self.model.thinking_min.max(Tokens(1)) }
    }

    /// True if its usual lengths of thought are known: by what the operator or the catalogue says, or by what was learned.
    pub(super) fn has_known_thinking(&self) -> bool {
        self.model.thinking_usual.is_some() || !self.model.efforts.is_empty() || self.demand.measured.thinking
    }

    /// True if a thought is not seen, so that only a limit on all that is written holds it.
    pub(super) fn hides_thoughts(&self) -> bool {
        self.class == EnforcementClass::Effort && self.thinks()
    }

    /// True if all that holds its thought is a word of its scale: what lies between two of them is the same call as the lower one.
    pub(super) fn is_held_by_words(&self) -> bool {
        self.hides_thoughts() && self.takes_efforts() && !self.model.efforts.is_empty()
    }

    /// True if the word that is sent for a stated effort is one at which the model does not think.
    pub(super) fn sends_no_thought(&self, stated: &ReasoningEffort) -> bool {
        let level = self.model.effort_place(stated).and_then(|place| self.model.efforts.get(place));
        self.is_held_by_words() && level.is_some_and(|level| level.usual == Tokens::ZERO)
    }

    /// How much it usually thinks at its least word, where only words hold its thought.
    pub(super) fn least_word(&self) -> Tokens {
        let least = self.model.efforts.first().filter(|_| self.is_held_by_words());
        least.map_or(Tokens::ZERO, |level| usual_at(level, self.model, self.demand))
    }

    /// True if it can be kept from thinking.
    pub(super) fn can_skip_thought(&self) -> bool {
        self.allows(Tokens::ZERO) && self.least_word() == Tokens::ZERO
    }

    /// The least thought that it can be asked for.
    pub(super) fn least_thought(&self) -> Tokens {
        self.thinking_min().max(self.least_word())
    }

    /// What is likely in the context beside thought and answer.
    pub(super) fn likely_context_use(&self, t: Tokens) -> Tokens {
        self.demand.prompt_likely() + self.overhead(t)
    }

    /// True if a longer answer costs more.
    pub(super) fn is_priced(&self) -> bool {
        let free = |rates: &Rates| rates.list.output == Price::FREE;
        !free(&self.tariff.rates) || self.tariff.long.as_ref().is_some_and(|(_, rates)| !free(rates))
    }

    /// What is written beside a thinking budget of `t` and the answer: tags, hand-off, end of text. Nothing is put in where a
    /// thought is hidden: the upstream counts all that it writes as thought or answer.
    pub(super) fn overhead(&self, t: Tokens) -> Tokens {
        let hand_off = &self.model.hand_off;
        match self.class {
            EnforcementClass::Effort => Tokens::ZERO,
            EnforcementClass::Inline if t == Tokens::ZERO && self.allows(t) => {
                hand_off.overhead_without_thought.min(hand_off.overhead)
            }
            _ => hand_off.overhead,
        }
    }

    /// What of that is written, and so counts with the answer. A thought that is none is closed in the prompt, and the end of
    /// the text takes the place of a token of the answer; only where a template opens a thought all the same is the hand-off
    /// written here.
    pub(super) fn written_overhead(&self, t: Tokens) -> Tokens {
        let hand_off = &self.model.hand_off;
        let is_closed_before = match self.class {
            EnforcementClass::Continue | EnforcementClass::Native | EnforcementClass::Turn => true,
            EnforcementClass::Inline => hand_off.overhead_without_thought < hand_off.overhead,
            EnforcementClass::Effort => false,
        };
        let is_none = t == Tokens::ZERO && self.allows(t);
        if is_none && is_closed_before { Tokens::ZERO } else { self.overhead(t) }
    }

    /// True if one limit holds a hidden thought and the answer, so that the thought may leave it no room.
    pub(super) fn may_be_rescued(&self) -> bool {
        self.hides_thoughts() && !self.has_one_limit
    }

    /// True if the model has words for how hard to think that it can be sent.
    pub(super) fn takes_efforts(&self) -> bool {
        !self.has_one_limit || self.model.classes.contains(&EnforcementClass::Effort)
    }

    /// The most that budgets of `t` and `s` can take, over all choices.
    pub(super) fn worst_case(&self, t: Tokens, s: Tokens) -> WorstCase {
        let (first, second) = self.call_bounds(t, s);
        let thinking = match self.class {
            // A hidden thought may fill the whole of both calls.
            EnforcementClass::Effort if self.may_be_rescued() => t + s + self.overhead(t) + s,
            EnforcementClass::Effort if self.thinks() => t + s + self.overhead(t),
            EnforcementClass::Native => EnforcementClass::native_max(t),
            _ => t,
        };
        let choices = u64::from(self.choices);
        let calls = std::iter::once(first).chain(second);
        let money: Money =
            calls.map(|(input, output)| self.tariff.worst_cost(input, output, self.cache_ttl)).sum();
        WorstCase { money: money * choices, thinking: thinking * choices }
    }

    /// What one choice's calls read and write at most. *Inline* makes one, and under a deadline one that resumes from
    /// where it struck; *continue* and *turn* a second one that reads the thought, and the first of *turn* may write the answer
    /// too; *native* may go a little beyond its budget, and is cut where it goes further; *effort* may need a rescue.
    fn call_bounds(&self, t: Tokens, s: Tokens) -> (CallTokens, Option<CallTokens>) {
        let (prompt, overhead, thinks) = (self.demand.prompt, self.overhead(t), t > Tokens::ZERO);
        let first = match self.class {
            EnforcementClass::Inline => (prompt, t + overhead + s),
            EnforcementClass::Native if thinks => (prompt, EnforcementClass::native_max(t) + overhead + s),
            EnforcementClass::Continue if thinks => (prompt, t),
            EnforcementClass::Native | EnforcementClass::Continue => (prompt + self.closing_overhead(), s),
            EnforcementClass::Turn if thinks => (prompt, t + s),
            EnforcementClass::Effort if self.thinks() => (prompt, t + s + overhead),
            EnforcementClass::Turn | EnforcementClass::Effort => (prompt, s),
        };
        let second = match self.class {
            EnforcementClass::Inline => {
                (self.has_deadline && thinks).then_some((prompt + t + overhead, Tokens::ZERO))
            }
            EnforcementClass::Native => {
                let read = prompt + EnforcementClass::native_max(t) + overhead;
                self.resume(t).map(|_| (read, overhead + s))
            }
            EnforcementClass::Continue | EnforcementClass::Turn => {
                thinks.then_some((prompt + t + overhead, overhead + s))
            }
            EnforcementClass::Effort => self.may_be_rescued().then_some((prompt, s + overhead)),
        };
        let billed = |(read, written): CallTokens| (read, written.max(self.model.output_min));
        (billed(first), second.map(billed))
    }

    /// What closes a thought in the prompt that is not to be one.
    pub(super) fn closing_overhead(&self) -> Tokens {
        match self.class {
            EnforcementClass::Continue if !self.raw => self.model.hand_off.overhead,
            EnforcementClass::Native if self.thinks() => self.model.hand_off.overhead,
            _ => Tokens::ZERO,
        }
    }
}

/// An answer of a certain form cannot be continued: a server that enforces the form may begin a new object.
fn goes_on(request: &PlanRequest, model: &Model) -> GoesOn {
    let is_plain = request.needs.service == Service::Chat && !request.needs.shapes_answer;
    if is_plain { model.goes_on } else { GoesOn::Never }
}

/// Refuses a model whose backend does not take a member of the request that nobody here knows.
fn check_members(request: &PlanRequest, model: &Model) -> Result<(), PlanRefusal> {
    let refused = |member: &Arc<str>, by| PlanRefusal::MemberRejected {
        member: member.clone(),
        by,
        model: None,
        others: Vec::new(),
    };
    let is_local = model.classes == [EnforcementClass::Inline];
    let by = if is_local { RejectedBy::Engine } else { RejectedBy::Backend };
    if let Some(member) = model.first_refused_member(request.needs) {
        return Err(refused(member, by));
    }
    model
        .first_unresumable_member(request.needs)
        .map_or(Ok(()), |member| Err(refused(member, RejectedBy::Endpoint)))
}
