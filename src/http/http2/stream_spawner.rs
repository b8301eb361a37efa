//! Runs the requests of one HTTP/2 connection beside each other, as tracked tasks.

use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;

use stint_types::tasks::Tasks;

use super::reset_budget::ResetBudget;
use super::stream::{StreamEnd, watch};

/// What hyper hands each request of a connection to.
#[derive(Debug, Clone)]
pub(super) struct StreamSpawner {
    pub(super) tasks: Tasks,
    pub(super) resets: Arc<ResetBudget>,
    /// How long a caller may take nothing of an answer.
    pub(super) patience: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamSpawner {
    fn execute(&self, request: F) {
        if self.resets.is_spent() {
            // Dropping a request tells its caller that it is cancelled.
            return;
        }
        let (resets, patience) = (self.resets.clone(), self.patience);
        self.tasks.spawn(async move {
            match watch(request, patience).await {
                StreamEnd::Answered => resets.answered(),
                StreamEnd::TakenBack => resets.taken_back(),
                StreamEnd::Stalled => {}
            }
        });
    }
}
