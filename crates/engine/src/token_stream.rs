//! The tokens of one generation, as its caller reads them.

use tokio::sync::{mpsc, watch};

use super::error::EngineError;
use super::messages::GenerationEvent;

/// The tokens of one generation, as they come. Dropping it ends the generation and frees its cache.
#[derive(Debug)]
pub struct TokenStream {
    events: mpsc::Receiver<GenerationEvent>,
    /// Why the worker ended or was given up: a worker that hangs sends nothing any more.
    worker_end: watch::Receiver<Option<EngineError>>,
    is_over: bool,
}

impl TokenStream {
    pub(crate) fn new(
        events: mpsc::Receiver<GenerationEvent>,
        worker_end: watch::Receiver<Option<EngineError>>,
    ) -> Self {
        Self { events, worker_end, is_over: false }
    }

    /// The next event; `None` once the generation has ended.
    pub async fn next(&mut self) -> Option<GenerationEvent> {
        if self.is_over {
            return None;
        }
        let event = tokio::select! {
            biased;
            event = self.events.recv() => event,
            () = ended(&mut self.worker_end) => None,
        };
        // A stream that breaks off without a last word would look like one that is still going.
        let event = event.unwrap_or_else(|| GenerationEvent::Failed(self.reason()));
        self.is_over = matches!(event, GenerationEvent::Done(_) | GenerationEvent::Failed(_));
        Some(event)
    }

    /// The same, for callers outside of any async runtime.
    pub fn blocking_next(&mut self) -> Option<GenerationEvent> {
        pollster::block_on(self.next())
    }

    fn reason(&self) -> EngineError {
        self.worker_end.borrow().clone().unwrap_or(EngineError::Stopped)
    }
}

/// Until the worker has ended or was given up.
async fn ended(worker_end: &mut watch::Receiver<Option<EngineError>>) {
    // An error says that its status is gone, and the worker with it.
    let _ = worker_end.wait_for(Option::is_some).await;
}
