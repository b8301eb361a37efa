//! The engine in this process: both budgets are held by its sampler, to the token (class `inline`).

mod steps;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};

use super::calling;
use super::pace::{Lap, Pace};
use super::{Backend, Call, Failure, Fault, Generation, Part, Piece, Thought};
use crate::catalog::Conditions;
use crate::chat::{Message, Request, Role};
use crate::engine::{self, Engine, EngineError, Job, Phases, Refused, Sampling, Thinking};
use crate::prompt::calls::Syntax;
use crate::prompt::{self, Format, PromptError};
use crate::units::Tokens;

use steps::Steps;

/// How the local model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What closes an unfinished thought: a sentence, if any, and the tag.
    pub hand_off: String,
    /// How tokens are drawn where the caller does not say.
    pub temperature: f32,
    /// Nucleus, where the caller does not say.
    pub top_p: f32,
    /// Only the k likeliest tokens, where the caller does not say; 0 for all.
    pub top_k: u32,
    /// How the model writes its tool calls, where it calls any; by its template, where nothing is said.
    pub tool_syntax: Option<Syntax>,
}

impl Default for Settings {
    /// What the Qwen3 family recommends for thinking.
    fn default() -> Settings {
        Settings {
            hand_off: "\n</think>\n\n".to_owned(),
            temperature: 0.6,
            top_p: 0.95,
            top_k: 20,
            tool_syntax: None,
        }
    }
}

/// What holds once a model is loaded, of which there are only bounds before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Prompt and everything generated together.
    pub context: Tokens,
    /// What stands beside thought and answer at most.
    pub overhead: Tokens,
    /// The same where nothing is thought.
    pub unthought: Tokens,
}

/// Longer than any token of the vocabularies in use, in bytes.
const TOKEN_BYTES_MAX: u64 = 256;

/// A model in the local engine.
#[derive(Debug)]
pub struct Local {
    engine: Engine,
    format: Arc<Format>,
    hand_off: Vec<u32>,
    settings: Settings,
    pace: Pace,
}

impl Local {
    /// The model that the engine runs, spoken to in its format.
    pub fn new(engine: Engine, format: Arc<Format>, settings: Settings) -> Result<Local, PromptError> {
        let hand_off = format.encode(&settings.hand_off)?;
        let tool_syntax = settings.tool_syntax.or_else(|| format.syntax());
        let settings = Settings { tool_syntax, ..settings };
        Ok(Local { engine, format, hand_off, settings, pace: Pace::default() })
    }

    /// What the engine has room for, and what stands beside the budgets in this model's tokens: the start tag, the hand-off
    /// and the end of the text; without a thought the end alone, what the template puts in to say that none is wanted, and the
    /// hand-off where it opens one all the same.
    pub fn measure(&self) -> Measure {
        let count = |tokens: &[u32]| Tokens(tokens.len().try_into().unwrap_or(u64::MAX));
        let overhead = count(&self.hand_off) + Tokens(2);
        let request = Request::new("", vec![Message::text(Role::User, "1")]);
        let prompt = |thinking| self.format.render(&request, thinking);
        let unthought = match (prompt(true), prompt(false)) {
            (Ok(with), Ok(without)) if !self.format.opens_thought(&without) => {
                count(&without).saturating_sub(count(&with)) + Tokens(1)
            }
            _ => overhead,
        };
        Measure { context: Tokens::from(self.engine.context()), overhead, unthought }
    }

    fn begin(&self, call: &Call) -> Result<Generation, Failure> {
        let job = self.job(call)?;
        let prompt = job.prompt.len();
        let mut lap = self.pace.start();
        if self.engine.load().waiting > 0 {
            // The first token will tell of the queue, not of reading.
            lap.waits();
        }
        let tokens = self.engine.generate(job).map_err(|refused| refusal(&refused))?;
        let pieces = VecDeque::from([steps::prompt(prompt)]);
        let flow = Flow { tokens, steps: Steps::new(&self.format, prompt), pieces, lap };
        let pieces = Box::pin(stream::unfold(flow, |mut flow| async move {
            let piece = flow.next().await?;
            Some((piece, flow))
        }));
        Ok(calling::read(pieces, &call.request, self.settings.tool_syntax))
    }

    fn job(&self, call: &Call) -> Result<Job, Failure> {
        let request = &call.request;
        calling::check(request, self.settings.tool_syntax)?;
        let (prompt, phases) = match &call.part {
            Part::Whole { solution, .. } if let Some(text) = request.raw() => self.raw(&text, *solution)?,
            Part::Whole { thinking, solution } => self.whole(request, *thinking, *solution)?,
            Part::Solution { thought, solution, .. } => self.resumed(request, thought, *solution)?,
            Part::Thought { .. } | Part::Total { .. } => {
                let message = "this model holds both budgets itself and makes no half of a generation";
                return Err(Failure::new(Fault::Caller, message).unsent());
            }
        };
        let sampling = Sampling {
            temperature: request.sampling.temperature.unwrap_or(self.settings.temperature),
            top_k: request.sampling.top_k.unwrap_or(self.settings.top_k),
            top_p: request.sampling.top_p.unwrap_or(self.settings.top_p),
            seed: call.seed,
        };
        Ok(Job { prompt, sampling, phases, eos: self.format.ends().iter().copied().take(ENDS_MAX).collect() })
    }

    /// Without template, tags or hand-off.
    fn raw(&self, text: &str, solution: Tokens) -> Result<(Vec<u32>, Phases), Failure> {
        let prompt = self.format.raw(text).map_err(|error| unspeakable(&error))?;
        if prompt.is_empty() {
            let failure = Failure::new(Fault::Caller, "this model needs a prompt to go on from");
            return Err(failure.unsent());
        }
        Ok((prompt, Phases::unthinking(solution.clamp_u32())))
    }

    fn whole(
        &self,
        request: &Request,
        thinking: Tokens,
        solution: Tokens,
    ) -> Result<(Vec<u32>, Phases), Failure> {
        let prompt = self.render(request, thinking > Tokens::ZERO)?;
        let open = self.format.opens_thought(&prompt);
        let phases = if thinking == Tokens::ZERO && !open {
            self.phases(Tokens::ZERO, Vec::new(), true, solution)
        } else {
            self.phases(thinking, self.hand_off.clone(), open, solution)
        };
        Ok((prompt, phases))
    }

    /// From a thought that somebody else cut, at a deadline for example.
    fn resumed(
        &self,
        request: &Request,
        thought: &Thought,
        solution: Tokens,
    ) -> Result<(Vec<u32>, Phases), Failure> {
        let Some(tags) = self.format.tags() else { return self.whole(request, Tokens::ZERO, solution) };
        let mut prompt = self.render(request, true)?;
        if !self.format.opens_thought(&prompt) {
            prompt.push(tags.start);
        }
        if thought.ids.is_empty() {
            prompt.extend(self.format.encode(&thought.text).map_err(|error| unspeakable(&error))?);
        } else {
            prompt.extend(&thought.ids);
        }
        let mut hand_off = self.hand_off.clone();
        if thought.closed {
            prompt.push(tags.end);
            hand_off.clear();
        }
        Ok((prompt, self.phases(Tokens::ZERO, hand_off, true, solution)))
    }

    /// A budget of 0 in an open thought begins with the hand-off; without one, with the answer, in which the
    /// tags stay banned.
    fn phases(&self, thinking: Tokens, hand_off: Vec<u32>, open: bool, solution: Tokens) -> Phases {
        let thinking = self.format.tags().map(|tags| Thinking {
            budget: thinking.clamp_u32(),
            hand_off,
            start: Some(tags.start),
            end: tags.end,
            open,
        });
        Phases { thinking, solution: solution.clamp_u32(), solution_most: solution.clamp_u32() }
    }

    fn render(&self, request: &Request, thinking: bool) -> Result<Vec<u32>, Failure> {
        self.format.render(request, thinking).map_err(|error| unspeakable(&error))
    }
}

/// The engine takes no more ends of text than this.
const ENDS_MAX: usize = 8;

impl Backend for Local {
    fn generate(&self, call: Call) -> BoxFuture<'_, Result<Generation, Failure>> {
        async move { self.begin(&call) }.boxed()
    }

    fn counts_exactly(&self) -> bool {
        true
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        let bound = prompt::bound::prompt_tokens(request);
        if bound.0 / TOKEN_BYTES_MAX > u64::from(self.engine.context()) {
            // It fits in no case, so it is not worth reading.
            return bound;
        }
        let rendered = match request.raw() {
            Some(text) => self.format.raw(&text),
            None => self.format.render(request, true),
        };
        match rendered {
            Ok(prompt) => Tokens(prompt.len().try_into().unwrap_or(u64::MAX)),
            Err(_) => bound,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "queues are not that long")]
    fn conditions(&self) -> Conditions {
        let load = self.engine.load();
        let rounds = load.waiting as f64 / load.running.max(1) as f64;
        let measured = self.pace.conditions();
        Conditions {
            queue: rounds * self.pace.generation(),
            healthy: measured.healthy && self.engine.is_alive(),
            ..measured
        }
    }
}

struct Flow {
    tokens: engine::Tokens,
    steps: Steps,
    pieces: VecDeque<Piece>,
    lap: Lap,
}

impl Flow {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        while self.pieces.is_empty() {
            match self.tokens.next().await? {
                engine::Event::Step(step) => self.pieces.extend(self.steps.step(step)),
                engine::Event::Done(done) => self.pieces.extend(self.steps.done(done)),
                engine::Event::Failed(error) => {
                    return Some(Err(failure(&error)));
                }
            }
        }
        let piece = self.pieces.pop_front()?;
        self.lap.note(&piece);
        Some(Ok(piece))
    }
}

fn refusal(refused: &Refused) -> Failure {
    let (fault, code) = match refused {
        Refused::Busy => (Fault::Overload, None),
        Refused::TooLong { .. } => (Fault::Caller, Some("context_length_exceeded")),
        Refused::Invalid(_) => (Fault::Caller, None),
        Refused::Stopped => (Fault::Backend, None),
    };
    let retry_after = (fault == Fault::Overload).then_some(Duration::from_secs(1));
    // Its queue is full: whoever asks again at once finds it as full.
    Failure { code, retry_after, ..Failure::new(fault, refused.to_string()).unsent().elsewhere() }
}

fn unspeakable(error: &PromptError) -> Failure {
    match error {
        PromptError::Refused(words) => {
            let message = "the model's chat template refuses this conversation";
            Failure::new(Fault::Caller, message).told(format!("{message}: {words}")).unsent()
        }
        other => Failure::new(Fault::Backend, other.to_string()).unsent(),
    }
}

fn failure(error: &EngineError) -> Failure {
    Failure::new(Fault::Backend, error.to_string())
}

#[cfg(test)]
mod tests;
