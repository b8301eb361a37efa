//! `AnsweringModel`: which model answers a request, for callers who stream and are told before the answer ends.

use std::sync::{Arc, Mutex, PoisonError};

/// The model that answers: the one that was planned, until another is asked in its place. By the first event of an answer it is known.
#[derive(Debug, Clone)]
pub struct AnsweringModel(Arc<Mutex<Arc<str>>>);

impl AnsweringModel {
    /// The one that was planned.
    pub fn planned(name: &Arc<str>) -> AnsweringModel {
        AnsweringModel(Arc::new(Mutex::new(name.clone())))
    }

    /// Its name, as far as that is known by now.
    pub fn name(&self) -> Arc<str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It is this one from here on.
    pub(crate) fn set(&self, name: &Arc<str>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_ask_are_told_the_model_that_took_over() {
        let answering = AnsweringModel::planned(&"m".into());
        let seen = answering.clone();
        answering.set(&"n".into());
        assert_eq!(&*seen.name(), "n");
    }
}
