//! What outcomes teach: corrections of the prior's predictions, and the price of money that holds a budget's pace.
//!
//! Pure. [`Book::observe`] takes in one outcome, [`Book::adjust`] turns a prior demand into what is believed now,
//! with the spread of that belief; a draw from it belongs to `plan`. What was learned is plain data ([`State`]) that
//! survives restarts and adds up over replicas. [`Pace`] holds an account to its budget, and [`Aim`] a route to a
//! stated success. Neither reads a clock: the time is an argument.
//!
//! Settings, by the names that they should have in the configuration's `[learn]`: `forget`, `prior_weight`, `spread`,
//! `ample`, `alarm`, `alarm_slack` and `alarm_kept` of [`Settings`]; `step`, `average` and `price_max` of
//! [`PaceSettings`]. The floor of exploration belongs to a route. Replicas must agree on `forget`.

mod aim;
mod belief;
mod book;
mod context;
mod lengths;
mod lesson;
mod matrix;
mod memory;
mod model;
mod pace;
pub mod replay;
mod settings;
mod slopes;
mod state;
#[cfg(test)]
mod tests;

pub use aim::Aim;
pub use book::Book;
pub use context::Context;
pub use lesson::Lesson;
pub use model::Mark;
pub use pace::{Course, Pace, PaceSettings};
pub use settings::Settings;
pub use state::{ModelState, State, StateError};
