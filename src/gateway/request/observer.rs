//! `RequestObserver`: follows a request until it is settled, beside its caller. The request log is one.

use std::fmt;
use std::sync::Arc;

use stint_sessions::history::RequestRecord;

/// Follows one request. It is dropped when nothing more can happen to it, which may be after the caller has gone.
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// A call for it goes to this target of a model.
    fn dispatched(&self, model: &Arc<str>, target: &Arc<str>);

    /// It is over, and settled.
    fn settled(&self, record: &Arc<RequestRecord>);

    /// A stage of it is over.
    fn reached(&self, stage: RequestStage<'_>);
}

/// A moment in the life of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStage<'a> {
    /// It was read, and is to be admitted.
    Arrived,
    /// Its run was found, where it is a step of one.
    Joined,
    /// Its demand is estimated.
    Estimated,
    /// It is planned.
    Planned,
    /// Its worst case is set aside.
    Reserved,
    /// A place on a target was found.
    PlaceFound,
    /// The reservation is durable.
    Recorded,
    /// An attempt is over.
    AttemptEnded {
        /// How, in a word.
        ended: &'static str,
        /// What failed, in a word.
        error: Option<&'a str>,
    },
    /// It is about to be settled.
    Settling,
    /// So many of its tool calls passed.
    ToolCalls(u64),
    /// It is refused, by this limit or for this reason.
    Refused(&'a str),
}
