//! `stint keys`: to manage keys from a shell, whether or not the server runs.

mod limit;
mod reach;
mod secret;
mod table;
mod verbs;

pub(super) use verbs::{Keys, run};
