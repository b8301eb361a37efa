//! Models that do not think, and those into whose text nothing may be put.

use stint_types::catalog::{EnforcementClass, Model};

use super::*;

fn model(more: &str) -> Model {
    let text = format!(
        "[[backend]]\nkind = \"llamacpp\"\nbase_url = \"http://127.0.0.1:9\"\n[[backend.model]]\nname = \"m\"\n\
         price_input = \"0\"\nprice_output = \"0\"\n{more}"
    );
    load_text(&text).unwrap().catalog.models["m"].as_ref().clone()
}

fn classes(more: &str) -> Vec<EnforcementClass> {
    model(more).classes
}

#[test]
fn what_an_operator_says_of_a_model_that_does_not_think_is_kept_as_said() {
    for (more, expected) in [("", false), ("thinking_max = 0", true), ("thinking_max = 100", false)] {
        assert_eq!(model(more).never_thinks, expected, "{more:?}");
    }
}

#[test]
fn nothing_is_held_of_a_model_that_does_not_think_and_nothing_put_in_where_that_is_said() {
    assert_eq!(classes(""), [EnforcementClass::Continue, EnforcementClass::Native]);
    assert_eq!(classes("thinking_max = 0"), [EnforcementClass::Native]);
    assert_eq!(classes("hand_off = \"\""), [EnforcementClass::Native]);
}
