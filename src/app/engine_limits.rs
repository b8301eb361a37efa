//! Lowers a local model's catalogue entry to what its engine can really do, so that no plan offers more.

use stint_backend::local::LocalModelLimits;
use stint_types::catalog::Model;
use stint_types::units::Tokens;

/// A thought leaves its answer one part in so many of the context.
const ANSWER_PART: u64 = 4;

/// What keeps a context below what the model could take, in errors about it.
const CACHE: &str = "the engine's cache holds no more: `kv_tokens` in [engine]";

/// Lowers what a model may take to what it was measured to have. A context that was `stated` beyond that is warned of.
pub(super) fn apply_engine_limits(model: &mut Model, stated: Option<Tokens>, limits: LocalModelLimits) {
    if let Some(stated) = stated.filter(|stated| *stated > limits.context) {
        tracing::warn!(
            model = %model.name,
            stated = stated.0,
            real = limits.context.0,
            "the stated context is more than the engine has, which counts; state at most that, or raise `context` and \
             `kv_tokens` of [engine] where the model itself allows more",
        );
    }
    if limits.context < model.context.min(limits.context_wanted) {
        model.context_limited_by = Some(CACHE);
    }
    cap(&mut model.context, limits.context);
    if !limits.thinks {
        // There is nothing to hold, and no thought to hand over from: the answer has it all.
        cap(&mut model.thinking_max, Tokens::ZERO);
        cap(&mut model.thinking_min, Tokens::ZERO);
    }
    cap(&mut model.hand_off.overhead, limits.overhead);
    model.hand_off.overhead_without_thought = limits.unthinking_overhead.min(model.hand_off.overhead);
    // One token of prompt at least comes before all that.
    let answer = Tokens((model.context.0 / ANSWER_PART).max(1));
    let answer = model.solution_max.map_or(answer, |most| most.min(answer));
    let beside = Tokens(1) + model.hand_off.overhead + answer;
    cap(&mut model.thinking_max, model.context.saturating_sub(beside));
    let most = model.thinking_max;
    cap(&mut model.thinking_min, most);
}

fn cap(value: &mut Tokens, most: Tokens) {
    *value = (*value).min(most);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::config;

    fn embedded() -> Model {
        let settings = config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        Arc::unwrap_or_clone(settings.unwrap().catalog.models["reasoner"].clone())
    }

    /// Context, most thought, usual answer, and both overheads of a model with this context and these limits.
    fn check(context: u64, (thinking, answer): (u64, u64), real: u64, expected: [u64; 5]) {
        let known = Model {
            context: Tokens(context),
            thinking_max: Tokens(thinking),
            solution_max: Some(Tokens(answer)),
            ..embedded()
        };
        let mut model = known;
        let limits = LocalModelLimits {
            context: Tokens(real),
            context_wanted: Tokens(4096),
            overhead: Tokens(5),
            unthinking_overhead: Tokens(1),
            thinks: true,
        };
        apply_engine_limits(&mut model, None, limits);
        let hand_off = &model.hand_off;
        let found = [
            model.context,
            model.thinking_max,
            model.solution_max.unwrap(),
            hand_off.overhead,
            hand_off.overhead_without_thought,
        ];
        assert_eq!(found.map(|tokens| tokens.0), expected);
        assert_eq!(model.context_limited_by.is_some(), real < context.min(4096));
    }

    #[test]
    fn a_model_is_said_to_have_what_its_engine_has() {
        check(32_768, (8192, 1024), 512, [512, 512 - 1 - 5 - 128, 1024, 5, 1]);
        check(512, (256, 64), 160, [160, 160 - 1 - 5 - 40, 64, 5, 1]);
    }

    #[test]
    fn what_fits_stays_as_it_is_said() {
        check(512, (256, 64), 4096, [512, 256, 64, 5, 1]);
        check(512, (0, 64), 512, [512, 0, 64, 5, 1]);
    }

    #[test]
    fn a_model_without_room_for_a_thought_does_not_think() {
        check(512, (256, 64), 8, [8, 0, 64, 5, 1]);
    }

    #[test]
    fn a_model_whose_template_knows_of_no_thoughts_has_all_for_its_answer() {
        let mut model = Model { thinking_max: Tokens(6000), thinking_min: Tokens(10), ..embedded() };
        let limits = LocalModelLimits {
            context: Tokens(8192),
            context_wanted: Tokens(8192),
            overhead: Tokens(2),
            unthinking_overhead: Tokens(2),
            thinks: false,
        };
        apply_engine_limits(&mut model, None, limits);
        assert_eq!((model.thinking_max, model.thinking_min), (Tokens::ZERO, Tokens::ZERO));
    }
}
