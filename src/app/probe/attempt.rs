//! One question put to an upstream, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::{Backend, Failure};
use crate::catalog::{Class, LimitedBy, Model, Spent};
use crate::chat::{Event, Finish, Form, Keep, Message, Request, Role};
use crate::execute::{Halt, Indexed, Job, Progress, Terms, run};
use crate::units::Tokens;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// More events than any answer here has.
const EVENTS: usize = 65_536;

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) class: Class,
    pub(super) thinking: Tokens,
    pub(super) solution: Tokens,
    /// The effort word, for the class `effort`.
    pub(super) effort: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) spent: Spent,
    pub(super) answered: bool,
    /// True where a thought was shown.
    pub(super) shown: bool,
    pub(super) finish: Finish,
}

/// What is sent to ask a question.
pub(super) fn request(model: &Model, question: &str) -> Request {
    Request::new(&*model.name, vec![Message::text(Role::User, question)])
}

/// Asks one question as the attempt says, exactly as a caller's request would be run. Says what it took, whatever came of it.
pub(super) async fn ask(
    backend: &Arc<dyn Backend>,
    model: &Model,
    attempt: &Attempt,
    question: &str,
) -> (Result<Outcome, Failure>, Spent) {
    let request = request(model, question);
    let terms = Terms {
        class: attempt.class,
        // Only what the class itself does is to be seen, not what another would do in its place.
        resume: attempt.class.is_resumed().then_some(attempt.class),
        thinking: attempt.thinking,
        solution: attempt.solution,
        answer_takes_rest: false,
        solution_by: LimitedBy::Caller,
        tells_limit: true,
        overhead: model.hand_off.overhead,
        effort: attempt.effort.clone(),
        visible_max: None,
        further: None,
        rescue: false,
        effort_least: None,
        prompt: backend.prompt_tokens(&request),
        reads_free: true,
        keep: Keep::Minutes,
        stop: Vec::new(),
        form: Form::Chat,
    };
    let job = Job {
        backend: backend.clone(),
        request: Arc::new(request),
        index: 0,
        seed: 1,
        deadline: Instant::now() + PATIENCE,
        cut_before: None,
    };
    let mut progress = Progress::new(terms);
    let outcome = made(&job, &mut progress).await;
    (outcome, progress.spent())
}

async fn made(job: &Job, progress: &mut Progress) -> Result<Outcome, Failure> {
    let (events, mut said) = mpsc::channel::<Indexed>(EVENTS);
    let finish = match run(job, progress, &events).await {
        Ok(finish) => finish,
        Err(Halt::Failed(failure)) => return Err(failure),
        Err(Halt::HungUp) => return Err(Failure::new(crate::backend::Fault::Backend, "it said too much")),
    };
    drop(events);
    let (mut answered, mut shown) = (false, false);
    while let Some((_, event)) = said.recv().await {
        match event {
            Event::Thought(text) => shown |= !text.trim().is_empty(),
            Event::Answer(text) => answered |= !text.trim().is_empty(),
            Event::Signed(_) | Event::Logprobs(_) | Event::ToolCall(_) => {}
        }
    }
    Ok(Outcome { spent: progress.spent(), answered, shown, finish })
}
