//! One integration binary, a module per feature.

mod budgets;
mod hanging_up;
mod harness;
mod layers;
mod money;
mod operating;
mod surface;
