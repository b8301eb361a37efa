//! Elastic execution: think up to a budget, hand off, then solve within a separate budget.
//!
//! The phase machine decides and counts, and is pure; the driver moves pieces between a backend and the caller. `vote` decides
//! about several answers to one choice, and is pure too; `verify` calls the operator's verifier for them.

mod answer_phases;
mod choice;
mod continuation;
mod deadline;
mod driver;
mod event_channel;
mod event_pieces;
mod leak;
mod logprobs;
mod meter;
mod overrun_guard;
mod phases;
mod progress;
mod relay_turns;
mod reserved_output;
mod running_part;
mod sampling;
mod sampling_result;
mod stop_filter;
mod thought_tail;
mod tool_call_filter;
mod transcript;
mod usage_account;
pub mod verify;
pub mod vote;

pub use answer_phases::AnswerPhases;
pub use choice::{ChoiceError, ChoiceJob, IndexedEvent};
pub use continuation::{ContinuationNeed, ContinuationRequest, ContinuationSender, continuation_channel};
pub use driver::{ARRIVED_MAX, generate_choice};
pub use event_channel::{EventLimits, EventReceiver, EventSender, EventSize, event_channel};
pub use meter::Meter;
pub use phases::{ChoiceStateMachine, ChoiceStep, ChoiceTerms, WholeAnswer};
pub use progress::ChoiceProgress;
pub use reserved_output::ReservedOutput;
pub use sampling::{VotingConfig, collect_choice, sample_choices};
pub use sampling_result::{AnswerSample, SamplingResult, SamplingStopReason, answer_text};
pub use tool_call_filter::ToolCallFilter;
pub use transcript::{AnswerTranscript, TranscriptToolCall};
