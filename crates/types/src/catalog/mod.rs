//! What is known about models, and the plain data that one step of a request hands to the next.
//!
//! Only data with invariants; what is done with it stands above. `models` and `routes` are what the operator declared, and
//! `lookup` finds them by name. `decision` is what is weighed, chosen and observed for one request; it names `models`.
//! `prior` is what was learned before a gateway runs; it names `decision`.

mod decision;
mod lookup;
mod models;
mod prior;
mod routes;

pub use decision::{
    Allowance, Candidate, ChoiceOutcome, ChoiceUsage, Contender, ContinuationLimit, Decision,
    DecisionOutcome, Demand, LengthTails, LimitedBy, LogNormal, Market, MeasuredLengths, ModelConditions,
    ModelDemand, Offer, Plan, PromptCacheUsage, PromptText, RemainingQuota, RequestTraits,
    SolutionStopReason, Stakes, TRAIT_COUNTS, TRAIT_WORD_PLACES, TRAIT_WORDS_MAX, TaskClass,
    ThinkingStopReason, TightestLimits, TruncatedMoments, Verdict, VerdictSource, WorstCase, WritingKind,
};
pub use lookup::Catalog;
pub use models::{
    AbilityGuess, BilledCall, Capability, ConversationRules, EFFORT_SHARES, EFFORT_WORDS, EffortLevel,
    EnforcementClass, GoesOn, HandOff, ImageDetail, ImageRule, ImageSize, ImageTokens, MemberAction,
    MemberRules, Model, Needs, OffPeak, Prices, Rates, Service, Specialty, Tariff, UnknownMembers,
    effort_rank,
};
pub use prior::{
    AbilityCurve, AbilityLevel, Blend, Calibration, ClassLevels, CurvePoint, CurveRecord, Feature, Features,
    Gram, GramPair, LENGTH_FEATURES, LengthGram, LengthPrior, LengthWeights, Loadings, MeasuredCurve,
    ModelAbility, ModelCalibration, Prior, SURFACE_FEATURES, TEXT_KINDS, TRAITS, TextPriors, TrainingDomain,
};
pub use routes::{
    AnswerComparison, Canary, Checker, DifficultyProbe, Recipe, RolloutMode, Route, TrafficSplit,
    TrialBounds, TurnRule, VerifierSettings, Vote, VoteAssumptions, VoteForecast, VoteOdds, VotePolicy,
};
