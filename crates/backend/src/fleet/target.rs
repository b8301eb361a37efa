//! The parts that a fleet is built from (`Target`), and the request for a permit.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use tokio::time::Instant;

use crate::Backend;
use stint_types::units::{AccountId, Priority};

use super::AffinityKey;

/// A deployment of a model with one credential.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name in logs and metrics.
    pub name: Arc<str>,
    /// The backend to call.
    pub backend: Arc<dyn Backend>,
    /// Identifies its tokenizer and template: targets with the same id count a prompt alike. `None` if these are not known
    /// for sure.
    pub tokenizer_id: Option<Arc<str>>,
}

/// Identifies the account of a request, so that accounts share places fairly: a hash of the account's name, with a secret of this
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u64);

impl FlowId {
    /// The flow of that account.
    pub fn of(account: &AccountId) -> FlowId {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        FlowId(KEY.hash_one(account.as_str()))
    }
}

/// What a request needs from a fleet.
#[derive(Debug, Clone, Copy)]
pub struct PermitRequest {
    /// How its conversation begins: it goes where the same beginning went before.
    pub affinity: AffinityKey,
    /// The account that it belongs to.
    pub flow: FlowId,
    /// How many calls it makes at once.
    pub calls: u32,
    /// Its priority in the queue.
    pub priority: Priority,
    /// By when it must be answered.
    pub deadline: Instant,
}
