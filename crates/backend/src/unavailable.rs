//! A model that could not be loaded, in its place: it refuses every call, and says why it is not there.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use stint_prompt as prompt;
use stint_types::catalog::ModelConditions;
use stint_types::chat::Request;
use stint_types::units::Tokens;

use super::{Backend, BackendCall, Failure, Fault, Generation, TargetOutage};

/// Nobody to ask.
#[derive(Debug)]
pub struct UnavailableBackend {
    reason: Arc<str>,
}

impl UnavailableBackend {
    /// For this reason.
    pub fn new(reason: impl Into<Arc<str>>) -> UnavailableBackend {
        UnavailableBackend { reason: reason.into() }
    }
}

impl Backend for UnavailableBackend {
    fn generate(&self, _: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        let failure = Failure::new(Fault::Backend, &*self.reason).unsent().retry_elsewhere();
        ready(Err(failure)).boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::token_bound::prompt_tokens(request, &self.images())
    }

    fn conditions(&self) -> ModelConditions {
        ModelConditions { healthy: false, ..ModelConditions::default() }
    }

    fn outage(&self) -> Option<TargetOutage> {
        Some(TargetOutage { reason: self.reason.clone(), retry_in: None })
    }
}
