//! What the tests share: a gateway in this process over scripted models, the real binary, and callers.

mod answer;
mod process;
mod world;

pub(crate) use answer::Answer;
pub(crate) use process::{Folder, Process};
pub(crate) use world::{World, model, tenant};
