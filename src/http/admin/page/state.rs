//! What the page needs beside what the admin API has.

use std::fmt;
use std::sync::Arc;

use axum::Router;

use stint_types::metrics::Metrics;

use super::history::PageHistory;

/// What the page shows, and by what its playground is answered.
pub struct PageState {
    /// The series that it reads.
    pub metrics: Arc<Metrics>,
    /// The last minutes.
    pub history: PageHistory,
    /// The API, for requests of the playground.
    pub api: Router,
}

impl fmt::Debug for PageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageState").field("history", &self.history).finish_non_exhaustive()
    }
}
