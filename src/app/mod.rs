//! Wiring: settings in, a running server out; and the verbs of the command line.

mod alerts;
mod books;
mod build;
mod check;
mod command;
mod directory;
mod engines;
mod first_key;
mod fitting;
mod generation;
mod health;
mod log;
mod manage;
mod models;
mod plant;
mod probe;
mod quote;
mod refresh;
mod reload;
mod replay;
mod runtime_dir;
mod seal;
mod serve;
mod simulate;

pub use build::{App, BuildError, Running, build};
pub use command::{Command, main};
pub use models::ModelError;
pub use reload::{Origin, Reloads};
