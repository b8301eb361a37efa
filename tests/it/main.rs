//! One integration binary, a module per feature.

mod layers;
