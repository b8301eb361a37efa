//! The backend that uses the engine in this process. Its sampler enforces both budgets, to the token (class `inline`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};

use serde_json::json;

use crate::failure::ENGINE_RESTARTING;
use crate::remote::prompt_cache::{CACHE_SALT, PromptCacheSharing};
use crate::speed::{CallTimer, SpeedEstimator};
use crate::tool_calls;
use crate::{
    Backend, BackendCall, Failure, Fault, Generation, GenerationPart, Piece, TargetOutage, Thought,
    UnsupportedFeature,
};
use stint_engine::{
    self as engine, AnswerConstraint, CacheScope, EngineError, EngineLease, GenerationJob, JobPriority,
    JobRejection, LeaseRefusal, PhaseBudgets, PooledEngine, PooledOutage, SamplingParams, ThinkingPhase,
};
use stint_prompt::{self as prompt, PromptError, PromptFormat};
use stint_types::catalog::ModelConditions;
use stint_types::chat::{Message, RawPrompt, Request, Role};
use stint_types::tasks::run_in_place;
use stint_types::units::{Priority, Tokens};

use super::grammar::{AnswerForm, GrammarCompiler};
use super::penalties;
use super::settings::{LocalModelLimits, Settings};
use super::steps::StepDecoder;
use super::thought_tags::ThoughtTags;

/// Longer than any token of the vocabularies in use, in bytes.
const TOKEN_BYTES_MAX: u64 = 256;

/// A model in the local engine: loaded, or to be loaded when it is asked.
#[derive(Debug)]
pub struct LocalBackend {
    engine: PooledEngine,
    format: Arc<PromptFormat>,
    /// What stands around its thoughts, where it thinks.
    tags: Option<ThoughtTags>,
    hand_off: Vec<u32>,
    /// The tokens that are white space alone.
    blanks: Arc<[u32]>,
    grammars: GrammarCompiler,
    settings: Settings,
    speed: SpeedEstimator,
}

impl LocalBackend {
    /// The model that the engine runs, spoken to in its format.
    pub fn new(
        engine: PooledEngine,
        format: Arc<PromptFormat>,
        settings: Settings,
    ) -> Result<LocalBackend, PromptError> {
        let hand_off = settings.hand_off_tokens(&format)?;
        let tags = ThoughtTags::of(&format)?;
        let tool_syntax = settings.syntax_in(&format);
        let settings = Settings { tool_syntax, ..settings };
        let speed = SpeedEstimator::default();
        engine.single_step().into_iter().for_each(|step| speed.expect_token(step));
        let is_blank = |id: &u32| {
            let text = format.detokenizer().push(*id);
            !text.is_empty() && text.chars().all(char::is_whitespace)
        };
        let blanks = (0..engine.vocab()).filter(is_blank).collect();
        let grammars = GrammarCompiler::new(format.clone(), engine.vocab());
        Ok(LocalBackend { engine, format, tags, hand_off, blanks, grammars, settings, speed })
    }

    /// The engine's context, and how many tokens come on top of the budgets. With a thought these are the start tag, the
    /// hand-off and the end of the text. Without one they are the end of the text and what the template adds to turn
    /// thinking off. If the template opens a thought all the same, they are as many as with one.
    pub fn limits(&self) -> LocalModelLimits {
        let count = |tokens: &[u32]| Tokens(tokens.len().try_into().unwrap_or(u64::MAX));
        let start = self.tags.as_ref().map_or(Tokens(1), |tags| count(&tags.start));
        let overhead = count(&self.hand_off) + start + Tokens(1);
        let request = Request::new("", vec![Message::text(Role::User, "1")]);
        let prompt = |thinking| self.format.render(&request, thinking);
        let unthought = match (prompt(true), prompt(false)) {
            (Ok(with), Ok(without)) if !self.format.opens_thought(&without) => {
                count(&without).saturating_sub(count(&with)) + Tokens(1)
            }
            _ => overhead,
        };
        LocalModelLimits {
            context: Tokens::from(self.engine.context()),
            context_wanted: Tokens::from(self.engine.size().context_wanted),
            overhead,
            unthinking_overhead: unthought,
            thinks: self.tags.is_some(),
        }
    }

    async fn start(&self, call: &BackendCall) -> Result<Generation, Failure> {
        let job = self.job(call)?;
        let job = GenerationJob { constraint: self.constraint(&call.request).await?, ..job };
        let prompt = job.prompt.len();
        let is_thinking = job.phases.thinking.as_ref().map(|thinking| thinking.open && thinking.budget > 0);
        let resumes = matches!(call.part, GenerationPart::Solution { .. });
        let leased = if resumes { self.engine.lease_to_resume().await } else { self.engine.lease().await };
        let mut lease = leased.map_err(|refused| lease_failure(&refused))?;
        self.engine.single_step().into_iter().for_each(|step| self.speed.expect_token(step));
        // Loading is no part of what reading a prompt takes.
        let mut lap = self.speed.start();
        let load = lease.engine().load();
        if load.running + load.waiting >= load.slots {
            // The wait for the first token will measure the queue, not the reading of the prompt.
            lap.mark_queued();
        }
        let tokens = lease.engine().generate(job).map_err(|refused| self.refusal_failure(&refused))?;
        // A thought that is cut is gone on with by another call.
        lease.set_may_resume(!resumes);
        let decoder = StepDecoder::new(self.format.clone(), prompt, is_thinking);
        let pieces = VecDeque::from([decoder.prompt_usage()]);
        let engine = self.engine.clone();
        let flow = LocalStream { tokens, lease, engine, decoder, pieces, timer: lap };
        let pieces = Box::pin(stream::unfold(flow, |mut flow| async move {
            let piece = flow.next().await?;
            Some((piece, flow))
        }));
        Ok(tool_calls::extract_calls(pieces, &call.request, self.settings.tool_syntax))
    }

    /// What the answer is held to, where anything is wanted of its form.
    async fn constraint(&self, request: &Request) -> Result<Option<AnswerConstraint>, Failure> {
        match AnswerForm::of(request, self.settings.tool_syntax)? {
            Some(form) => Ok(Some(self.grammars.compile(form, request.cache_owner.as_deref()).await?)),
            None => Ok(None),
        }
    }

    fn refusal_failure(&self, refused: &JobRejection) -> Failure {
        let (fault, code) = match refused {
            JobRejection::Busy => (Fault::Overload, None),
            JobRejection::TooLong { .. } => (Fault::Caller, Some("context_length_exceeded")),
            JobRejection::Invalid(_) => (Fault::Caller, None),
            JobRejection::Stopped => (Fault::Backend, None),
            JobRejection::Restarting => {
                return restarting(Failure::new(Fault::Backend, refused.to_string()).unsent(), &self.engine);
            }
        };
        let retry_after = (fault == Fault::Overload).then_some(Duration::from_secs(1));
        // A full queue would still be full for a retry at once.
        Failure { code, retry_after, ..Failure::new(fault, refused.to_string()).unsent().retry_elsewhere() }
    }

    fn job(&self, call: &BackendCall) -> Result<GenerationJob, Failure> {
        let request = &call.request;
        self.check_answers(request)?;
        if request.continues_last {
            let why = "this model cannot go on with an assistant's message: end with the user's, or ask another model";
            return Err(Failure::incapable(UnsupportedFeature::Prompt, why));
        }
        tool_calls::check_syntax(request, self.settings.tool_syntax)?;
        let (prompt, phases) = match &call.part {
            GenerationPart::Whole { solution, .. } if let Some(prompt) = request.raw_prompt() => {
                self.raw(&prompt, *solution)?
            }
            GenerationPart::Whole { thinking, solution } => self.whole(request, *thinking, *solution)?,
            GenerationPart::Solution { thought, solution, .. } => {
                self.resumed(request, thought, *solution)?
            }
            GenerationPart::Total { tokens, .. } => self.total(request, *tokens)?,
            GenerationPart::Thought { .. } => {
                let message = "this model holds both budgets itself and makes no half of a generation";
                return Err(Failure::new(Fault::Caller, message).unsent());
            }
        };
        let sampling = SamplingParams {
            temperature: request.sampling.temperature.unwrap_or(self.settings.temperature),
            top_k: request.sampling.top_k.unwrap_or(self.settings.top_k),
            top_p: request.sampling.top_p.unwrap_or(self.settings.top_p),
            min_p: penalties::min_p(request)?,
            seed: call.seed,
        };
        // Whose thought was cut at a deadline has no time for another wait.
        let priority = match (&call.part, request.priority) {
            (GenerationPart::Solution { .. }, _) => JobPriority::Resumes,
            (_, Priority::Interactive) => JobPriority::Interactive,
            (_, Priority::Batch) => JobPriority::Batch,
        };
        Ok(GenerationJob {
            prompt,
            priority,
            scope: self.cache_scope(request),
            sampling,
            penalties: penalties::read(request, self.engine.vocab())?,
            phases,
            eos: self.format.stop_tokens().iter().copied().take(ENDS_MAX).collect(),
            constraint: None,
            logprobs: request.logprobs,
        })
    }

    /// Refuses more answers at once than there is ever room for: another try would find no more.
    fn check_answers(&self, request: &Request) -> Result<(), Failure> {
        let most = self.engine.jobs_max();
        if request.choices as usize <= most {
            return Ok(());
        }
        let why =
            format!("this model makes {most} answers at once at most, those that wait among them: lower n");
        Err(Failure::incapable(UnsupportedFeature::Answers, why))
    }

    /// Whose prompts it shares the cache with: its account's, unless the operator shares it, and of these those alone that state
    /// the same `cache_salt`, where one is stated.
    fn cache_scope(&self, request: &Request) -> CacheScope {
        let is_shared = self.settings.prompt_cache == PromptCacheSharing::Everyone;
        let owner = request.cache_owner.as_deref().filter(|_| !is_shared);
        let salt = request.unknown_members.get(CACHE_SALT).or_else(|| request.extra.get(CACHE_SALT));
        match (owner, salt) {
            (None, None) => CacheScope::default(),
            // In the form of JSON no two pairs look alike.
            (owner, salt) => CacheScope::of(json!([owner, salt]).to_string().into()),
        }
    }

    /// The prompt and the budgets of a raw prompt: without template, tags or hand-off.
    fn raw(&self, prompt: &RawPrompt, solution: Tokens) -> Result<(Vec<u32>, PhaseBudgets), Failure> {
        let prompt = self.raw_ids(prompt).map_err(|error| prompt_failure(&error))?;
        if prompt.is_empty() {
            let failure = Failure::new(Fault::Caller, "this model needs a prompt to go on from");
            return Err(failure.unsent());
        }
        Ok((prompt, PhaseBudgets::without_thinking(solution.clamp_u32())))
    }

    fn raw_ids(&self, prompt: &RawPrompt) -> Result<Vec<u32>, PromptError> {
        match prompt {
            RawPrompt::Text(text) => run_in_place(text.len(), || self.format.encode_raw(text)),
            RawPrompt::Ids(ids) => Ok(ids.to_vec()),
        }
    }

    fn whole(
        &self,
        request: &Request,
        thinking: Tokens,
        solution: Tokens,
    ) -> Result<(Vec<u32>, PhaseBudgets), Failure> {
        let prompt = self.render(request, thinking > Tokens::ZERO)?;
        let open = self.format.opens_thought(&prompt);
        let phases = if thinking == Tokens::ZERO && !open {
            self.phases(Tokens::ZERO, Vec::new(), true, solution)
        } else {
            self.phases(thinking, self.hand_off.clone(), open, solution)
        };
        Ok((prompt, phases))
    }

    /// The prompt and the budgets under one limit, which may end a thought that nothing closes. The tag that may close it has a
    /// token of the limit.
    fn total(&self, request: &Request, tokens: Tokens) -> Result<(Vec<u32>, PhaseBudgets), Failure> {
        let mut prompt = self.render(request, true)?;
        let Some(tags) = &self.tags else {
            return Ok((prompt, PhaseBudgets::without_thinking(tokens.clamp_u32())));
        };
        if !self.format.opens_thought(&prompt) {
            prompt.extend(&tags.start);
        }
        let together = tokens.saturating_sub(Tokens(1)).max(Tokens(1));
        let phases = self.phases(together, Vec::new(), true, Tokens::ZERO);
        Ok((prompt, PhaseBudgets { solution_max: together.clamp_u32(), ..phases }))
    }

    /// The prompt and the budgets that resume a thought which was cut from outside, at a deadline for example.
    fn resumed(
        &self,
        request: &Request,
        thought: &Thought,
        solution: Tokens,
    ) -> Result<(Vec<u32>, PhaseBudgets), Failure> {
        let Some(tags) = &self.tags else { return self.whole(request, Tokens::ZERO, solution) };
        let mut prompt = self.render(request, true)?;
        if !self.format.opens_thought(&prompt) {
            prompt.extend(&tags.start);
        }
        if thought.ids.is_empty() {
            let encoded = run_in_place(thought.text.len(), || self.format.encode(&thought.text));
            prompt.extend(encoded.map_err(|error| prompt_failure(&error))?);
        } else {
            prompt.extend(&thought.ids);
        }
        let mut hand_off = self.hand_off.clone();
        if thought.closed {
            prompt.extend(&tags.end);
            hand_off.clear();
        }
        Ok((prompt, self.phases(Tokens::ZERO, hand_off, true, solution)))
    }

    /// With a thinking budget of 0 in an open thought, the generation begins with the hand-off. Without a hand-off it
    /// begins with the answer, in which the tags stay banned.
    fn phases(&self, thinking: Tokens, hand_off: Vec<u32>, open: bool, solution: Tokens) -> PhaseBudgets {
        let (budget, blanks) = (thinking.clamp_u32(), self.blanks.clone());
        let thinking = self.tags.as_ref().map(|tags| {
            tags.phase(ThinkingPhase {
                budget,
                hand_off,
                start: None,
                end: u32::MAX,
                open,
                blanks,
                spelled: None,
            })
        });
        PhaseBudgets { thinking, solution: solution.clamp_u32(), solution_max: solution.clamp_u32() }
    }

    fn render(&self, request: &Request, thinking: bool) -> Result<Vec<u32>, Failure> {
        let bound = prompt::token_bound::prompt_tokens(request, &self.images());
        self.render_within(request, thinking, bound).map_err(|error| prompt_failure(&error))
    }

    /// The prompt of a request that has no more tokens than that, and about as many bytes. A long one takes tens of milliseconds.
    fn render_within(
        &self,
        request: &Request,
        thinking: bool,
        bound: Tokens,
    ) -> Result<Vec<u32>, PromptError> {
        let bytes = usize::try_from(bound.0).unwrap_or(usize::MAX);
        run_in_place(bytes, || self.format.render(request, thinking))
    }
}

/// What a caller is told of when to try again, where the engine cannot say it.
const RESTART_USUAL: Duration = Duration::from_secs(5);

/// The most end-of-text tokens that the engine takes.
const ENDS_MAX: usize = 8;

impl Backend for LocalBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        async move { self.start(&call).await }.boxed()
    }

    fn counts_exactly(&self) -> bool {
        true
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        let bound = prompt::token_bound::prompt_tokens(request, &self.images());
        if bound.0 / TOKEN_BYTES_MAX > u64::from(self.engine.context()) {
            // It cannot fit, so it is not worth tokenizing.
            return bound;
        }
        let rendered = match request.raw_prompt() {
            Some(prompt) => self.raw_ids(&prompt),
            None => self.render_within(request, true, bound),
        };
        match rendered {
            Ok(prompt) => Tokens(prompt.len().try_into().unwrap_or(u64::MAX)),
            Err(_) => bound,
        }
    }

    fn outage(&self) -> Option<TargetOutage> {
        let PooledOutage { reason, retry_in } = self.engine.outage()?;
        Some(TargetOutage { reason: reason.into(), retry_in })
    }

    /// The fleet knows what waits: it counts requests from their plans on, which have not come here yet. A model that is not
    /// loaded begins that much later.
    fn conditions(&self) -> ModelConditions {
        let measured = self.speed.conditions();
        let loading = self.engine.expected_wait().as_secs_f64();
        ModelConditions {
            queue: measured.queue + loading,
            queue_least: measured.queue_least + loading,
            healthy: measured.healthy && self.engine.is_alive(),
            ..measured
        }
    }

    fn places(&self) -> Option<u32> {
        u32::try_from(self.engine.load().slots).ok()
    }

    fn is_loaded(&self) -> Option<bool> {
        (!self.engine.is_permanent()).then(|| self.engine.is_loaded())
    }
}

struct LocalStream {
    tokens: engine::TokenStream,
    /// The model is not let go while this is read.
    lease: EngineLease,
    engine: PooledEngine,
    decoder: StepDecoder,
    pieces: VecDeque<Piece>,
    timer: CallTimer,
}

impl LocalStream {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        while self.pieces.is_empty() {
            match self.tokens.next().await? {
                engine::GenerationEvent::PromptRead { reused, alone } => {
                    if !alone {
                        // As of the other choices of a request: they wait until the first has read the prompt.
                        self.timer.mark_queued();
                    }
                    self.pieces.push_back(self.decoder.prompt_read(reused));
                }
                engine::GenerationEvent::Logprobs(told) => self.decoder.logprobs(told),
                engine::GenerationEvent::Token(step) => self.pieces.extend(self.decoder.step(step)),
                engine::GenerationEvent::Done(done) => {
                    self.lease.set_may_resume(false);
                    self.pieces.extend(self.decoder.finish(done));
                }
                engine::GenerationEvent::Failed(error) => {
                    self.lease.set_may_resume(false);
                    return Some(Err(engine_failure(&error, &self.engine)));
                }
            }
        }
        let piece = self.pieces.pop_front()?;
        self.timer.record(&piece);
        Some(Ok(piece))
    }
}

fn prompt_failure(error: &PromptError) -> Failure {
    match error {
        PromptError::Refused(words) => {
            let message = "the model's chat template refuses this conversation";
            Failure::new(Fault::Caller, message).with_upstream_message(format!("{message}: {words}")).unsent()
        }
        other => Failure::new(Fault::Backend, other.to_string()).unsent(),
    }
}

/// Why a model's engine cannot be used. Nothing was generated, and another model may do it.
fn lease_failure(refused: &LeaseRefusal) -> Failure {
    let (fault, message, retry_after) = match refused {
        LeaseRefusal::Stopped => (Fault::Backend, refused.to_string(), None),
        // Its reason names files and devices of ours: the log has it.
        LeaseRefusal::Failed { retry_in, .. } => {
            (Fault::Backend, "the model could not be loaded".to_owned(), Some(*retry_in))
        }
        LeaseRefusal::NoRoom | LeaseRefusal::Busy => {
            (Fault::Overload, refused.to_string(), Some(RESTART_USUAL))
        }
    };
    let failure = Failure::new(fault, message).unsent().retry_elsewhere();
    let code = matches!(refused, LeaseRefusal::Failed { .. }).then_some(ENGINE_RESTARTING);
    Failure { retry_after, code, ..failure }
}

/// An engine that failed takes the next call when it was started again; until then another model may.
fn engine_failure(error: &EngineError, engine: &PooledEngine) -> Failure {
    let failure = Failure::new(Fault::Backend, error.to_string());
    match error {
        // The engine goes on: only this one generation went wrong.
        EngineError::SamplerMismatch => failure,
        // It would go wrong again.
        EngineError::NotANumber => failure.retry_elsewhere(),
        // The form that was asked for is too much.
        EngineError::Constraint(_) => Failure::new(Fault::Caller, error.to_string()),
        _ => restarting(failure, engine),
    }
}

/// The same failure, with what its caller is to know.
fn restarting(failure: Failure, engine: &PooledEngine) -> Failure {
    let retry_in = engine.outage().and_then(|outage| outage.retry_in);
    let retry_after = Some(retry_in.unwrap_or(RESTART_USUAL));
    Failure { retry_after, ..failure.retry_elsewhere().code(ENGINE_RESTARTING) }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
