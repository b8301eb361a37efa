//! The models that a route may name.

use std::sync::Arc;

use crate::config::backend::ModelMap;
use crate::config::reader::{Section, ValueError, suggest};

/// A model by the name that stands at a key; an unknown one is a mistake there.
pub(super) fn known_model(
    section: &Section<'_>,
    key: &'static str,
    name: &str,
    models: &ModelMap,
) -> Option<Arc<str>> {
    let known = models.get_key_value(name).map(|(known, _)| known.clone());
    if known.is_none() {
        section.reject_value(key, unknown_model(name, models));
    }
    known
}

/// What to say of a name that no model has.
pub(super) fn unknown_model(name: &str, models: &ModelMap) -> ValueError {
    let models = models.keys().map(AsRef::as_ref);
    let remedy = suggest(name, models, || "declare it under a [[backend]] first".to_owned());
    ValueError::new(format!("no model \"{name}\""), remedy)
}
