//! A target under the fleet's eyes: how long its first token takes, and how its calls end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::Instant;

use crate::backend::writing::Draft;
use crate::backend::{
    Backend, Call, Conduct, Embedded, Failure, Fault, Generation, Observation, Part, Piece, Retry, Writing,
};
use crate::catalog::Conditions;
use crate::chat::{Embedding, Request};
use crate::units::Tokens;

use super::Fleet;
use super::seat::Probe;
use super::waits::Wait;

/// A target that passes everything on, and tells the fleet.
pub(super) struct Watched {
    fleet: Arc<Fleet>,
    place: usize,
    conversation: u64,
    probe: Arc<Probe>,
}

impl Watched {
    pub(super) fn new(fleet: Arc<Fleet>, place: usize, conversation: u64, probe: Arc<Probe>) -> Watched {
        Watched { fleet, place, conversation, probe }
    }

    /// Begins to watch a call with a prompt of so many tokens. `hidden` where the time to the first token says nothing of
    /// the target.
    fn watch(&self, tokens: Tokens, hidden: bool) -> Watch {
        let (fleet, probe) = (self.fleet.clone(), self.probe.clone());
        let (tokens, in_flight) = fleet.begins(self.place, self.conversation, tokens);
        let (began, lost) = (Instant::now(), fleet.lag().total());
        let (stage, draft) = (Stage::Silent, Draft::new());
        Watch { fleet, place: self.place, probe, began, lost, tokens, in_flight, hidden, stage, draft }
    }

    /// How long the prompt of a call is, as far as that counts for the time to its first token.
    fn length(&self, call: &Call) -> Tokens {
        let thought = match &call.part {
            Part::Solution { thought, answer, .. } => thought.text.len() + answer.len(),
            Part::Whole { .. } | Part::Thought { .. } | Part::Total { .. } => 0,
        };
        self.prompt_tokens(&call.request) + Tokens(u64::try_from(thought).unwrap_or(u64::MAX))
    }
}

impl Backend for Watched {
    fn generate(&self, call: Call) -> BoxFuture<'_, Result<Generation, Failure>> {
        let watch = self.watch(self.length(&call), call.thinks_unseen());
        async move {
            let generation = self.fleet.backend(self.place).generate(call).await;
            self.fleet.hear(self.place);
            watch.over(generation)
        }
        .boxed()
    }

    fn embed(&self, ask: Arc<Embedding>) -> BoxFuture<'_, Result<Embedded, Failure>> {
        // How long vectors take depends on their texts alone.
        let mut watch = self.watch(Tokens::ZERO, true);
        async move {
            let embedded = self.fleet.backend(self.place).embed(ask).await;
            self.fleet.hear(self.place);
            match &embedded {
                Ok(_) => watch.comes_whole(),
                Err(failure) => watch.fails(failure),
            }
            embedded
        }
        .boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        self.fleet.backend(self.place).prompt_tokens(request)
    }

    fn counts_exactly(&self) -> bool {
        self.fleet.backend(self.place).counts_exactly()
    }

    fn conditions(&self) -> Conditions {
        self.fleet.backend(self.place).conditions()
    }

    fn conduct(&self) -> Conduct {
        self.fleet.conduct(self.place)
    }

    fn observe(&self, observation: Observation) {
        self.fleet.observe(self.place, observation);
    }

    fn was_read(&self, told: Tokens, most: Tokens) {
        self.fleet.written(self.place).read(told, most);
    }

    fn writing(&self) -> Writing {
        self.fleet.written(self.place).known()
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({})", self.fleet.name(self.place))
    }
}

/// One call under watch.
struct Watch {
    fleet: Arc<Fleet>,
    place: usize,
    probe: Arc<Probe>,
    began: Instant,
    /// How much time this process had lost by then.
    lost: Duration,
    /// How many tokens of its prompt no cache has.
    tokens: Tokens,
    /// How many calls were under way when it began, itself included.
    in_flight: u32,
    /// True where the time to the first token says nothing of the target.
    hidden: bool,
    stage: Stage,
    draft: Draft,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Silent,
    Speaking,
    Over,
}

impl Watch {
    /// Watches what came of a call.
    fn over(mut self, generation: Result<Generation, Failure>) -> Result<Generation, Failure> {
        let generation = generation.inspect_err(|failure| self.fails(failure))?;
        Ok(Box::pin(stream::unfold((generation, self), |(mut generation, mut watch)| async move {
            let piece = generation.next().await?;
            watch.sees(&piece);
            Some((piece, (generation, watch)))
        })))
    }

    fn sees(&mut self, piece: &Result<Piece, Failure>) {
        if let Ok(piece) = piece {
            self.draft.note(piece, self.fleet.written(self.place));
        }
        match piece {
            Err(failure) => self.fails(failure),
            // Some upstreams begin with it, and so tell what their cache had.
            Ok(Piece::Usage(usage)) if self.stage == Stage::Silent && usage.prompt > Tokens::ZERO => {
                self.tokens = usage.prompt.saturating_sub(usage.cache_read);
            }
            Ok(Piece::Usage(_)) => {}
            Ok(piece) => {
                if self.stage == Stage::Silent {
                    self.stage = Stage::Speaking;
                    self.fleet.first(self.place, self.wait());
                }
                if matches!(piece, Piece::End(_)) {
                    self.succeeds();
                }
            }
        }
    }

    /// The answer is there, all of it.
    fn comes_whole(&mut self) {
        self.fleet.first(self.place, self.wait());
        self.succeeds();
    }

    /// How long it has waited until now.
    fn wait(&self) -> Wait {
        Wait {
            tokens: self.tokens,
            began: self.began,
            in_flight: self.in_flight,
            waited: self.began.elapsed(),
            own: self.fleet.lag().total().saturating_sub(self.lost),
            hidden: self.hidden,
        }
    }

    fn succeeds(&mut self) {
        if self.stage != Stage::Over {
            self.stage = Stage::Over;
            self.fleet.succeeded(self.place, &self.probe);
        }
    }

    fn fails(&mut self, failure: &Failure) {
        // What is wrong with a request says nothing of the target: nobody is to take it away from others.
        let harms = failure.fault != Fault::Caller && failure.retry > Retry::Never;
        if self.stage == Stage::Silent && failure.fault == Fault::Timeout {
            self.fleet.in_vain(self.place, self.wait());
        }
        if self.stage != Stage::Over && harms {
            self.fleet.failed(self.place, &self.probe, failure);
        }
        self.stage = Stage::Over;
    }
}

impl Drop for Watch {
    /// Whoever lets go of a call that spoke had enough of it: the target works. One that was silent until then would have
    /// taken so long at least; whether that is the target's fault depends on what is usual there.
    fn drop(&mut self) {
        match self.stage {
            Stage::Speaking => self.succeeds(),
            Stage::Silent => self.fleet.silent(self.place, &self.probe, self.wait()),
            Stage::Over => {}
        }
    }
}
