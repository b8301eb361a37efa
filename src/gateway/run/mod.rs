//! A reserved request under way: attempts at its offers, until there is an answer or none can be had.

pub(super) mod attempts;
pub(super) mod auxiliary_call;
pub(super) mod buffered_attempt;
pub(super) mod cascade;
pub(super) mod continuation;
pub(super) mod growth;
pub(super) mod hedge;
pub(super) mod join_choices;
pub(super) mod judge;
pub(super) mod no_answer;
pub(super) mod probe;
pub(super) mod retry_without_tools;
pub(super) mod running_request;
pub(super) mod selection;
pub(super) mod trial;
pub(super) mod voting;
