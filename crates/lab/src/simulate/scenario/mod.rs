//! A scenario: a world in words, read from TOML.

mod check;

use std::sync::Arc;

use serde::Deserialize;

use stint_types::catalog::{EnforcementClass, TaskClass};
use stint_types::tenant::TenantLimit;
use stint_types::units::{Amount, Count, Money, Price, Tokens, Window};

pub use check::ScenarioError;

/// Everything about a world but its luck, which comes from the seed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What reports call it.
    pub name: String,
    /// How many requests arrive.
    pub requests: u64,
    /// What all luck follows from.
    #[serde(default)]
    pub seed: u64,
    /// The day on which it begins, at midnight in UTC: windows of limits follow the calendar.
    pub begins: String,
    /// When requests arrive.
    pub arrivals: ArrivalPattern,
    /// What an answer is worth.
    #[serde(default)]
    pub route: ScenarioRoute,
    /// How far the estimates are from the truth.
    #[serde(default)]
    pub estimate: EstimateNoise,
    /// What is learned of answers.
    #[serde(default)]
    pub feedback: Feedback,
    /// What the policies that are compared with use.
    #[serde(default)]
    pub fixed: BaselineSettings,
    /// Kinds of work.
    #[serde(rename = "class")]
    pub classes: Vec<WorkClass>,
    /// Who asks.
    #[serde(rename = "tenant", default)]
    pub tenants: Vec<ScenarioTenant>,
    /// Who answers.
    #[serde(rename = "model", default)]
    pub models: Vec<ScenarioModel>,
    /// What changes on the way.
    #[serde(rename = "event", default)]
    pub events: Vec<ScenarioEvent>,
}

/// When requests arrive: a Poisson stream whose rate follows the day and has bursts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalPattern {
    /// Requests a second, over the day.
    pub per_second: f64,
    /// By what share the rate rises by day and falls by night.
    #[serde(default)]
    pub wave: f64,
    /// Minutes from the beginning of one burst to the next; 0 for none.
    #[serde(default)]
    pub burst_every: f64,
    /// Minutes that a burst lasts.
    #[serde(default)]
    pub burst_length: f64,
    /// By what the rate is multiplied in a burst.
    #[serde(default = "one")]
    pub burst: f64,
}

/// What success and time are worth.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioRoute {
    /// A right answer, in dollars.
    pub worth: Money,
    /// A second of waiting, in dollars.
    pub second: Money,
    /// The share of requests whose model is drawn evenly, the others being drawn from what is believed; 0 draws nothing.
    pub explore: f64,
}

/// How far what is predicted is from the truth.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EstimateNoise {
    /// The standard deviation of a predicted chance about the truth, in logits, independent for every request.
    pub success: f64,
    /// The same, drawn once for every model and class: what can be learned.
    pub success_bias: f64,
    /// The standard deviation of a predicted length about the truth, in ln, independent for every request.
    pub length: f64,
    /// The same, drawn once for every model and class.
    pub length_bias: f64,
}

/// What is learned of answers.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Feedback {
    /// Of which share of answers somebody says whether they are right.
    pub share: f64,
    /// How many seconds after the answer.
    pub delay: f64,
    /// How often that is a mistake.
    pub wrong: f64,
}

/// What the policies use that stint is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BaselineSettings {
    /// The thinking budget of `fixed`.
    pub thinking: Tokens,
}

/// A kind of work.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkClass {
    /// Which.
    pub task: TaskClass,
    /// Its weight among the requests.
    pub share: f64,
    /// The mean difficulty, in logits: a model with this ability is right half the time.
    pub difficulty: f64,
    /// The standard deviation of the difficulty.
    #[serde(default = "one")]
    pub spread: f64,
    /// How many logits of ability an answer without a thought lacks.
    pub needs: f64,
    /// By what a model's usual thinking length is multiplied.
    #[serde(default = "one")]
    pub length: f64,
    /// The chance that a guess is right.
    #[serde(default)]
    pub guess: f64,
    /// The median of the prompt's tokens.
    pub prompt: f64,
    /// The median of the answer's tokens.
    pub solution: f64,
}

/// Who asks: an account and its limits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioTenant {
    /// The account.
    pub name: Arc<str>,
    /// Its weight among the requests.
    pub share: f64,
    /// What it may spend.
    #[serde(default)]
    pub limits: Vec<ScenarioLimit>,
}

/// A limit, in the words of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioLimit {
    /// The most money.
    money: Option<Money>,
    /// The most thinking tokens.
    thinking: Option<Tokens>,
    /// The most requests.
    requests: Option<Count>,
    /// Over what time.
    per: Window,
}

/// A model and what serves it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioModel {
    /// What it is called.
    pub name: Arc<str>,
    /// Dollars for a million tokens read; with a configuration, its own price stands.
    #[serde(default)]
    pub price_input: Price,
    /// Dollars for a million tokens written.
    #[serde(default)]
    pub price_output: Price,
    /// How its thinking is held.
    #[serde(default = "continues")]
    pub class: EnforcementClass,
    /// The most that it can think.
    #[serde(default = "long")]
    pub thinking_max: Tokens,
    /// How able it is, in logits.
    pub ability: f64,
    /// By how much it is better or worse at single classes: the standard deviation.
    #[serde(default = "some")]
    pub uneven: f64,
    /// The median of its thinking length on work of difficulty 0.
    pub thinking: f64,
    /// The standard deviation of ln of that length.
    #[serde(default = "some_more")]
    pub sigma: f64,
    /// How late its chance rises with a cut thought's share.
    #[serde(default = "bent")]
    pub bend: f64,
    /// How early it has risen.
    #[serde(default = "one")]
    pub saturation: f64,
    /// How many requests it serves at once.
    pub slots: u32,
    /// How many may wait.
    #[serde(default = "waiting")]
    pub queue: u32,
    /// Milliseconds to write a token.
    pub token_ms: f64,
    /// Milliseconds to read one.
    #[serde(default)]
    pub prefill_ms: f64,
    /// By how many logits its ability changes from the beginning to the end, evenly.
    #[serde(default)]
    pub drift: f64,
}

/// What changes on the way.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioEvent {
    /// When, as a share of the run.
    pub at: f64,
    /// For how long, as a share of the run; to its end where nothing is said.
    #[serde(rename = "for")]
    pub lasts: Option<f64>,
    /// Which model it is about.
    pub model: Arc<str>,
    /// True if it answers nobody.
    #[serde(default)]
    pub outage: bool,
    /// By what its prices are multiplied.
    #[serde(default = "one")]
    pub price: f64,
    /// How many logits its ability gains, or loses; the gateway does not know.
    #[serde(default)]
    pub ability: f64,
    /// By what the time for each token is multiplied.
    #[serde(default = "one")]
    pub slower: f64,
}

impl ScenarioModel {
    /// One of middling ability, for a model that nothing is known of.
    pub(super) fn default_model() -> ScenarioModel {
        ScenarioModel {
            name: "usual".into(),
            price_input: Price::FREE,
            price_output: Price::FREE,
            class: continues(),
            thinking_max: long(),
            ability: 0.5,
            uneven: some(),
            thinking: 600.0,
            sigma: some_more(),
            bend: bent(),
            saturation: one(),
            slots: 32,
            queue: waiting(),
            token_ms: 10.0,
            prefill_ms: 0.2,
            drift: 0.0,
        }
    }
}

impl ScenarioLimit {
    /// As the ledger takes them.
    pub(super) fn limits(self) -> impl Iterator<Item = TenantLimit> {
        let amounts = [
            self.money.map(Amount::Money),
            self.thinking.map(Amount::Thinking),
            self.requests.map(Amount::Requests),
        ];
        amounts.into_iter().flatten().map(move |max| TenantLimit::new(self.per, max))
    }
}

impl Default for ScenarioRoute {
    fn default() -> ScenarioRoute {
        let usual = stint_types::catalog::Route::with_defaults("auto");
        ScenarioRoute { worth: usual.worth, second: usual.cost_per_second, explore: usual.explore.get() }
    }
}

impl Default for EstimateNoise {
    fn default() -> EstimateNoise {
        EstimateNoise { success: 0.5, success_bias: 0.5, length: 0.3, length_bias: 0.3 }
    }
}

impl Default for Feedback {
    fn default() -> Feedback {
        Feedback { share: 0.3, delay: 60.0, wrong: 0.02 }
    }
}

impl Default for BaselineSettings {
    fn default() -> BaselineSettings {
        BaselineSettings { thinking: Tokens(1024) }
    }
}

fn one() -> f64 {
    1.0
}

fn some() -> f64 {
    0.4
}

fn some_more() -> f64 {
    0.7
}

fn bent() -> f64 {
    1.5
}

fn waiting() -> u32 {
    200
}

fn long() -> Tokens {
    Tokens(16_384)
}

fn continues() -> EnforcementClass {
    EnforcementClass::Continue
}
