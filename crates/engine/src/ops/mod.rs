//! The operations of the forward pass: one file each, its WGSL beside it, an obvious CPU version in its tests.
//!
//! Some have several kernels. The device's `DeviceMode` chooses, and for matrices the number of tokens.
//!
//! Every kernel reduces in an order that depends on its row alone, never on how many rows run with
//! it, nor on which of the kernels of a device computes it. So a sequence computes the same bits alone and in a batch, prefilled
//! at once or in chunks, anew or from what the cache has.

mod activation_rows;
mod adjust;
mod attend;
mod cache;
mod combine;
mod embed;
mod experts;
mod formats;
mod gate;
mod mask;
mod matmul;
mod matmul_kernels;
mod mix;
mod norm;
mod pick;
mod rope;
mod route;
mod sample;
mod stream;
mod team;
#[cfg(test)]
mod testing;

pub(crate) use activation_rows::{ActivationRows, QuantiseRows, int8_bytes};
pub(crate) use adjust::{AdjustLogits, LogitChange};
pub(crate) use attend::{Attention, AttentionBuffers as AttendTied, BoundAttention, split_bytes, split_rows};
pub(crate) use cache::CacheLayout;
pub(crate) use combine::splits_max;
pub(crate) use embed::Embed;
pub(crate) use experts::{BoundExperts, ExpertBuffers, ExpertMatmul, rows_for_teams};
pub(crate) use gate::SwiGlu;
pub(crate) use mask::{MaskLogits, PickMask};
pub(crate) use matmul::{BoundMatmul, Matmul};
pub(crate) use mix::MixExperts;
pub(crate) use norm::RmsNorm;
pub(crate) use pick::{PickRows, PickTied};
pub(crate) use rope::{Rope, RopeBuffers as RopeTied};
pub(crate) use route::RouteExperts;
pub(crate) use sample::{EOS_MAX, SLOT_WORDS, SampledToken, Sampler, slot_words};
pub use sample::{HAND_OFF_MAX, SamplingParams};
pub(crate) use stream::BandwidthKernel;
pub(crate) use team::{TeamPlaces, teams_max};

/// Tokens in one block of the KV cache.
pub(crate) const BLOCK: u32 = 16;

/// Marks a row whose token is the last one that its slot sampled.
pub(crate) const LAST_SAMPLED: u32 = u32::MAX;
