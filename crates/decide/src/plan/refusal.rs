//! Why no offer can be made.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use stint_types::units::{Amount, Holder, Limit, Money, Timestamp, Tokens};

/// Why no model can serve a request within its budgets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// No model can do something that the request needs.
    #[error("no model here can do {what}: ask for another model or leave it out")]
    NotCapable {
        /// The word for it.
        what: &'static str,
    },
    /// The same, in the caller's words.
    #[error("{} {what}{}{}", cannot(model.as_deref()), asks(member), setting(what))]
    MemberNotServed {
        /// The one model that was asked for; nothing if there were several.
        model: Option<Arc<str>>,
        /// The word for what it cannot do.
        what: &'static str,
        /// In which member, or part of one, it is asked for.
        member: Cow<'static, str>,
    },
    /// No model's backend takes a member that nobody here knows.
    #[error("{member} is not known {}{}", nowhere(model.as_deref(), *by), takers(member, others, *by))]
    MemberRejected {
        /// The member.
        member: Arc<str>,
        /// Who does not take it.
        by: RejectedBy,
        /// The one model that was asked for; nothing if there were several.
        model: Option<Arc<str>>,
        /// Those that would take it.
        others: Vec<Arc<str>>,
    },
    /// The prompt leaves no room for an answer.
    #[error(
        "prompt, hand-off and one token of answer take {needed} tokens, the context is {context}{}: shorten {member}",
        .limited_by.map(|what| format!(" ({what})")).unwrap_or_default()
    )]
    ContextExceeded {
        /// The least that the context would have to hold.
        needed: Tokens,
        /// What it holds.
        context: Tokens,
        /// What keeps it below what the model itself could take, where something does.
        limited_by: Option<&'static str>,
        /// What the caller calls what the model is to read.
        member: &'static str,
    },
    /// The caller's own token limits leave no room for an answer.
    #[error("an answer takes {needed} tokens at least, {stated} are allowed: raise {member}")]
    BudgetTooSmall {
        /// The hand-off and one token of answer.
        needed: Tokens,
        /// What the caller stated.
        stated: Tokens,
        /// In which member.
        member: &'static str,
    },
    /// The model cannot think as little as that.
    #[error("this model always thinks{}: raise {member} or ask another model", at_least(*needed))]
    AlwaysThinks {
        /// The least thought that it can be given.
        needed: Tokens,
        /// The caller's member that allows less.
        member: &'static str,
    },
    /// A model without a price, for a caller whose money is limited.
    #[error(
        "{model} has no price, and this key's money is limited: name a model that has one, or have its price_input and price_output \
         written, 0 if it is free"
    )]
    Unpriced {
        /// The model.
        model: Arc<str>,
    },
    /// A model of whose price nobody knows anything, where there is a choice.
    #[error(
        "the price of {model} is not known, so it is chosen only by its name: ask for it by that, or have its price configured, 0 if it is free"
    )]
    PriceUnknown {
        /// The model.
        model: Arc<str>,
    },
    /// Not even an answer without a thought is there in time.
    #[error(
        "an answer without a thought takes about {}, the deadline is in {}: {}",
        seconds(*needed), seconds(*left), more_time(*member)
    )]
    DeadlineUnreachable {
        /// The least time for a usual answer.
        needed: Duration,
        /// The time there is.
        left: Duration,
        /// In which member it is stated; nothing if it is not the caller's.
        member: Option<&'static str>,
    },
    /// No model can be asked now.
    #[error("no suitable model is available now: try again later")]
    Unhealthy,
    /// The caller's own limit on the cost is too small.
    #[error(
        "the cheapest offer may cost {needed} dollars, {member} is {cost}: raise it or shorten the request"
    )]
    CostBudgetTooSmall {
        /// The worst case of the cheapest offer.
        needed: Money,
        /// What the caller stated.
        cost: Money,
        /// In which member.
        member: &'static str,
    },
    /// What is left under a limit is too little.
    #[error(
        "needs {needed}, and {limit} has {left} left: {}",
        remedy(limit, *needed, *resets_at, *exceeds_limit, member)
    )]
    InsufficientQuota {
        /// Which limit.
        limit: Box<Limit>,
        /// The worst case of the least offer.
        needed: Amount,
        /// What is left.
        left: Amount,
        /// When the limit starts again.
        resets_at: Option<Timestamp>,
        /// Whether it is more than the whole limit, so that waiting does not help.
        exceeds_limit: bool,
        /// What the caller calls thought and answer together.
        member: &'static str,
    },
}

/// Who does not take a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedBy {
    /// The backend, by its `unknown_members`.
    Backend,
    /// The engine of this gateway, which has no others than ours.
    Engine,
    /// The endpoint at which thoughts are resumed, and the model's thinking is held by that alone.
    Endpoint,
}

/// Where a member is not known.
fn nowhere(model: Option<&str>, by: RejectedBy) -> String {
    let model = model.unwrap_or("any model that was asked for");
    match by {
        RejectedBy::Backend | RejectedBy::Engine => format!("to {model}"),
        RejectedBy::Endpoint => {
            format!("to the endpoint at which thoughts of {model} are resumed (class \"continue\")")
        }
    }
}

/// What to do about a member that is not taken.
fn takers(member: &str, others: &[Arc<str>], by: RejectedBy) -> String {
    let leave = match others {
        [] => format!(": leave {member} out"),
        some => format!(": leave {member} out, or ask {}, which takes it", some.join(" or ")),
    };
    let setting = match by {
        RejectedBy::Backend => "; unknown_members = \"pass\" on its [[backend]] has it passed on",
        RejectedBy::Endpoint => "; another class among the model's classes goes without that endpoint",
        RejectedBy::Engine => "",
    };
    leave + setting
}

/// The least thought, if its provider names one.
fn at_least(needed: Tokens) -> String {
    if needed == Tokens::ZERO { String::new() } else { format!(", {needed} tokens at least") }
}

/// What the operator says of a model that can do it.
fn setting(what: &str) -> String {
    match what {
        "tools" | "images" | "documents" | "json" | "schema" | "penalties" | "logprobs" => {
            format!("; capabilities = [\"{what}\"] on its [[backend.model]] says that it can")
        }
        "chat" | "completions" | "embeddings" => {
            format!("; serves = [\"{what}\"] on its [[backend.model]] says that it can")
        }
        _ => "; tool_syntax on its [[backend.model]] says how it writes its calls, or classes name a way without resuming"
            .to_owned(),
    }
}

/// What to do about a limit that is too small.
fn remedy(
    limit: &Limit,
    needed: Amount,
    resets_at: Option<Timestamp>,
    exceeds_limit: bool,
    member: &str,
) -> String {
    let less = match needed {
        Amount::Thinking(_) => "state a smaller thinking budget or none".to_owned(),
        _ => format!("ask for less, as with a lower {member}"),
    };
    match (&limit.holder, resets_at) {
        (Holder::Episode, _) => format!("{less}, or begin another run"),
        _ if exceeds_limit => format!("{less}, or have it raised: this is more than the whole limit"),
        (_, Some(_)) => format!("{less}, wait until it resets, or have it raised"),
        (_, None) => format!("{less}, or have it raised"),
    }
}

/// Who cannot do something.
fn cannot(model: Option<&str>) -> String {
    model.map_or("no model here can do".to_owned(), |model| format!("{model} cannot do"))
}

/// What asks for what cannot be done, and what to do about it.
fn asks(member: &str) -> String {
    match member {
        "model" => ": ask for another model".to_owned(),
        other => format!(", which {other} asks for: leave {other} out or ask for another model"),
    }
}

/// What to do about a deadline that is too near.
fn more_time(member: Option<&str>) -> String {
    member.map_or("allow more time".to_owned(), |member| format!("raise {member}"))
}

impl PlanRefusal {
    /// The same in the caller's words: which member asks for what `model` cannot do, the only one that there was to
    /// choose, or what no model can.
    #[must_use]
    pub fn for_caller(
        self,
        model: Option<&Arc<str>>,
        member: impl FnOnce(&str) -> &'static str,
    ) -> PlanRefusal {
        match self {
            PlanRefusal::NotCapable { what } => {
                PlanRefusal::MemberNotServed { model: model.cloned(), what, member: member(what).into() }
            }
            PlanRefusal::MemberRejected { member, by, others, .. } => {
                PlanRefusal::MemberRejected { member, by, model: model.cloned(), others }
            }
            other => other,
        }
    }

    /// The same with the models that would take the member which is not taken.
    #[must_use]
    pub fn with_alternatives(self, others: &[Arc<str>]) -> PlanRefusal {
        match self {
            PlanRefusal::MemberRejected { member, by, model, .. } => {
                PlanRefusal::MemberRejected { member, by, model, others: others.to_vec() }
            }
            other => other,
        }
    }

    /// The caller's member that it is about, where it is about one.
    pub fn member(&self) -> Option<&str> {
        match self {
            PlanRefusal::MemberNotServed { member, .. } => Some(member),
            PlanRefusal::ContextExceeded { member, .. }
            | PlanRefusal::BudgetTooSmall { member, .. }
            | PlanRefusal::AlwaysThinks { member, .. }
            | PlanRefusal::CostBudgetTooSmall { member, .. } => Some(member),
            PlanRefusal::DeadlineUnreachable { member, .. } => *member,
            PlanRefusal::MemberRejected { member, .. } => Some(member),
            PlanRefusal::Unpriced { .. } | PlanRefusal::PriceUnknown { .. } => Some("model"),
            PlanRefusal::NotCapable { .. }
            | PlanRefusal::Unhealthy
            | PlanRefusal::InsufficientQuota { .. } => None,
        }
    }

    /// The stable word for it, in errors and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            PlanRefusal::NotCapable { .. } | PlanRefusal::MemberNotServed { .. } => "model_not_capable",
            PlanRefusal::MemberRejected { .. } => "unknown_parameter",
            PlanRefusal::ContextExceeded { .. } => "context_length_exceeded",
            PlanRefusal::BudgetTooSmall { .. }
            | PlanRefusal::AlwaysThinks { .. }
            | PlanRefusal::CostBudgetTooSmall { .. } => "budget_too_small",
            PlanRefusal::Unpriced { .. } | PlanRefusal::PriceUnknown { .. } => "model_unpriced",
            PlanRefusal::DeadlineUnreachable { .. } => "deadline_unreachable",
            PlanRefusal::Unhealthy => "overloaded",
            PlanRefusal::InsufficientQuota { .. } => "insufficient_quota",
        }
    }

    /// Which limit on money or time leaves a model out; nothing where it is something else that does.
    pub(super) fn limit(&self) -> Option<String> {
        match self {
            PlanRefusal::InsufficientQuota { limit, .. } => Some(format!("{limit} has too little left")),
            PlanRefusal::CostBudgetTooSmall { member, .. } => Some(format!("{member} is too small for it")),
            PlanRefusal::DeadlineUnreachable { .. } => Some("the deadline is too near for it".to_owned()),
            _ => None,
        }
    }

    /// How near it came to an offer: of several models' refusals the nearest is reported, and of those the one
    /// that lacked least.
    pub(super) fn nearness(&self) -> (u8, u128) {
        let less = |amount: u64| u128::from(u64::MAX - amount);
        match self {
            PlanRefusal::NotCapable { .. } | PlanRefusal::MemberNotServed { .. } => (0, 0),
            PlanRefusal::MemberRejected { .. } => (0, 1),
            PlanRefusal::ContextExceeded { context, .. } => (1, context.0.into()),
            PlanRefusal::BudgetTooSmall { needed, .. } | PlanRefusal::AlwaysThinks { needed, .. } => {
                (2, less(needed.0))
            }
            PlanRefusal::Unpriced { .. } | PlanRefusal::PriceUnknown { .. } => (3, 0),
            PlanRefusal::DeadlineUnreachable { needed, .. } => (4, u128::MAX - needed.as_nanos()),
            PlanRefusal::Unhealthy => (5, 0),
            PlanRefusal::CostBudgetTooSmall { needed, .. } => (6, less(needed.0)),
            PlanRefusal::InsufficientQuota { needed, .. } => (7, less(needed.size())),
        }
    }
}

/// A time as people write it: in seconds, to two places, or to none from ten on; what would be none of a second so, in
/// milliseconds.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.01 {
        return format!("{} ms", time.as_micros().div_ceil(1_000));
    }
    if seconds >= 9.995 {
        return format!("{seconds:.0} s");
    }
    let text = format!("{seconds:.2}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::Window;

    #[test]
    fn a_deadline_is_told_in_seconds() {
        let refusal = |needed, left| PlanRefusal::DeadlineUnreachable {
            needed: Duration::from_nanos(needed),
            left: Duration::from_millis(left),
            member: Some("budget.deadline_ms"),
        };
        let check = |needed, left, words: &str| {
            let said = refusal(needed, left).to_string();
            assert!(said.contains(words), "{said}");
        };
        check(1_240_300_127, 1_000, "takes about 1.24 s, the deadline is in 1 s: ");
        check(63_418_000_001, 50, "takes about 63 s, the deadline is in 0.05 s: ");
        check(9_999_999_999, 2_500, "takes about 10 s, the deadline is in 2.5 s: ");
        check(63_418_000_001, 1, "takes about 63 s, the deadline is in 1 ms: raise budget.deadline_ms");
    }

    #[test]
    fn a_limit_that_is_too_small_comes_with_what_to_ask_for_instead() {
        let check_at = |needed, left, (resets_at, exceeds_limit), words: &str| {
            let refusal = PlanRefusal::InsufficientQuota {
                limit: Box::new(Limit::of_key(Amount::unit(needed), Window::Total)),
                needed,
                left,
                resets_at,
                exceeds_limit,
                member: "max_tokens",
            };
            let said = refusal.to_string();
            assert!(said.contains(words), "{said}");
        };
        let check = |needed, left, words: &str| check_at(needed, left, (None, false), words);
        let tokens = |tokens| Amount::Thinking(Tokens(tokens));
        check(tokens(20), tokens(0), "needs 20 thinking tokens, and key thinking total has 0 ");
        check(tokens(20), tokens(0), ": state a smaller thinking budget or none, or have it raised");
        let money = |nanos| Amount::Money(Money(nanos));
        check(money(2), money(1), ": ask for less, as with a lower max_tokens, or have it raised");
        let resets = Some(Timestamp(7));
        check_at(money(2), money(1), (resets, false), "max_tokens, wait until it resets, or have it raised");
        check_at(money(2), money(1), (resets, true), "have it raised: this is more than the whole limit");
    }

    #[test]
    fn a_member_that_nobody_takes_comes_with_who_would_and_with_the_setting() {
        let check = |by: RejectedBy, others: &[&str], words: &str| {
            let refusal =
                PlanRefusal::MemberRejected { member: "min_p".into(), by, model: None, others: vec![] };
            let others: Vec<Arc<str>> = others.iter().map(|&name| name.into()).collect();
            let refusal = refusal.for_caller(Some(&"gpt".into()), |_| "model").with_alternatives(&others);
            assert_eq!((refusal.code(), refusal.member()), ("unknown_parameter", Some("min_p")));
            assert_eq!(refusal.to_string(), words);
        };
        let words = "min_p is not known to gpt: leave min_p out, or ask qwen, which takes it; \
                     unknown_members = \"pass\" on its [[backend]] has it passed on";
        check(RejectedBy::Backend, &["qwen"], words);
        check(RejectedBy::Engine, &[], "min_p is not known to gpt: leave min_p out");
    }

    #[test]
    fn the_one_model_that_was_asked_for_and_the_member_that_asks_are_named() {
        let check = |model: Option<&str>, member: &'static str, words: &str| {
            let refusal = PlanRefusal::NotCapable { what: "schema" };
            let named = refusal.for_caller(model.map(Arc::from).as_ref(), |_| member);
            assert_eq!((named.code(), named.member()), ("model_not_capable", Some(member)));
            assert_eq!(named.to_string(), words);
        };
        let words = "plain cannot do schema, which text.format asks for: leave text.format out or ask for another model; \
                     capabilities = [\"schema\"] on its [[backend.model]] says that it can";
        check(Some("plain"), "text.format", words);
        let words = "no model here can do schema: ask for another model; \
                     capabilities = [\"schema\"] on its [[backend.model]] says that it can";
        check(None, "model", words);
        assert_eq!(PlanRefusal::Unhealthy.for_caller(None, |_| "tools"), PlanRefusal::Unhealthy);
    }
}
