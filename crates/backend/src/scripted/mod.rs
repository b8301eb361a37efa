//! A scripted backend for tests, ours and those in `tests/it`. It is not offered in configuration.
//!
//! The script says what the model would do by itself ([`ScriptedReply`]). The backend keeps to the limits of a call as a real one of
//! each class would. It records every call and how it ended.

mod gate;
mod record;
mod reply;

use std::fmt;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};

use stint_prompt as prompt;
use stint_types::catalog::ModelConditions;
use stint_types::chat::Request;
use stint_types::units::Tokens;

use super::{Backend, BackendCall, Failure, Generation, Piece};

pub use gate::PieceGate;
pub use record::{CallRecord, CallState};
pub use reply::{HAND_OFF, ScriptedReply};

use record::{CallLog, CallLogEntry};

type ReplyScript = dyn Fn(&BackendCall, usize) -> ScriptedReply + Send + Sync;

/// The backend.
pub struct ScriptedBackend {
    script: Box<ReplyScript>,
    records: CallLog,
    prompt: Option<Tokens>,
    /// Bytes of a token.
    token: u64,
    conditions: Mutex<ModelConditions>,
    places: Option<u32>,
}

impl ScriptedBackend {
    /// Plays the same for every call.
    pub fn always(reply: ScriptedReply) -> ScriptedBackend {
        ScriptedBackend::each(move |_, _| reply.clone())
    }

    /// Plays one after another, the last one for ever.
    pub fn in_turn(plays: Vec<ScriptedReply>) -> ScriptedBackend {
        let last = plays.last().cloned().unwrap_or_default();
        ScriptedBackend::each(move |_, turn| plays.get(turn).unwrap_or(&last).clone())
    }

    /// Decides for each call, told how many came before.
    pub fn each(
        script: impl Fn(&BackendCall, usize) -> ScriptedReply + Send + Sync + 'static,
    ) -> ScriptedBackend {
        ScriptedBackend {
            script: Box::new(script),
            records: CallLog::default(),
            prompt: None,
            token: 1,
            conditions: Mutex::new(ModelConditions::default()),
            places: None,
        }
    }

    /// Counts every prompt as so many tokens; otherwise their upper bound is taken.
    #[must_use]
    pub fn reading(self, prompt: Tokens) -> ScriptedBackend {
        ScriptedBackend { prompt: Some(prompt), ..self }
    }

    /// Says of every prompt that a token has so many bytes; what is known of it beforehand is its bytes.
    #[must_use]
    pub fn of_bytes(self, token: u64) -> ScriptedBackend {
        ScriptedBackend { token: token.max(1), ..self }
    }

    /// Says that it works on so many calls at once.
    #[must_use]
    pub fn with_places(self, places: u32) -> ScriptedBackend {
        ScriptedBackend { places: Some(places), ..self }
    }

    /// Says so of its speed from now on.
    pub fn set_conditions(&self, conditions: ModelConditions) {
        *self.conditions.lock().unwrap_or_else(PoisonError::into_inner) = conditions;
    }

    /// Every call so far, and what became of it.
    pub fn records(&self) -> Vec<CallRecord> {
        self.records.all()
    }

    /// Waits until the records are as wanted, and returns them.
    pub async fn until(&self, wanted: impl Fn(&[CallRecord]) -> bool) -> Vec<CallRecord> {
        self.records.until(wanted).await
    }

    async fn start(&self, call: BackendCall) -> Result<Generation, Failure> {
        let entry = self.records.add(call.clone());
        let reply = (self.script)(&call, entry.turn());
        if let Some(gate) = &reply.start_gate {
            gate.pass().await;
        }
        if let Some(failure) = reply.refuses {
            entry.end(CallState::Refused);
            return Err(failure);
        }
        let prompt = Tokens(self.prompt_tokens(&call.request).0 / self.token);
        let running = (reply.pieces(&call, prompt).into_iter(), reply, entry);
        Ok(Box::pin(stream::unfold(Some(running), |running| async move {
            let (mut pieces, reply, entry) = running?;
            let piece = next(pieces.next()?, &reply, &entry).await;
            let over = matches!(piece, Err(_) | Ok(Piece::End(_)));
            Some((piece, (!over).then_some((pieces, reply, entry))))
        })))
    }
}

async fn next(piece: Piece, reply: &ScriptedReply, entry: &CallLogEntry) -> Result<Piece, Failure> {
    if !reply.pause.is_zero() {
        tokio::time::sleep(reply.pause).await;
    }
    if let Some(gate) = &reply.piece_gate {
        gate.pass().await;
    }
    if let Some((after, failure)) = &reply.breaks
        && entry.delivered() >= *after
    {
        entry.end(CallState::Failed);
        return Err(failure.clone());
    }
    entry.deliver();
    if matches!(piece, Piece::End(_)) {
        entry.end(CallState::Finished);
    }
    Ok(piece)
}

impl Backend for ScriptedBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        self.start(call).boxed()
    }

    /// One whose tokens are no longer than its bytes reads what it says that it will.
    fn counts_exactly(&self) -> bool {
        self.token == 1
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        self.prompt.unwrap_or_else(|| prompt::token_bound::prompt_tokens(request, &self.images()))
    }

    fn conditions(&self) -> ModelConditions {
        *self.conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> Option<u32> {
        self.places
    }
}

impl fmt::Debug for ScriptedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedBackend").field("records", &self.records.all()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
