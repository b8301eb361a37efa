use super::{Source, check, load_text};
use crate::backend::remote::openai::{BudgetMember, Dialect, Resume, Switch};
use crate::catalog::Class;

/// A backend of one kind with one model, and more lines for that.
fn text(kind: &str, more: &str) -> String {
    format!(
        "[[backend]]\nkind = '{kind}'\nbase_url = 'http://127.0.0.1:8000/v1'\n[[backend.model]]\nname = 'm'\n{more}"
    )
}

#[test]
fn each_kind_has_its_ways_and_its_words() {
    let (resumed, native, turn) = (Class::Continue, Class::Native, Class::Turn);
    for (kind, classes, dialect) in [
        ("deepseek", &[resumed, turn][..], Dialect::deepseek()),
        ("dashscope", &[native, turn], Dialect::dashscope()),
        ("openrouter", &[native, turn], Dialect::openrouter()),
        ("vllm", &[resumed, native, turn], Dialect::vllm()),
        ("sglang", &[resumed, native, turn], Dialect::sglang()),
        ("mistral", &[resumed, turn], Dialect::mistral()),
        ("xai", &[Class::Effort], Dialect::xai()),
        ("ollama", &[turn], Dialect::ollama()),
        ("openai", &[Class::Effort], Dialect::openai()),
    ] {
        let settings = load_text(&text(kind, "")).unwrap();
        assert_eq!(settings.catalog.models["m"].classes, classes, "{kind}");
        match &settings.backends[1].models[0].source {
            Source::OpenAi(upstream) if kind != "vllm" => assert_eq!(upstream.dialect, dialect, "{kind}"),
            Source::Vllm(upstream) if kind == "vllm" => assert_eq!(upstream.dialect, dialect),
            other => panic!("{kind} became {other:?}"),
        }
    }
}

#[test]
fn a_provider_that_is_at_one_place_needs_no_address() {
    for kind in ["deepseek", "dashscope", "openrouter", "mistral", "xai"] {
        let text = format!("[[backend]]\nkind = '{kind}'\nmodels = ['m']\n");
        let settings = load_text(&text).unwrap();
        let Source::OpenAi(upstream) = &settings.backends[1].models[0].source else { panic!("{kind}") };
        assert!(upstream.client.base_url.starts_with("https://"), "{kind}");
    }
}

#[test]
fn an_upstream_of_no_known_kind_says_what_it_has() {
    let more = "classes = ['turn', 'native', 'continue']\nbudget_as = 'thinking_budget'\nresume_as = 'final_message'\n\
                switch_as = 'chat_template_kwargs'\nswitch_argument = 'thinking'\nomit = ['top_k']\n";
    let settings = load_text(&text("openai", more)).unwrap();
    let model = &settings.catalog.models["m"];
    assert_eq!(model.classes, [Class::Continue, Class::Native, Class::Turn]);
    let Source::OpenAi(upstream) = &settings.backends[1].models[0].source else { panic!("{settings:?}") };
    assert!(model.hand_off.overhead.0 > upstream.turn.len() as u64, "the new turn's text is reserved");
    let expected = Dialect {
        budget: Some(BudgetMember::ThinkingBudget),
        resume: Resume::FinalMessage,
        switch: Switch::Template("thinking".into()),
        omits: vec!["top_k".into()],
        ..Dialect::openai()
    };
    assert_eq!(upstream.dialect, expected);
}

#[test]
fn a_way_that_an_upstream_has_no_words_for_is_refused() {
    check(
        &text("openai", "classes = ['turn', 'native', 'continue']\nturn = 'go on'\n"),
        &[
            "line 6: backend.model.classes: \"continue\" is more than this upstream is known to have; say how a thought \
             is resumed, like resume_as = \"final_message\"",
            "line 6: backend.model.classes: \"native\" is more than this upstream is known to have; say what takes the \
             budget, like budget_as = \"thinking_budget\"",
            "line 6: backend.model.classes: \"turn\" is more than this upstream is known to have; say what turns \
             thinking off, like switch_as = \"enable_thinking\"",
            "line 7: backend.model.turn: does not quote the thought; write \"{thought}\" where it is to stand",
        ],
    );
    check(
        &text("deepseek", "classes = ['native']\n"),
        &[
            "line 6: backend.model.classes: \"native\" is more than this upstream is known to have; say what takes the \
             budget, like budget_as = \"thinking_budget\"",
        ],
    );
}

#[test]
fn a_family_that_answers_in_a_message_of_its_own_is_known() {
    let text = "[[backend]]\nkind = 'vllm'\nbase_url = 'http://127.0.0.1:8000/v1'\nmodels = ['openai/gpt-oss-20b']\n";
    let settings = load_text(text).unwrap();
    let Source::Vllm(upstream) = &settings.backends[1].models[0].source else { panic!("{settings:?}") };
    assert!(
        upstream.hand_off.starts_with(&upstream.end_tag) && upstream.hand_off.ends_with("final<|message|>")
    );
}
