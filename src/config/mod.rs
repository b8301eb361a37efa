//! Files and environment, read into each module's settings.
//!
//! Nothing else reads either. A configuration is taken whole or not at all: every mistake in it is reported
//! at once, each with its line and its remedy. Secrets come from the environment or from files of their own,
//! never from the configuration's text. Loading again is how a reload begins.

mod account;
mod admin;
mod agents;
mod alerts;
mod backend;
mod effective;
mod efforts;
mod engine;
mod guardrail;
mod idempotency;
mod issuer;
mod key;
mod learn;
mod load;
mod misspelling;
mod reader;
mod resilience;
mod responses;
mod route;
mod schema;
mod server;
mod settings;
mod storage;
#[cfg(test)]
mod tests;
mod tls;
mod traces;

pub use backend::{
    BackendConfig, Deployment, LocalModelSettings, ModelConfig, ModelSource, OpenRouterPrices,
    is_other_catalogue, thinking_word,
};
pub use effective::{EffectiveValue, Origin, effective};
pub use engine::{EngineSettings, KvCacheFormat};
pub use load::{environment, keys, load, load_again, load_offline, load_sections, load_to_serve};
pub use reader::{ConfigErrors, Diagnostic};
pub use schema::{DefaultDescription, SettingDescription, describe, json_schema};
pub use server::{LogFormat, LoggingSettings};
pub use settings::Settings;
