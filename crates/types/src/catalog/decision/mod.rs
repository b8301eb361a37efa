//! The data that one stage of a request passes to the next: from the demand through the offers to the outcome.

mod allowance;
mod demand;
mod length;
mod market;
mod offer;
mod outcome;
mod prompt_text;
mod record;
mod request_traits;
mod usage;

pub use allowance::{Allowance, RemainingQuota, TightestLimits};
pub use demand::{Demand, LengthTails, MeasuredLengths, ModelDemand, TaskClass};
pub use length::{LogNormal, TruncatedMoments};
pub use market::{Market, ModelConditions};
pub use offer::{Contender, ContinuationLimit, Offer, Plan, WorstCase};
pub use outcome::{ChoiceOutcome, DecisionOutcome, Verdict, VerdictSource};
pub use prompt_text::{PromptText, WritingKind};
pub use record::{Candidate, Decision, Stakes};
pub use request_traits::{RequestTraits, TRAIT_COUNTS, TRAIT_WORD_PLACES, TRAIT_WORDS_MAX};
pub use usage::{ChoiceUsage, LimitedBy, PromptCacheUsage, SolutionStopReason, ThinkingStopReason};
