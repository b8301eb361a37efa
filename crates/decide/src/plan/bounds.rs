//! How far thought and answer may go: what caller and operator stated, the context, the provider; for the thought, the
//! deadline too. An answer is never limited by an estimate.

use std::time::Duration;

use stint_types::catalog::{EnforcementClass, LimitedBy, Model};
use stint_types::chat::MemberNames;
use stint_types::units::{Chance, Tokens};

use super::reason::BudgetReason;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::terms::ModelTerms;

/// Beside a planned thought an answer keeps one part in so many of what there is, where its length is not known.
const ANSWER_PART: u64 = 4;
/// Beside a stated thought one of which the length is only guessed keeps one part in so many, where no more is left.
const GUESSED_PART: u64 = 16;
/// Where it is known, it keeps room for this share of such answers.
const ANSWER_QUANTILE: f64 = 0.99;
/// Where a model cannot be kept from thinking, its thought is left one part in so many of what there is.
const THOUGHT_PART: u64 = 2;

/// The most that a thought may take, and what says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ThinkingCeiling<'a> {
    pub most: Tokens,
    pub by: BudgetReason<'a>,
}

/// How far an answer may go, whatever the money.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AnswerHeadroom {
    pub most: Tokens,
    pub by: LimitedBy,
    /// The most that certainly fits into the context with it: less, where of the prompt only its bytes are known.
    pub sure: Tokens,
    /// Whether it is sent even to an upstream that needs no limit.
    pub tells_limit: bool,
    /// Whether nobody knows how far that is, so that it limits nothing.
    pub is_unknown: bool,
}

/// The room for thought and answer on one model.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenBounds<'a> {
    /// The most that a thought may take.
    pub thinking: ThinkingCeiling<'a>,
    /// The least answer that is set aside: of a stated one all that is set aside at first, else what a usual one takes.
    pub least: Tokens,
    /// What an answer hardly exceeds, by the quantile that reservations open with.
    pub likely_max: Tokens,
    /// How much may come in one piece, by what it hardly exceeds, where nobody reads along and nothing cuts it.
    pub whole_max: Tokens,
    /// False if prompt and usual answer may be too long for the context.
    pub fits: bool,
    /// False if not even an answer alone is expected before the deadline, unless what waits before it gives up its thoughts.
    pub in_time: bool,
    /// How long an answer may be by the limits of caller and operator alone.
    wanted: Tokens,
    total: Option<Tokens>,
    solution: Option<Tokens>,
}

impl<'a> TokenBounds<'a> {
    /// The bounds of a model for a request, or why not even an answer alone is possible.
    pub(super) fn of(request: &PlanRequest, terms: &ModelTerms) -> Result<TokenBounds<'a>, PlanRefusal> {
        let (budget, overhead) = (request.budget, terms.overhead(Tokens::ZERO));
        let (members, closing) = (&budget.members, terms.overhead(Tokens(1)).saturating_sub(overhead));
        check_context(terms, members)?;
        check_total(budget.total, terms.written_overhead(Tokens::ZERO), members)?;
        let wanted = wanted_answer(request, terms)?;
        let usual = wanted.min(terms.demand.solution_usual());
        let likely_max = likely_max(request, terms, wanted);
        let least = if budget.solution.is_some() { likely_max } else { usual };
        let in_context = terms.model.context.saturating_sub(terms.likely_context_use(Tokens(1)));
        let fits = terms.model.context > terms.likely_context_use(Tokens::ZERO) + usual;
        let in_total = budget.total.unwrap_or(Tokens::MAX).saturating_sub(terms.written_overhead(Tokens(1)));
        let in_output = output_left(terms, Tokens(1));
        let together = in_context.min(in_total).min(in_output);
        let planned = planned_answer(terms, together).min(wanted);
        let kept = |room: Tokens| match budget.thinking {
            Some(stated) => beside_stated(terms, stated, room, (usual, wanted)),
            None => planned,
        };
        let beside = |room: Tokens, kept: Tokens| {
            let must = if terms.allows(Tokens::ZERO) { Tokens::ZERO } else { Tokens(room.0 / THOUGHT_PART) };
            room.saturating_sub(kept).max(must)
        };
        let kept_of_total = if budget.solution.is_some() { wanted } else { kept(in_total) };
        let by = terms.model.thinking_ruled_out.map_or(BudgetReason::Provider, BudgetReason::RuledOut);
        let mut thinking = ThinkingCeiling { most: terms.model.thinking_max, by };
        thinking.lower(beside(in_context, kept(in_context)), BudgetReason::Context);
        thinking.lower(beside(in_output, kept(in_output)), BudgetReason::Output);
        thinking.lower(beside(in_total, kept_of_total), BudgetReason::Total(members.total));
        let mut in_time = true;
        if let Some(left) = deadline(request) {
            let (seconds, crowd) = (left.as_secs_f64(), terms.seconds_behind_thoughts());
            let shortest = terms.seconds_at_most(Tokens::ZERO, terms.demand.solution.min(wanted));
            let least = shortest - crowd;
            // Of what was never measured nobody knows that it is too slow.
            if terms.is_measured() && least > seconds {
                let member = (budget.deadline == Some(left)).then_some(members.deadline);
                return Err(PlanRefusal::DeadlineUnreachable { needed: duration(least), left, member });
            }
            in_time = !terms.is_measured() || shortest <= seconds;
            // A stated thought is not lowered for the sake of others (theirs are), nor by a guess.
            let before = match budget.thinking {
                Some(_) if !terms.is_measured() => f64::INFINITY,
                Some(_) => crowd,
                None => 0.0,
            };
            let spare = seconds + before - terms.seconds_at_most(Tokens::ZERO, closing + usual);
            thinking.lower(
                whole_tokens(spare / terms.seconds_per_thought()),
                BudgetReason::Deadline(members.deadline),
            );
        }
        let (total, solution) = (budget.total, budget.solution);
        let whole_max = whole_max(request, terms);
        Ok(TokenBounds { thinking, least, likely_max, whole_max, fits, in_time, wanted, total, solution })
    }

    /// True if an answer may take all of so many tokens, so that only a limit that it has in common with its thought
    /// keeps it from them.
    pub(super) fn shares_limit(&self, together: Tokens) -> bool {
        together <= self.wanted
    }

    /// How far an answer may go beside a thinking budget of `t`.
    pub(super) fn headroom(&self, terms: &ModelTerms, t: Tokens) -> AnswerHeadroom {
        let in_total = self.total.map(|total| total.saturating_sub(t + terms.written_overhead(t)));
        let stated = in_total.unwrap_or(Tokens::MAX).min(self.solution.unwrap_or(Tokens::MAX));
        let operator = terms.model.solution_max.unwrap_or(Tokens::MAX);
        let least = terms.demand.prompt_least + terms.overhead(t);
        let own = terms.model.context.saturating_sub(least + t).min(output_left(terms, t));
        let (most, by) =
            [(stated, LimitedBy::Caller), (operator, LimitedBy::Operator), (own, LimitedBy::Model)]
                .into_iter()
                .reduce(|least, other| if other.0 < least.0 { other } else { least })
                .unwrap_or((own, LimitedBy::Model));
        let most = most.max(Tokens(1));
        let sure =
            most.min(terms.model.context.saturating_sub(terms.likely_context_use(t) + t)).max(Tokens(1));
        let is_unknown = by == LimitedBy::Model && terms.model.writes_unknown();
        if terms.is_raw() {
            // An API that a text goes on by takes 16 tokens to be wanted where nothing is said.
            let sure = if is_unknown { sure.min(Model::TOLD_MAX) } else { sure };
            return AnswerHeadroom { most: sure, by, sure, tells_limit: true, is_unknown };
        }
        AnswerHeadroom { most, by, sure, tells_limit: by != LimitedBy::Model && sure == most, is_unknown }
    }
}

/// How long an answer may be by the limits of caller and operator alone.
fn wanted_answer(request: &PlanRequest, terms: &ModelTerms) -> Result<Tokens, PlanRefusal> {
    let limits = [request.budget.solution, terms.model.solution_max];
    let wanted = limits.into_iter().flatten().min().unwrap_or(Tokens::MAX);
    if wanted == Tokens::ZERO {
        let member = request.budget.members.solution;
        return Err(PlanRefusal::BudgetTooSmall { needed: Tokens(1), stated: wanted, member });
    }
    Ok(wanted)
}

/// What is to be set aside for an answer at first. One that its caller limits is reserved as far as that, where no more can be
/// set aside while it is written.
fn likely_max(request: &PlanRequest, terms: &ModelTerms, wanted: Tokens) -> Tokens {
    if request.budget.solution.is_some() && !terms.model.stops_billing {
        return wanted;
    }
    wanted.min(terms.demand.solution_within(request.opening_quantile))
}

/// How much of an answer may come in one piece: none where somebody reads along, or where its thought is held by tokens.
fn whole_max(request: &PlanRequest, terms: &ModelTerms) -> Tokens {
    let is_held = request.streams || terms.class != EnforcementClass::Effort || terms.is_raw();
    if is_held { Tokens::ZERO } else { Model::WHOLE_MAX }
}

/// What is kept for the answer beside a stated thought, of a room for both: a usual answer, or one that is stated shorter. A mere
/// guess of a usual one takes no more from the thought than an answer needs at all.
fn beside_stated(
    terms: &ModelTerms,
    stated: Tokens,
    room: Tokens,
    (usual, wanted): (Tokens, Tokens),
) -> Tokens {
    let is_guess = !terms.demand.measured.solution && usual < wanted;
    let least = Tokens(room.0 / GUESSED_PART).max(Tokens(1));
    if is_guess { usual.min(room.saturating_sub(stated).max(least)) } else { usual }
}

/// What is kept for the answer beside a planned thought, of all that there is.
fn planned_answer(terms: &ModelTerms, all: Tokens) -> Tokens {
    let kept = if terms.demand.measured.solution {
        terms.demand.solution_within(Chance::new(ANSWER_QUANTILE))
    } else {
        Tokens(all.0 / ANSWER_PART)
    };
    kept.max(Tokens(1))
}

/// What the provider's limit on a call's output leaves to the answer beside a thinking budget of `t`. Who resumes a thought asks
/// for the answer in a call of its own.
fn output_left(terms: &ModelTerms, t: Tokens) -> Tokens {
    let most = terms.model.output_max.unwrap_or(Tokens::MAX);
    if terms.class == EnforcementClass::Continue {
        most
    } else {
        most.saturating_sub(t + terms.written_overhead(t))
    }
}

impl<'a> ThinkingCeiling<'a> {
    /// Lowers it to `most`, if that is lower.
    pub(super) fn lower(&mut self, most: Tokens, by: BudgetReason<'a>) {
        if most < self.most {
            *self = ThinkingCeiling { most, by };
        }
    }
}

/// Refuses a prompt that is certainly too long. Of one that may be, its provider knows.
fn check_context(terms: &ModelTerms, members: &MemberNames) -> Result<(), PlanRefusal> {
    let (context, taken) = (terms.model.context, terms.demand.prompt_least + terms.overhead(Tokens::ZERO));
    if taken < context {
        return Ok(());
    }
    Err(PlanRefusal::ContextExceeded {
        needed: taken + Tokens(1),
        context,
        limited_by: terms.model.context_limited_by,
        member: members.prompt,
    })
}

fn check_total(total: Option<Tokens>, overhead: Tokens, members: &MemberNames) -> Result<(), PlanRefusal> {
    match total.filter(|total| *total <= overhead) {
        Some(stated) => {
            Err(PlanRefusal::BudgetTooSmall { needed: overhead + Tokens(1), stated, member: members.total })
        }
        None => Ok(()),
    }
}

/// The nearer of the request's deadline and the allowance's.
pub(super) fn deadline(request: &PlanRequest) -> Option<Duration> {
    [request.budget.deadline, request.allowance.deadline].into_iter().flatten().min()
}

/// Whole tokens in a quotient of seconds, a millionth short of one included, since the seconds are rounded;
/// as many as you like where a token takes no time.
fn whole_tokens(tokens: f64) -> Tokens {
    if tokens.is_nan() { Tokens::MAX } else { Tokens::round((tokens + 1e-6).floor()) }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
