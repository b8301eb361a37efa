//! `stint keys`: to manage keys from a shell, whether or not the server runs.

mod arguments;
mod limit;
mod limit_changes;
mod reach;
mod secret;
mod table;
mod verbs;

pub(super) use arguments::KeysCommand;
pub(super) use verbs::run;
