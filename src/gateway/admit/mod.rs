//! Admission: plans a request and reserves its worst case. The reserved request goes to `run`.

mod admission;
mod answer_reserve;
mod approximations;
mod gather_inputs;
mod money_wait;
mod plan_inputs;
mod planned_work;
mod prepare_step;
mod quote;
mod quote_evidence;
mod quote_step;
mod reserve;
mod reserve_step;
mod routing_rules;
mod step_context;
mod task_worth;

pub use quote::{QuoteDetails, RequestQuote};
pub use quote_evidence::{LevelSource, ModelLevels, QuoteEvidence};

pub(super) use admission::{Admission, ReservedRequest};
pub(super) use money_wait::held_shortfall;
pub(super) use planned_work::planned_work;
pub(super) use prepare_step::prepare_step;
pub(super) use quote::quote_single;
pub(super) use quote_step::quote_step;
pub(super) use reserve::{observe_plan, reserve_single};
