//! `[[backend]]`: what serves the models, and what is known of each.
//!
//! From the bottom: kinds and hosts; how a backend is reached (`base_url`, `deployment`, `defaults`); what a model is told of
//! itself and of its source (`model_config`, `model_source`); the keys about one concept each (`ability`, `curve`, `tariff`,
//! `effort_scale`, `hand_off`, `dialect`, `provider`, `non_thinking`); a model by its name alone (`default_model`) and by what a
//! section says (`model_keys`); the catalogue's files (`known_models`); the models of one backend (`model`), and all
//! (`backends`).

mod ability;
mod backends;
mod base_url;
mod caller_headers;
mod capabilities;
mod catalog_files;
mod coherence;
mod conversation;
mod curve;
mod declared_model;
mod default_model;
mod defaults;
mod deployment;
mod dialect;
mod effort_scale;
mod embedded;
mod hand_off;
mod host;
mod images;
mod kind;
mod known_models;
mod loading;
mod members;
mod model;
mod model_config;
mod model_keys;
mod model_source;
mod model_warnings;
mod non_thinking;
mod openrouter;
mod prompt_cache;
mod provider;
mod tariff;
mod upstream_names;

pub use deployment::Deployment;
pub use model_config::{BackendConfig, ModelConfig};
pub use model_source::{LocalModelSettings, ModelSource};
pub use openrouter::{OpenRouterPrices, is_other_catalogue};
pub use provider::thinking_word;

pub(super) use backends::{ModelMap, backends};
pub(super) use catalog_files::{CatalogSources, catalog_sources, first_errors};
pub(super) use kind::kind_words;
pub(super) use known_models::KnownModels;
