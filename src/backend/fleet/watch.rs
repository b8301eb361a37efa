//! A target under the fleet's eyes: how long its first token takes, and how its calls end.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::Instant;

use crate::backend::writing::Draft;
use crate::backend::{Backend, Call, Embedded, Failure, Fault, Generation, Piece, Retry, Writing};
use crate::catalog::Conditions;
use crate::chat::{Embedding, Request};
use crate::units::Tokens;

use super::Fleet;
use super::seat::Probe;

/// A target that passes everything on, and tells the fleet.
pub(super) struct Watched {
    fleet: Arc<Fleet>,
    place: usize,
    probe: Arc<Probe>,
}

impl Watched {
    pub(super) fn new(fleet: Arc<Fleet>, place: usize, probe: Arc<Probe>) -> Watched {
        Watched { fleet, place, probe }
    }

    fn watch(&self, hidden: bool) -> Watch {
        let (fleet, probe) = (self.fleet.clone(), self.probe.clone());
        let (began, stage, draft) = (Instant::now(), Stage::Silent, Draft::new());
        Watch { fleet, place: self.place, probe, began, hidden, stage, draft }
    }
}

impl Backend for Watched {
    fn generate(&self, call: Call) -> BoxFuture<'_, Result<Generation, Failure>> {
        let watch = self.watch(call.thinks_unseen());
        async move {
            let generation = self.fleet.backend(self.place).generate(call).await;
            self.fleet.count_resent(self.place);
            watch.over(generation)
        }
        .boxed()
    }

    fn embed(&self, ask: Arc<Embedding>) -> BoxFuture<'_, Result<Embedded, Failure>> {
        // How long vectors take depends on their texts alone.
        let mut watch = self.watch(true);
        async move {
            let embedded = self.fleet.backend(self.place).embed(ask).await;
            self.fleet.count_resent(self.place);
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
            Ok(Piece::Usage(_)) => {}
            Ok(piece) => {
                if self.stage == Stage::Silent {
                    self.stage = Stage::Speaking;
                    self.fleet.first(self.place, self.began.elapsed(), self.hidden);
                }
                if matches!(piece, Piece::End(_)) {
                    self.succeeds();
                }
            }
        }
    }

    /// The answer is there, all of it.
    fn comes_whole(&mut self) {
        self.fleet.first(self.place, self.began.elapsed(), self.hidden);
        self.succeeds();
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
            Stage::Silent => self.fleet.silent(self.place, &self.probe, self.began.elapsed()),
            Stage::Over => {}
        }
    }
}
