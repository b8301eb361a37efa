//! One question of a probe: sent to the upstream under one enforcement class, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::execute::{
    ChoiceError, ChoiceJob, ChoiceProgress, ChoiceTerms, EventLimits, IndexedEvent, WholeAnswer,
    event_channel, generate_choice,
};
use stint_backend::{Backend, Failure};
use stint_types::catalog::{ChoiceUsage, EnforcementClass, LimitedBy, Model};
use stint_types::chat::{CacheTtl, ChoiceEvent, CompletionKind, FinishReason, Message, Request, Role};
use stint_types::units::Tokens;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(180);

/// More events than any answer here has.
const EVENTS: EventLimits = EventLimits { events: 65_536, bytes: 64 << 20 };

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProbeAttempt {
    pub(super) class: EnforcementClass,
    pub(super) thinking: Tokens,
    pub(super) solution: Tokens,
    /// The effort word, for the class `effort`.
    pub(super) effort: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) struct ProbeOutcome {
    pub(super) spent: ChoiceUsage,
    pub(super) answered: bool,
    /// True if a thought was shown.
    pub(super) shows_thought: bool,
    pub(super) finish: FinishReason,
}

/// What is sent to ask a question.
pub(super) fn request(model: &Model, question: &str) -> Request {
    Request::new(&*model.name, vec![Message::text(Role::User, question)])
}

/// Asks one question as the attempt says, exactly as a caller's request would be run. Says what it took, whatever came of it.
pub(super) async fn run_attempt(
    backend: &Arc<dyn Backend>,
    model: &Model,
    attempt: &ProbeAttempt,
    question: &str,
) -> (Result<ProbeOutcome, Failure>, ChoiceUsage) {
    let request = request(model, question);
    let terms = ChoiceTerms {
        class: attempt.class,
        // Only what the class itself does is to be seen, not what another would do in its place.
        resume: attempt.class.is_resumed().then_some(attempt.class),
        thinking: attempt.thinking,
        solution: attempt.solution,
        answer_takes_rest: false,
        solution_by: LimitedBy::Caller,
        whole: WholeAnswer::Never,
        tells_limit: true,
        output_min: model.output_min,
        overhead: model.hand_off.overhead,
        effort: attempt.effort.clone(),
        visible_max: None,
        limits_thoughts: false,
        continuation: None,
        rescue: false,
        effort_least: None,
        prompt: backend.prompt_tokens(&request),
        has_free_input: true,
        cache_ttl: CacheTtl::Minutes,
        stop: Vec::new(),
        kind: CompletionKind::Chat,
    };
    let job = ChoiceJob {
        backend: backend.clone(),
        request: Arc::new(request),
        index: 0,
        seed: 1,
        deadline: Instant::now() + TIMEOUT,
        cut_before: None,
    };
    let mut progress = ChoiceProgress::new(terms);
    let outcome = collect_outcome(&job, &mut progress).await;
    (outcome, progress.spent())
}

async fn collect_outcome(job: &ChoiceJob, progress: &mut ChoiceProgress) -> Result<ProbeOutcome, Failure> {
    let (events, mut received) = event_channel::<IndexedEvent>(EVENTS);
    let finish = match generate_choice(job, progress, &events).await {
        Ok(finish) => finish,
        Err(ChoiceError::Failed(failure)) => return Err(failure),
        Err(ChoiceError::Disconnected) => {
            return Err(Failure::new(stint_backend::Fault::Backend, "its answer was too long"));
        }
    };
    drop(events);
    let (mut answered, mut shown) = (false, false);
    while let Some((_, event)) = received.recv().await {
        match event {
            ChoiceEvent::Thought(text) => shown |= !text.trim().is_empty(),
            ChoiceEvent::Answer(text) => answered |= !text.trim().is_empty(),
            ChoiceEvent::Signed(_)
            | ChoiceEvent::Logprobs(_)
            | ChoiceEvent::Note(_)
            | ChoiceEvent::ToolCall(_) => {}
        }
    }
    Ok(ProbeOutcome { spent: progress.spent(), answered, shows_thought: shown, finish })
}
