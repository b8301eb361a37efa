//! How far thought and answer may go: what the caller stated, the deadline, the context, the provider.

use std::time::Duration;

use crate::chat::Members;
use crate::units::Tokens;

use super::terms::Terms;
use super::why::Reason;
use super::{Ask, Refusal};

/// The most that a thought may take, and what says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ceiling<'a> {
    pub most: Tokens,
    pub by: Reason<'a>,
}

/// The room for thought and answer on one model. An answer's budget is always set aside first: all of a
/// stated one; of one that is left to us, twice what an answer usually takes, and more where there is room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// The most that a thought may take.
    pub thinking: Ceiling<'a>,
    /// The most that an answer may take.
    solution: Tokens,
    /// The least that is kept for an answer, whatever the thought.
    pub kept: Tokens,
    /// For an answer without a thought, by context and caller.
    room: Tokens,
    /// The same for thought and answer together: a thought may have to be closed.
    together: Tokens,
    /// The deadline in seconds, where the answer's budget is left to us; a stated one stays, and running
    /// into the deadline ends it.
    deadline: Option<f64>,
}

impl<'a> Bounds<'a> {
    /// The bounds of a model for a request, or why not even an answer alone is possible.
    pub(super) fn of(ask: &Ask, terms: &Terms) -> Result<Bounds<'a>, Refusal> {
        let (budget, overhead) = (ask.budget, terms.overhead(Tokens::ZERO));
        let (members, closing) = (&budget.members, terms.overhead(Tokens(1)).saturating_sub(overhead));
        let in_context = context_room(terms, members)?;
        let in_total = total_room(budget.total, terms.written(Tokens::ZERO), members)?;
        let room = in_context.min(in_total);
        let in_context = in_context.saturating_sub(closing);
        let in_total = budget.total.unwrap_or(Tokens::MAX).saturating_sub(terms.written(Tokens(1)));
        let most = terms.model.solution_max.unwrap_or(Tokens::MAX);
        let wanted = budget.solution.map_or(most, |stated| stated.min(most));
        if wanted == Tokens::ZERO {
            let member = members.solution;
            return Err(Refusal::BudgetTooSmall { needed: Tokens(1), stated: wanted, member });
        }
        let solution = wanted.min(room);
        let usual = solution.min(terms.demand.solution * 2 + Tokens(16));
        let kept = if budget.solution.is_some() { solution } else { usual };
        let beside = if budget.solution.is_some() { wanted } else { usual };
        let by_total = in_total.saturating_sub(beside);
        let mut thinking = Ceiling { most: terms.model.thinking_max, by: Reason::Provider };
        thinking.lower(in_context.saturating_sub(usual), Reason::Context);
        thinking.lower(by_total, Reason::Total(members.total));
        let deadline = deadline(ask);
        if let Some(left) = deadline {
            let shortest = terms.seconds_at_most(Tokens::ZERO, terms.demand.solution.min(solution));
            let seconds = left.as_secs_f64();
            if shortest > seconds {
                let member = (budget.deadline == Some(left)).then_some(members.deadline);
                return Err(Refusal::DeadlineUnreachable { needed: duration(shortest), left, member });
            }
            let spare = seconds - terms.seconds_at_most(Tokens::ZERO, closing + kept);
            thinking.lower(whole(spare / terms.seconds_per_thought()), Reason::Deadline(members.deadline));
        }
        let deadline = deadline.filter(|_| budget.solution.is_none()).map(|left| left.as_secs_f64());
        Ok(Bounds { thinking, solution, kept, room, together: in_context.min(in_total), deadline })
    }

    /// The answer's budget beside a thinking budget of `t`, where money does not matter.
    pub(super) fn solution(&self, terms: &Terms, t: Tokens) -> Tokens {
        let room = if t == Tokens::ZERO { self.room } else { self.together };
        let solution = self.solution.min(room.saturating_sub(t));
        match self.deadline {
            Some(seconds) => {
                let spare = seconds - terms.seconds_at_most(t, Tokens::ZERO);
                solution.min(whole(spare / terms.conditions.token).max(Tokens(1)))
            }
            None => solution,
        }
    }
}

impl<'a> Ceiling<'a> {
    /// Lowers it to `most`, if that is lower.
    pub(super) fn lower(&mut self, most: Tokens, by: Reason<'a>) {
        if most < self.most {
            *self = Ceiling { most, by };
        }
    }
}

fn context_room(terms: &Terms, members: &Members) -> Result<Tokens, Refusal> {
    let (context, taken) = (terms.model.context, terms.demand.prompt + terms.overhead(Tokens::ZERO));
    match context.saturating_sub(taken) {
        Tokens::ZERO => {
            let member = members.prompt;
            Err(Refusal::ContextExceeded { needed: taken + Tokens(1), context, member })
        }
        room => Ok(room),
    }
}

fn total_room(total: Option<Tokens>, overhead: Tokens, members: &Members) -> Result<Tokens, Refusal> {
    match total.map(|total| (total, total.saturating_sub(overhead))) {
        Some((stated, Tokens::ZERO)) => {
            let member = members.total;
            Err(Refusal::BudgetTooSmall { needed: overhead + Tokens(1), stated, member })
        }
        Some((_, room)) => Ok(room),
        None => Ok(Tokens::MAX),
    }
}

/// The nearer of the request's deadline and the allowance's.
pub(super) fn deadline(ask: &Ask) -> Option<Duration> {
    [ask.budget.deadline, ask.allowance.deadline].into_iter().flatten().min()
}

/// Whole tokens in a quotient of seconds, a millionth short of one included, since the seconds are rounded;
/// as many as you like where a token takes no time.
fn whole(tokens: f64) -> Tokens {
    if tokens.is_nan() { Tokens::MAX } else { Tokens::round((tokens + 1e-6).floor()) }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
