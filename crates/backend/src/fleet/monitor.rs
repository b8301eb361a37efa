//! Monitors the calls to a target: passes each call on, and reports to the fleet how long its first token took and how it
//! ended. A permit contains such a monitored backend.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::Instant;

use crate::output_stats::OutputMeasurement;
use crate::{
    Backend, BackendCall, BehaviorObservation, EmbeddingResult, Failure, Fault, Generation, GenerationPart,
    OutputStats, Piece, Retry, TargetBehavior,
};
use stint_types::catalog::{ImageTokens, ModelConditions};
use stint_types::chat::{EmbeddingRequest, Request};
use stint_types::units::Tokens;

use super::Fleet;
use super::permit::ProbeToken;
use super::waits::FirstTokenWait;

/// Passes every call on to its target, and reports to the fleet what came of it.
pub(super) struct MonitoredBackend {
    fleet: Arc<Fleet>,
    target_index: usize,
    conversation: u64,
    probe: Arc<ProbeToken>,
}

impl MonitoredBackend {
    pub(super) fn new(
        fleet: Arc<Fleet>,
        place: usize,
        conversation: u64,
        probe: Arc<ProbeToken>,
    ) -> MonitoredBackend {
        MonitoredBackend { fleet, target_index: place, conversation, probe }
    }

    /// Begins to monitor a call with a prompt of so many tokens. `hidden` is true if the time to the first token shows
    /// nothing about the target.
    fn monitor(&self, tokens: Tokens, hidden: bool) -> CallMonitor {
        let (tokens, in_flight) = self.fleet.record_dispatch(self.target_index, self.conversation, tokens);
        CallMonitor {
            fleet: self.fleet.clone(),
            target_index: self.target_index,
            probe: self.probe.clone(),
            began: Instant::now(),
            lag_at_start: self.fleet.lag().total(),
            tokens,
            in_flight,
            hidden,
            stage: CallStage::Waiting,
            output: OutputMeasurement::new(),
        }
    }

    /// How long the prompt of a call is, as far as that counts for the time to its first token.
    fn prompt_length(&self, call: &BackendCall) -> Tokens {
        let thought = match &call.part {
            GenerationPart::Solution { thought, answer, .. } => thought.text.len() + answer.len(),
            GenerationPart::Whole { .. } | GenerationPart::Thought { .. } | GenerationPart::Total { .. } => 0,
        };
        self.prompt_tokens(&call.request) + Tokens(u64::try_from(thought).unwrap_or(u64::MAX))
    }
}

impl Backend for MonitoredBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        let monitor = self.monitor(self.prompt_length(&call), call.hides_thinking());
        async move {
            let generation = self.fleet.backend(self.target_index).generate(call).await;
            self.fleet.collect_client_counts(self.target_index);
            monitor.wrap(generation)
        }
        .boxed()
    }

    fn embed(&self, ask: Arc<EmbeddingRequest>) -> BoxFuture<'_, Result<EmbeddingResult, Failure>> {
        // How long vectors take depends on their texts alone.
        let mut monitor = self.monitor(Tokens::ZERO, true);
        async move {
            let embedded = self.fleet.backend(self.target_index).embed(ask).await;
            self.fleet.collect_client_counts(self.target_index);
            match &embedded {
                Ok(_) => monitor.complete(),
                Err(failure) => monitor.fail(failure),
            }
            embedded
        }
        .boxed()
    }

    fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        self.fleet.backend(self.target_index).thinking_ruled_out(request)
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        self.fleet.backend(self.target_index).prompt_tokens(request)
    }

    fn images(&self) -> ImageTokens {
        self.fleet.backend(self.target_index).images()
    }

    fn counts_exactly(&self) -> bool {
        self.fleet.backend(self.target_index).counts_exactly()
    }

    fn conditions(&self) -> ModelConditions {
        self.fleet.backend(self.target_index).conditions()
    }

    fn behavior(&self) -> TargetBehavior {
        self.fleet.behavior(self.target_index, self.probe.flow())
    }

    fn observe(&self, observation: BehaviorObservation) {
        self.fleet.observe(self.target_index, self.probe.flow(), observation);
    }

    fn record_prompt_tokens(&self, reported: Tokens, most: Tokens) {
        self.fleet.output_tracker(self.target_index).record_prompt(reported, most);
    }

    fn take_retry(&self) -> bool {
        self.fleet.take_retry(self.target_index)
    }

    fn output_stats(&self) -> OutputStats {
        self.fleet.output_tracker(self.target_index).stats()
    }
}

impl fmt::Debug for MonitoredBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MonitoredBackend({})", self.fleet.name(self.target_index))
    }
}

/// One call that is monitored.
struct CallMonitor {
    fleet: Arc<Fleet>,
    target_index: usize,
    probe: Arc<ProbeToken>,
    began: Instant,
    /// How much time this process had lost by then.
    lag_at_start: Duration,
    /// How many tokens of its prompt no cache has.
    tokens: Tokens,
    /// How many calls were under way when it began, itself included.
    in_flight: u32,
    /// True if the time to the first token shows nothing about the target.
    hidden: bool,
    stage: CallStage,
    output: OutputMeasurement,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStage {
    Waiting,
    Streaming,
    Finished,
}

impl CallMonitor {
    /// Monitors what comes of a call.
    fn wrap(mut self, generation: Result<Generation, Failure>) -> Result<Generation, Failure> {
        let generation = generation.inspect_err(|failure| self.fail(failure))?;
        // Boxed: the stream moves it with every piece.
        let monitored = (generation, Box::new(self));
        Ok(Box::pin(stream::unfold(monitored, |(mut generation, mut monitor)| async move {
            let piece = generation.next().await?;
            monitor.record(&piece);
            Some((piece, (generation, monitor)))
        })))
    }

    fn record(&mut self, piece: &Result<Piece, Failure>) {
        if let Ok(piece) = piece {
            self.output.record(piece, self.fleet.output_tracker(self.target_index));
        }
        match piece {
            Err(failure) => self.fail(failure),
            // Some upstreams begin with it, which shows what their cache had.
            Ok(Piece::Usage(usage)) if self.stage == CallStage::Waiting && usage.prompt > Tokens::ZERO => {
                self.tokens = usage.prompt.saturating_sub(usage.cache_read);
            }
            Ok(Piece::Usage(_)) => {}
            Ok(piece) => {
                if self.stage == CallStage::Waiting {
                    self.stage = CallStage::Streaming;
                    self.fleet.record_first_token(self.target_index, self.wait());
                }
                if matches!(piece, Piece::End(_)) {
                    self.succeed();
                }
            }
        }
    }

    /// The answer is there, all of it.
    fn complete(&mut self) {
        self.fleet.record_first_token(self.target_index, self.wait());
        self.succeed();
    }

    /// How long it has waited until now.
    fn wait(&self) -> FirstTokenWait {
        FirstTokenWait {
            tokens: self.tokens,
            began: self.began,
            in_flight: self.in_flight,
            waited: self.began.elapsed(),
            own_delay: self.fleet.lag().total().saturating_sub(self.lag_at_start),
            hidden: self.hidden,
        }
    }

    fn succeed(&mut self) {
        if self.stage != CallStage::Finished {
            self.stage = CallStage::Finished;
            self.fleet.record_success(self.target_index, &self.probe);
        }
    }

    fn fail(&mut self, failure: &Failure) {
        // An error in a request, or a lack of ours, shows nothing about the target, which other requests still need.
        let harms = failure.fault.is_of_target() && failure.retry > Retry::Never;
        if self.stage == CallStage::Waiting && failure.fault == Fault::Timeout {
            self.fleet.record_abandoned_wait(self.target_index, self.wait());
        }
        if self.stage != CallStage::Finished && harms {
            self.fleet.record_failure(self.target_index, &self.probe, failure);
        }
        self.stage = CallStage::Finished;
    }
}

impl Drop for CallMonitor {
    /// A caller that drops a call which has begun its answer had enough of it: the target works. A call that was silent until
    /// then would have taken so long at least; whether that is the target's fault depends on what is usual there.
    fn drop(&mut self) {
        match self.stage {
            CallStage::Streaming => self.succeed(),
            CallStage::Waiting => self.fleet.record_silence(self.target_index, &self.probe, self.wait()),
            CallStage::Finished => {}
        }
    }
}
