//! `RequestTask`: an admitted request as its caller holds it. Dropping it hangs up.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::execute::{EventReceiver, EventSize, IndexedEvent};
use crate::gateway::{RequestReceipt, RequestRefusal};
use stint_types::chat::ChoiceEvent;
use stint_types::tasks::Tasks;
use stint_types::units::{EpisodeId, Money, RequestId, Tokens};

use super::answering_model::AnsweringModel;

/// An update that a running request sends its caller.
#[derive(Debug)]
pub enum RequestUpdate {
    /// Something happened to one choice.
    Event(u32, ChoiceEvent),
    /// What was sent so far is no part of the answer: its upstream failed, and another is asked. Only callers that do not stream
    /// get this, who have read nothing.
    Restarted,
    /// All choices ended and were settled.
    Done(Box<RequestReceipt>),
    /// It failed; what was used is settled.
    Failed(RequestRefusal),
}

impl EventSize for RequestUpdate {
    fn text_bytes(&self) -> usize {
        match self {
            RequestUpdate::Event(_, event) => event.text_bytes(),
            RequestUpdate::Restarted | RequestUpdate::Done(_) | RequestUpdate::Failed(_) => 0,
        }
    }
}

impl From<IndexedEvent> for RequestUpdate {
    fn from((index, event): IndexedEvent) -> RequestUpdate {
        RequestUpdate::Event(index, event)
    }
}

/// An admitted request on its way. Dropping it hangs up: the backend stops, what was used is settled.
#[derive(Debug)]
pub struct RequestTask {
    pub(crate) id: RequestId,
    pub(crate) model: AnsweringModel,
    pub(crate) episode: Option<EpisodeId>,
    pub(crate) choices: u32,
    pub(crate) prompt: Tokens,
    pub(crate) reserved: Money,
    pub(crate) updates: EventReceiver<RequestUpdate>,
    pub(in crate::gateway) cut_off: CutOff,
}

/// The moment at which shutdown no longer waits for answers.
pub(in crate::gateway) struct CutOff(BoxFuture<'static, ()>);

impl CutOff {
    pub(in crate::gateway) fn of(tasks: &Tasks) -> CutOff {
        CutOff(tasks.force_stopping().boxed())
    }
}

impl fmt::Debug for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutOff").finish_non_exhaustive()
    }
}

impl RequestTask {
    /// The request's id.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// The model that answers; until the first event it is the one that the plan chose.
    pub fn model(&self) -> &AnsweringModel {
        &self.model
    }

    /// The run that it is a step of.
    pub fn episode(&self) -> Option<&EpisodeId> {
        self.episode.as_ref()
    }

    /// How many choices there will be.
    pub fn choices(&self) -> u32 {
        self.choices
    }

    /// What the model has to read: counted where its tokenizer is known, else estimated.
    pub fn prompt(&self) -> Tokens {
        self.prompt
    }

    /// What was reserved for it at first.
    pub fn reserved(&self) -> Money {
        self.reserved
    }

    /// The next report, if it is there already.
    pub fn next_ready(&mut self) -> Option<RequestUpdate> {
        self.updates.try_recv()
    }

    /// The next report; the last one is `Done` or `Failed`, nothing comes after it.
    pub async fn next(&mut self) -> Option<RequestUpdate> {
        tokio::select! {
            biased;
            update = self.updates.recv() => update,
            () = &mut self.cut_off.0 => Some(RequestUpdate::Failed(RequestRefusal::CutOff)),
        }
    }
}
