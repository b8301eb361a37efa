//! One integration binary, a module per feature.

mod budgets;
mod harness;
mod hanging_up;
mod layers;
mod money;
mod surface;
