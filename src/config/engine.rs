//! `[engine]`: the local engine.

use std::ops::RangeInclusive;
use std::time::Duration;

use stint_backend::remote::prompt_cache::PromptCacheSharing;

use super::reader::{ByteSize, Section};

/// A second is more than any step takes that is served to somebody who waits.
const STEP_TIMEOUTS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);

/// From what the smallest models take to what no device has.
const MEMORY: RangeInclusive<ByteSize> = ByteSize(1 << 20)..=ByteSize(1 << 44);

const PROMPT_CACHES: [(&str, Option<PromptCacheSharing>); 3] = [
    ("account", Some(PromptCacheSharing::Account)),
    ("shared", Some(PromptCacheSharing::Everyone)),
    ("off", None),
];

const KV_FORMATS: [(&str, KvCacheFormat); 3] =
    [("f16", KvCacheFormat::F16), ("f32", KvCacheFormat::F32), ("q8_0", KvCacheFormat::Q8_0)];

/// The format of the numbers in the key-value cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvCacheFormat {
    /// 16 bits each.
    F16,
    /// 32 bits each, as they are computed.
    F32,
    /// 8 bits each, and a scale for every 32.
    Q8_0,
}

/// How the engine of local models runs.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSettings {
    /// Part of the name of the device to use; without it, the best one.
    pub adapter: Option<String>,
    /// Sequences that run at once.
    pub sequences: u32,
    /// Tokens of one sequence, prompt included, where less than the model's own limit is wanted.
    pub context: Option<u32>,
    /// Tokens that the cache holds, all sequences together. A job takes room as it needs it.
    pub kv_tokens: u32,
    /// What the cache keeps keys and values as.
    pub kv_format: KvCacheFormat,
    /// Whose prompts are found in the cache again; `None` where none is.
    pub prompt_cache: Option<PromptCacheSharing>,
    /// The most prompt tokens that run in one step, beside one token of every sequence past its prompt. As many as
    /// suit the device without it.
    pub prefill_chunk: Option<u32>,
    /// Jobs that may wait beside those that run.
    pub queue: usize,
    /// Whether a software driver will do; for small models alone where nothing is said.
    pub allow_cpu: Option<bool>,
    /// The most bytes of the device's memory that models may take together; nine tenths of what it has without it.
    pub memory_max: Option<u64>,
    /// The most that one step may take; what is plausible for the model and the device without it.
    pub step_timeout: Option<Duration>,
}

/// `[engine]`, whether the embedded model is served, and whether a model whose file cannot be used is left out.
pub(super) fn engine(root: &Section<'_>) -> (EngineSettings, bool, bool) {
    let engine = root.section("engine");
    let settings = EngineSettings {
        adapter: engine.get("adapter"),
        sequences: engine.within("sequences", 1..=256).unwrap_or(8),
        context: engine.within("context", 16..=1 << 20),
        kv_tokens: engine.within("kv_tokens", 256..=1 << 24).unwrap_or(8192),
        kv_format: engine.word("kv_format", &KV_FORMATS).unwrap_or(KvCacheFormat::F16),
        prompt_cache: engine
            .word("prompt_cache", &PROMPT_CACHES)
            .unwrap_or(Some(PromptCacheSharing::Account)),
        prefill_chunk: engine.within("prefill_chunk", 16..=8192),
        queue: engine.within("queue", 1..=65_536).unwrap_or(64),
        allow_cpu: engine.get("allow_cpu"),
        memory_max: engine.within("memory_max", MEMORY).map(|bytes| bytes.0 as u64),
        step_timeout: engine.within("step_timeout", STEP_TIMEOUTS),
    };
    (settings, engine.get_or("embedded", cfg!(feature = "local")), engine.get_or("skip_unusable", false))
}
