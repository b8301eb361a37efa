//! The engine in this process. A build without the feature `local` has its settings alone.

#[cfg(feature = "local")]
mod backend;
#[cfg(feature = "local")]
mod grammar;
#[cfg(feature = "local")]
mod penalties;
mod settings;
#[cfg(feature = "local")]
mod spelled_thoughts;
#[cfg(feature = "local")]
mod steps;
#[cfg(feature = "local")]
mod thought_tags;

#[cfg(feature = "local")]
pub use backend::LocalBackend;
pub use settings::{DOCUMENTED_MEMBERS, LocalModelLimits, Settings};
