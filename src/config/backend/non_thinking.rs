//! Models that do not think, and those into whose text nothing may be put.

use crate::config::reader::Section;
use stint_backend::remote::openai::EffortMember;
use stint_types::catalog::{EnforcementClass, HandOff, Model};
use stint_types::units::Tokens;

use super::declared_model::DeclaredModel;
use super::kind::BackendKind;
use super::model_config::ModelConfig;
use super::model_source::ModelSource;

/// Who says one of these means a model that thinks.
const SAYING: [&str; 5] = ["classes", "hand_off", "start_tag", "end_tag", "starts_in_thinking"];

/// There is no thought to be held of a model that has none, and none to be closed where nothing may be put in for that:
/// what is asked for then is the server's own answer.
pub(super) fn adjust_hand_off(
    section: Option<&Section<'_>>,
    DeclaredModel { kind, config: served, model, is_thinking_known: is_told, .. }: &mut DeclaredModel,
) {
    // An unknown model may think all the same.
    let thinks = model.thinking_max > Tokens::ZERO || !*is_told;
    if let ModelSource::LlamaCpp(settings) = &mut served.source {
        // What is stated holds; otherwise the chat template decides.
        let is_stated = section.is_some_and(|section| section.has("thinking_max"));
        settings.thinks = (is_stated || !thinks).then_some(thinks);
    }
    let says = |key| section.is_some_and(|section| section.has(key));
    let is_said = *is_told || SAYING.iter().any(|key| says(key));
    if let ModelSource::Vllm(settings) = &mut served.source {
        settings.thinks = is_said.then_some(thinks);
    }
    if !thinks && !model.thinks_always && !says("effort_as") {
        drop_efforts(served);
    }
    // There the template cannot be asked for. A first part would end the answer of one that does not think.
    if *kind == BackendKind::Sglang && !is_said {
        model.classes.retain(|class| *class != EnforcementClass::Continue);
    }
    let puts_in_nothing = says("hand_off") && model.hand_off.text.is_empty();
    if model.classes.contains(&EnforcementClass::Inline) || (thinks && !puts_in_nothing) {
        return;
    }
    // Who states the classes means them.
    if !says("classes") && model.classes.iter().any(|class| *class != EnforcementClass::Continue) {
        model.classes.retain(|class| *class != EnforcementClass::Continue);
    }
    let is_held = model
        .classes
        .iter()
        .any(|class| matches!(class, EnforcementClass::Continue | EnforcementClass::Effort));
    // A new turn has words of its own, which are reserved.
    let is_own = puts_in_nothing && model.classes == [EnforcementClass::Native];
    if (!thinks && !is_held) || is_own {
        clear_hand_off(model);
    }
}

/// A model that does not think refuses the word for how hard it is to, "none" too. A text that begins in a thought has one.
fn drop_efforts(served: &mut ModelConfig) {
    if let Some(settings) = served.source.chat_mut().filter(|settings| !settings.starts_in_thinking) {
        settings.dialect.effort = EffortMember::Never;
    }
}

/// Nothing is handed over where nothing is thought.
fn clear_hand_off(model: &mut Model) {
    model.hand_off =
        HandOff { text: String::new(), overhead: Tokens::ZERO, overhead_without_thought: Tokens::ZERO };
}
