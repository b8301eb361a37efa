//! What the operator says of models.

use stint_types::catalog::{Capability, EnforcementClass};
use stint_types::units::Tokens;

use super::*;

/// A server that named it could not start; who only looks at what is kept does not need it.
#[test]
fn a_local_model_s_file_must_be_one() {
    let text = |file: &str| format!("[[backend]]\nkind = 'local'\nmodels = ['m']\nfile = '{file}'\n");
    let remedy = "name the model's GGUF file, by a path that starts from this file's folder";
    let absent = "/not/there.gguf cannot be read: No such file or directory (os error 2)";
    check(&text("/not/there.gguf"), &[&format!("line 4: backend.file: {absent}; {remedy}")]);
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let other = format!("{manifest} is no GGUF file: it does not begin with GGUF");
    check(&text(manifest), &[&format!("line 4: backend.file: {other}; {remedy}")]);
    let folder = load_text(&text("/")).map(drop).unwrap_err().to_string();
    assert!(folder.contains("line 4: backend.file: / cannot be read: "), "{folder}");
    assert!(load_text(&text(REASONER)).is_ok());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text("/not/there.gguf").as_bytes()).unwrap();
    assert!(load_offline(Some(file.path()), &env).is_ok());
}

/// CF-02: a second model of one name is refused, and so is a route to none.
#[test]
fn models_that_cannot_work_are_refused() {
    let backend = "[[backend]]\nbase_url = 'http://127.0.0.1:1'\n[[backend.model]]\nname = 'm'\n";
    let what = |model: &str| {
        let mistakes = load_text(&format!("{backend}{model}\n")).map(drop).unwrap_err();
        assert_eq!(mistakes.errors.len(), 1, "{mistakes}");
        let mistake = &mistakes.errors[0];
        format!("{}: {}", mistake.key.trim_start_matches("backend.model."), mistake.what)
    };
    assert_eq!(what("price_input = '1'"), "price_output: missing beside the other price");
    assert_eq!(what("context = 16"), "context: 16 tokens leave no room for a prompt");
    assert_eq!(what("[[backend.model]]\nname = 'm'"), "name: a second model \"m\"");
    assert_eq!(what("[[backend.model]]\nname = 'reasoner'"), "name: a second model \"reasoner\"");
    assert_eq!(what("capabilities = ['tool']"), "capabilities: \"tool\" is unknown");
    assert_eq!(
        what("thinking_max = 100\nefforts = [{ word = 'low', usual = 9 }, { word = 'high', usual = 8 }]"),
        "efforts: not in order"
    );
    assert_eq!(
        what("efforts = [{ word = 'low', usual = 9 }]"),
        "thinking_max: missing for a model with efforts"
    );
    assert_eq!(what("[[route]]\nname = 'r'\nmodels = ['reasone']"), "route.models: no model \"reasone\"");
}

#[test]
fn upstreams_take_penalties_unless_a_list_of_capabilities_says_otherwise() {
    let check = |backend: &str, list: &str, expected: bool| {
        let text = format!("[[backend]]\n{backend}\n[[backend.model]]\nname = 'm'\n{list}\n");
        let settings = load_text(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let capabilities = &settings.catalog.models["m"].capabilities;
        assert_eq!(capabilities.contains(&Capability::Penalties), expected, "{text}");
    };
    let openai = "base_url = 'http://127.0.0.1:1'";
    let (llamacpp, local) =
        (format!("kind = 'llamacpp'\n{openai}"), format!("kind = 'local'\nfile = '{REASONER}'"));
    check(openai, "", true);
    check(&llamacpp, "", true);
    check(&local, "", true);
    check(openai, "capabilities = ['tools']", false);
    check(openai, "capabilities = ['penalties']", true);
    check(&local, "capabilities = ['penalties']", true);
}

#[test]
fn providers_with_apis_of_their_own_are_told_to_think_in_their_own_ways() {
    let text = |kind: &str, more: &str| {
        format!("[[backend]]\nkind = '{kind}'\nbase_url = 'http://h'\n[[backend.model]]\nname = 'm'\n{more}")
    };
    let model = |kind: &str, more: &str| load_text(&text(kind, more)).unwrap().catalog.models["m"].clone();
    let budget = model("anthropic", "");
    assert_eq!(
        (&budget.classes[..], budget.thinking_min),
        (&[EnforcementClass::Native, EnforcementClass::Turn][..], Tokens(1024))
    );
    assert!(!budget.stops_billing && budget.has_capability(Capability::Tools));
    let adaptive = model("anthropic", "thinking = 'adaptive'\n");
    assert_eq!(
        (&adaptive.classes[..], adaptive.thinking_min),
        (&[EnforcementClass::Effort][..], Tokens::ZERO)
    );
    assert_eq!(
        model("anthropic", "thinking = 'adaptive'\nclasses = ['turn']").classes,
        [EnforcementClass::Turn]
    );
    assert_eq!(model("anthropic", "thinking = 'never'\n").thinking_max, Tokens::ZERO);
    assert_eq!(model("gemini", "").classes, [EnforcementClass::Native]);
    assert_eq!(model("gemini", "thinking = 'level'\n").classes, [EnforcementClass::Effort]);
    assert_eq!(model("responses", "").classes, [EnforcementClass::Effort]);
    check(
        &text("anthropic", "thinking = 'adaptive'\nclasses = ['native']\n"),
        &[
            "line 7: backend.model.classes: \"native\" does not fit the way it is asked to think; write another, or say it \
           by thinking = \"…\"",
        ],
    );
}
