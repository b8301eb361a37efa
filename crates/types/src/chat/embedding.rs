//! A request for embeddings: texts that become vectors.

use serde_json::{Map, Value};

use crate::units::EpisodeId;

use super::EpisodeLimits;

/// One call for vectors, checked and in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingRequest {
    /// A real model, or a route to one.
    pub model: String,
    /// What to make vectors of, at least one.
    pub inputs: EmbeddingInputs,
    /// The run of an agent whose money it spends.
    pub episode: Option<EpisodeId>,
    /// What that run may take.
    pub episode_limits: EpisodeLimits,
    /// Known members that only some upstreams understand (`dimensions`, `user`, …), passed through.
    pub extra: Map<String, Value>,
    /// Members that nobody here knows: for the models whose backends take them.
    pub unknown_members: Map<String, Value>,
}

/// What vectors are made of.
#[derive(Debug, Clone, PartialEq)]
pub enum EmbeddingInputs {
    /// Texts.
    Texts(Vec<String>),
    /// Token ids, for a caller who has the model's tokenizer.
    Tokens(Vec<Vec<u32>>),
}

impl EmbeddingInputs {
    /// How many vectors there will be.
    pub fn len(&self) -> usize {
        match self {
            EmbeddingInputs::Texts(texts) => texts.len(),
            EmbeddingInputs::Tokens(lists) => lists.len(),
        }
    }

    /// True if there is nothing to make a vector of.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
