//! A model that could not be loaded, in its place: it refuses every call, and says why it is not there.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::catalog::Conditions;
use crate::chat::Request;
use crate::prompt;
use crate::units::Tokens;

use super::{Backend, Call, Failure, Fault, Generation};

/// Nobody to ask.
#[derive(Debug)]
pub struct Unavailable {
    reason: Arc<str>,
}

impl Unavailable {
    /// For this reason.
    pub fn new(reason: impl Into<Arc<str>>) -> Unavailable {
        Unavailable { reason: reason.into() }
    }
}

impl Backend for Unavailable {
    fn generate(&self, _: Call) -> BoxFuture<'_, Result<Generation, Failure>> {
        let failure = Failure::new(Fault::Backend, &*self.reason).unsent().elsewhere();
        ready(Err(failure)).boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::bound::prompt_tokens(request)
    }

    fn conditions(&self) -> Conditions {
        Conditions { healthy: false, ..Conditions::default() }
    }

    fn unavailable(&self) -> Option<&str> {
        Some(&self.reason)
    }
}
