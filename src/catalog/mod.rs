//! What is known about models, and the plain data that one step of a request hands to the next.
//!
//! Only data with invariants; what is done with it stands above.

mod allowance;
mod calibration;
mod capability;
mod decision;
mod demand;
mod length;
mod market;
mod members;
mod model;
mod odds;
mod offer;
mod opinion;
mod outcome;
mod prior;
mod rollout;
mod tariff;
mod turns;
mod usage;
mod vote;

pub use allowance::{Allowance, RemainingQuota, TightestLimits};
pub use calibration::{Calibration, Feature, Features, ModelCalibration, TrainingDomain};
pub use capability::{Capability, EnforcementClass, Needs, Service};
pub use decision::{Candidate, Decision, Stakes};
pub use demand::{Demand, MeasuredLengths, ModelDemand, TaskClass};
pub use length::{LogNormal, TruncatedMoments};
pub use market::{Market, ModelConditions};
pub use members::{MemberAction, MemberRules, UnknownMembers};
pub use model::{Catalog, EFFORT_WORDS, EffortLevel, GoesOn, HandOff, Model, Route, Specialty, effort_rank};
pub use odds::{VoteForecast, VoteOdds};
pub use offer::{Contender, ContinuationLimit, Offer, Plan, WorstCase};
pub use opinion::{Checker, DifficultyProbe, VerifierSettings};
pub use outcome::{ChoiceOutcome, DecisionOutcome, Verdict, VerdictSource};
pub use prior::{AbilityCurve, Blend, Gram, Loadings, Prior, SURFACE_FEATURES, TRAITS};
pub use rollout::{RolloutMode, TrafficSplit};
pub use tariff::{BilledCall, Prices, Rates, Tariff};
pub use turns::TurnRule;
pub use usage::{ChoiceUsage, LimitedBy, SolutionStopReason, ThinkingStopReason};
pub use vote::{AnswerComparison, Vote, VoteAssumptions, VotePolicy};
