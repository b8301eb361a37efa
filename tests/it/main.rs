//! One integration binary, a module per feature.

mod budgets;
mod hanging_up;
mod harness;
mod layers;
mod llamacpp;
mod money;
mod operating;
mod sdk;
mod surface;
