//! `[engine]`: the local engine.

use stint_engine::Settings;

use super::reader::Section;

/// `[engine]`, whether the embedded model is served, and whether a model whose file cannot be used is left out.
pub(super) fn engine(root: &Section<'_>) -> (Settings, bool, bool) {
    let engine = root.section("engine");
    let usual = Settings::default();
    let settings = Settings {
        adapter: engine.get("adapter"),
        sequences: engine.within("sequences", 1..=256).unwrap_or(usual.sequences),
        context: engine.within("context", 16..=1 << 20),
        kv_tokens: engine.within("kv_tokens", 256..=1 << 24).unwrap_or(usual.kv_tokens),
        prefill_chunk: engine.within("prefill_chunk", 16..=8192).unwrap_or(usual.prefill_chunk),
        queue: engine.within("queue", 1..=65_536).unwrap_or(usual.queue),
        // The embedded model is small enough for a software driver, and must run everywhere.
        allow_cpu: engine.get_or("allow_cpu", true),
    };
    (settings, engine.get_or("embedded", true), engine.get_or("skip_unusable", false))
}
