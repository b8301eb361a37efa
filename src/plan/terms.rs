//! What one model would take for one request: the formulas of an offer.

use crate::catalog::{Class, Conditions, Model, ModelDemand, Prices, WorstCase};
use crate::units::{Money, Price, Tokens};

use super::{Ask, Refusal};

/// The stop or discarded token that a call may be billed for beyond its limit.
const STOP: Tokens = Tokens(1);

/// One model, on its terms for this request.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    pub model: &'a Model,
    pub demand: &'a ModelDemand,
    pub conditions: Conditions,
    prices: Prices,
    choices: u32,
    /// True where a deadline may end the thought before its budget does: then a second call resumes from it.
    timed: bool,
}

/// What an offer is expected to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// For all choices, in dollars.
    pub dollars: f64,
    /// To the whole answer; choices run side by side.
    pub seconds: f64,
}

/// What a cut costs beyond the thought: in tokens read and written again.
struct CutCost {
    read: f64,
    written: f64,
}

impl<'a> Terms<'a> {
    /// A model's terms, if it can be asked at all: capable, available, and priced where money is limited.
    pub(super) fn of(ask: &Ask<'a>, model: &'a Model) -> Result<Terms<'a>, Refusal> {
        if let Some(lacking) = ask.needs.capabilities.iter().find(|need| !model.can(**need)) {
            return Err(Refusal::NotCapable { what: lacking.word() });
        }
        let limited = ask.allowance.limits_money(&model.name) || ask.budget.cost.is_some();
        if limited && model.prices.is_none() {
            return Err(Refusal::Unpriced { model: model.name.clone() });
        }
        let conditions = ask.market.conditions(&model.name);
        let demand = ask.demand.models.get(&model.name).ok_or(Refusal::Unhealthy)?;
        if !conditions.healthy {
            return Err(Refusal::Unhealthy);
        }
        let prices = model.prices.unwrap_or(Prices { input: Price::FREE, output: Price::FREE });
        Ok(Terms {
            model,
            demand,
            conditions,
            prices,
            choices: ask.choices.max(1),
            timed: ask.budget.deadline.is_some(),
        })
    }

    /// False for a model that answers at once.
    pub(super) fn thinks(&self) -> bool {
        self.model.thinking_max > Tokens::ZERO
    }

    /// What stands beside thought and answer: tags, hand-off, end of text.
    pub(super) fn overhead(&self) -> Tokens {
        match self.model.class {
            Class::Effort if !self.thinks() => Tokens::ZERO,
            _ => self.model.hand_off.overhead,
        }
    }

    /// True where one limit holds a hidden thought and the answer, so that the thought may leave it no room.
    pub(super) fn may_be_rescued(&self) -> bool {
        self.model.class == Class::Effort && self.thinks()
    }

    /// The most that budgets of `t` and `s` can take, over all choices. The calls per class: *inline* one, and
    /// under a deadline one that resumes from where it struck; *continue* a second one that reads the thought; *effort* a rescue, and its hidden thought may take the
    /// answer's tokens too, as one limit holds both.
    pub(super) fn worst(&self, t: Tokens, s: Tokens) -> WorstCase {
        let (prompt, overhead, none) = (self.demand.prompt, self.overhead(), (Tokens::ZERO, Tokens::ZERO));
        let calls = match self.model.class {
            Class::Inline if self.timed && t > Tokens::ZERO => {
                [(prompt, t + overhead + s), (prompt + t + overhead, Tokens::ZERO)]
            }
            Class::Inline => [(prompt, t + overhead + s), none],
            Class::Continue if t == Tokens::ZERO => [(prompt + overhead, overhead + s + STOP), none],
            Class::Continue => [(prompt, t + STOP), (prompt + t + overhead, overhead + s)],
            Class::Effort if !self.thinks() => [(prompt, s + STOP), none],
            Class::Effort => [(prompt, t + s + overhead), (prompt, s + overhead)],
        };
        // A hidden thought may fill the whole of both calls.
        let thinking = if self.may_be_rescued() { t + s + overhead + s } else { t };
        let choices = u64::from(self.choices);
        let money: Money = calls.iter().map(|&(input, output)| self.prices.cost(input, output)).sum();
        WorstCase { money: money * choices, thinking: thinking * choices }
    }

    /// What budgets of `t` and `s` are expected to take. With F the distribution of the thought's length, each
    /// choice reads `prompt + (1 − F(t))·what a cut reads again` and writes `E[min(L, t)] + E[S] + (1 − F(t))·
    /// what a cut writes`. Cost is that at list prices, time that at the measured speeds after the queue.
    pub(super) fn expected(&self, t: Tokens, s: Tokens) -> Expected {
        let solution = self.demand.solution.min(s).as_f64();
        let cut = self.cut(t, solution);
        let share = if self.thinks() { 1.0 - self.demand.thinking.finished(t.as_f64()) } else { 0.0 };
        let read = self.demand.prompt.as_f64() + share * cut.read;
        let written = self.demand.thinking.mean_within(t.as_f64()) + solution + share * cut.written;
        let (input, output) = (self.prices.input.dollars_per_token(), self.prices.output.dollars_per_token());
        let Conditions { queue, prefill, token, .. } = self.conditions;
        Expected {
            dollars: f64::from(self.choices) * (input * read + output * written),
            seconds: queue + prefill * read + token * written,
        }
    }

    /// The time that budgets of `t` and `s` take when they are used up, hand-off included.
    pub(super) fn seconds_at_most(&self, t: Tokens, s: Tokens) -> f64 {
        self.seconds_before()
            + self.seconds_per_thought() * t.as_f64()
            + self.conditions.token * (self.overhead() + s).as_f64()
    }

    /// Queue and prefill; twice the prefill where a cut reads the prompt again.
    fn seconds_before(&self) -> f64 {
        let reads = if self.reads_again() { 2.0 } else { 1.0 };
        self.conditions.queue + reads * self.conditions.prefill * self.demand.prompt.as_f64()
    }

    /// For a token of thought: writing it, and reading it again after a cut.
    pub(super) fn seconds_per_thought(&self) -> f64 {
        self.conditions.token + if self.reads_again() { self.conditions.prefill } else { 0.0 }
    }

    fn reads_again(&self) -> bool {
        self.thinks() && self.model.class == Class::Continue
    }

    fn cut(&self, t: Tokens, solution: f64) -> CutCost {
        let (prompt, overhead) = (self.demand.prompt.as_f64(), self.overhead().as_f64());
        match self.model.class {
            Class::Continue if t > Tokens::ZERO => {
                CutCost { read: prompt + t.as_f64() + overhead, written: overhead }
            }
            Class::Inline | Class::Continue => CutCost { read: 0.0, written: overhead },
            Class::Effort if t == Tokens::ZERO => CutCost { read: 0.0, written: 0.0 },
            Class::Effort => CutCost { read: prompt, written: solution },
        }
    }
}
