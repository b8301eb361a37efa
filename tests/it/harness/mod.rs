//! What the tests share: a gateway in this process over scripted models, and callers for it.

mod answer;
mod world;

pub(crate) use answer::Answer;
pub(crate) use world::{World, model, tenant};
