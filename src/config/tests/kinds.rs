use stint_backend::remote::openai::{BudgetMember, Dialect, PrefillMethod, ResumeMethod, ThinkingSwitch};
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_types::catalog::{Capability, EnforcementClass, UnknownMembers};

use super::{ModelSource, check, load_text};

/// A backend of one kind with one model, and more lines for that.
fn text(kind: &str, more: &str) -> String {
    format!(
        "[[backend]]\nkind = '{kind}'\nbase_url = 'http://127.0.0.1:8000/v1'\n[[backend.model]]\nname = 'm'\n{more}"
    )
}

#[test]
fn each_kind_has_its_ways_and_its_words() {
    let (resumed, native, turn) =
        (EnforcementClass::Continue, EnforcementClass::Native, EnforcementClass::Turn);
    for (kind, classes, dialect) in [
        ("deepseek", &[resumed, turn][..], Dialect::deepseek()),
        ("dashscope", &[native, turn], Dialect::dashscope()),
        ("openrouter", &[native, turn], Dialect::openrouter()),
        ("vllm", &[resumed, native, turn], Dialect::vllm()),
        // Of one that may not think nothing is resumed.
        ("sglang", &[native, turn], Dialect::sglang()),
        ("mistral", &[resumed, turn], Dialect::mistral()),
        ("xai", &[EnforcementClass::Effort], Dialect::xai()),
        ("ollama", &[turn], Dialect::ollama()),
        ("openai", &[EnforcementClass::Effort], Dialect::openai()),
    ] {
        let settings = load_text(&text(kind, "")).unwrap();
        assert_eq!(settings.catalog.models["m"].classes, classes, "{kind}");
        match &settings.backends[1].models[0].source {
            ModelSource::OpenAi(upstream) if kind != "vllm" => {
                assert_eq!(upstream.dialect, dialect, "{kind}");
            }
            ModelSource::Vllm(upstream) if kind == "vllm" => assert_eq!(upstream.dialect, dialect),
            other => panic!("{kind} became {other:?}"),
        }
    }
}

/// How long the first byte of that backend is waited for, and whether it is asked again.
fn first_byte(kind: &str, url: &str, more: &str) -> (u64, bool) {
    let text =
        format!("[[backend]]\nkind = '{kind}'\nbase_url = '{url}'\n{more}\n[[backend.model]]\nname = 'm'\n");
    let settings = load_text(&text).unwrap();
    let client = match &settings.backends[1].models[0].source {
        ModelSource::OpenAi(upstream) => &upstream.client,
        ModelSource::Vllm(upstream) => &upstream.client,
        ModelSource::LlamaCpp(upstream) => &upstream.client,
        other => panic!("{kind} became {other:?}"),
    };
    (client.first_byte.as_secs(), client.reads_for_long)
}

#[test]
fn servers_of_ones_own_have_ten_minutes_for_their_first_byte() {
    for kind in ["ollama", "vllm", "sglang", "llamacpp", "openai"] {
        assert_eq!(first_byte(kind, "http://127.0.0.1:8000/v1", ""), (600, true), "{kind}");
    }
    assert_eq!(first_byte("openai", "http://gpu-box:8000/v1", ""), (600, true));
    assert_eq!(first_byte("openai", "https://api.openai.com/v1", ""), (60, false));
    assert_eq!(first_byte("xai", "http://127.0.0.1:8000/v1", ""), (60, false));
    assert_eq!(first_byte("ollama", "http://10.0.0.2:11434/v1", "first_byte_timeout = '5s'"), (5, true));
}

#[test]
fn a_thought_is_resumed_on_sglang_where_something_says_that_there_is_one() {
    for more in ["thinking_max = 4096\n", "classes = ['continue', 'native', 'turn']\n"] {
        let settings = load_text(&text("sglang", more)).unwrap();
        assert_eq!(settings.catalog.models["m"].classes[0], EnforcementClass::Continue, "{more}");
    }
}

#[test]
fn a_provider_that_is_at_one_place_needs_no_address() {
    for kind in ["deepseek", "dashscope", "openrouter", "mistral", "xai"] {
        let text = format!("[[backend]]\nkind = '{kind}'\nmodels = ['m']\n");
        let settings = load_text(&text).unwrap();
        let ModelSource::OpenAi(upstream) = &settings.backends[1].models[0].source else { panic!("{kind}") };
        assert!(upstream.client.base_url.starts_with("https://"), "{kind}");
    }
}

#[test]
fn an_upstream_of_no_known_kind_says_what_it_has() {
    let more = "classes = ['turn', 'native', 'continue']\nbudget_as = 'thinking_budget'\nresume_as = 'final_message'\n\
                switch_as = 'chat_template_kwargs'\nswitch_argument = 'thinking'\nomit = ['top_k']\n";
    let settings = load_text(&text("openai", more)).unwrap();
    let model = &settings.catalog.models["m"];
    assert_eq!(model.classes, [EnforcementClass::Continue, EnforcementClass::Native, EnforcementClass::Turn]);
    let ModelSource::OpenAi(upstream) = &settings.backends[1].models[0].source else {
        panic!("{settings:?}")
    };
    assert!(
        model.hand_off.overhead.0 > upstream.new_turn_prompt.len() as u64,
        "the new turn's text is reserved"
    );
    let expected = Dialect {
        budget: Some(BudgetMember::ThinkingBudget),
        resume: ResumeMethod::FinalMessage,
        prefill: PrefillMethod::FinalMessage,
        switch: ThinkingSwitch::Template("thinking".into()),
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
    let ModelSource::Vllm(upstream) = &settings.backends[1].models[0].source else { panic!("{settings:?}") };
    assert!(
        upstream.hand_off.starts_with(&upstream.end_tag) && upstream.hand_off.ends_with("final<|message|>")
    );
}

/// What `stint check` prints beside "the configuration is right".
fn doubts(text: &str) -> Vec<String> {
    load_text(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

/// Those of them that say this.
fn doubts_of(text: &str, words: &str) -> Vec<String> {
    doubts(text).into_iter().filter(|told| told.contains(words)).collect()
}

#[test]
fn a_provider_that_answers_nobody_without_a_key_is_doubted_without_one() {
    let priced = "[[backend.model]]\nname = 'm'\nthinking_max = 0\nprice_input = 1\nprice_output = 1\n";
    let of = |kind: &str, more: &str| {
        doubts_of(&format!("[[backend]]\nkind = '{kind}'\n{more}{priced}"), "answers no request without")
    };
    for kind in ["anthropic", "gemini", "deepseek", "dashscope", "openrouter", "mistral", "xai"] {
        let told = of(kind, "");
        assert!(
            told.len() == 1 && told[0].starts_with("line 1: backend.api_key_env: no key, and "),
            "{told:?}"
        );
        assert!(told[0].ends_with("export the key, and name its variable: api_key_env = \"…\""), "{told:?}");
        assert_eq!(of(kind, "api_key_env = 'OPENAI_API_KEY'\n"), Vec::<String>::new());
        assert_eq!(
            of(kind, "base_url = 'http://127.0.0.1:1/v1'\n"),
            Vec::<String>::new(),
            "a proxy may have it"
        );
    }
    assert_eq!(of("openai", "base_url = 'https://api.openai.com/v1'\n").len(), 1);
    assert_eq!(of("vllm", "base_url = 'http://127.0.0.1:1/v1'\n"), Vec::<String>::new());
    let two = "[[backend.deployment]]\napi_key_env = 'OPENAI_API_KEY'\n[[backend.deployment]]\n";
    let told = of("xai", two);
    assert!(told.len() == 1 && told[0].starts_with("line 5: backend.deployment.api_key_env"), "{told:?}");
}

/// CF-07: who starts without a price is told.
#[test]
fn models_without_a_price_are_named_once() {
    let text = "[[backend]]\nbase_url = 'http://127.0.0.1:1/v1'\nmodels = ['b', 'a']\n";
    let told = doubts_of(text, "no price is known");
    assert_eq!(told.len(), 1, "{told:?}");
    let weighed = "line 3: backend: no price is known: b is weighed at 0.05 and 0.2 dollars for a million tokens, a is weighed at";
    assert!(told[0].contains(weighed), "{told:?}");
    assert_eq!(doubts(""), Vec::<String>::new(), "the embedded one has a price");
}

#[test]
fn models_that_nothing_is_known_of_are_said_to_be_taken_for_ones_that_do_not_think() {
    let of = |kind: &str, more: &str| {
        let priced = "price_input = 1\nprice_output = 1\n";
        let section = format!("[[backend.model]]\nname = 'mine'\n{priced}{more}");
        let backend = format!("[[backend]]\nkind = '{kind}'\nbase_url = 'http://127.0.0.1:1/v1'\n{section}");
        doubts_of(&backend, "it is not known whether")
    };
    let told = of("openai", "");
    let expected = "line 5: backend: it is not known whether mine can think: no thought is expected, so budgets and efforts \
                    stated for one have no effect; say thinking_max (0 for no thoughts) or efforts, or run `stint probe`";
    assert_eq!(told, [expected]);
    assert_eq!(of("responses", "").len(), 1);
    for (kind, more) in [
        ("openai", "thinking_max = 0\n"),
        ("openai", "thinking_max = 4096\nefforts = [{ word = 'low', usual = 100 }]\n"),
        ("openai", "upstream = 'gpt-4.1-mini'\n"),
        ("openai", "serves = ['embeddings']\n"),
        ("responses", "thinking = 'never'\n"),
        ("vllm", ""),
    ] {
        assert_eq!(of(kind, more), Vec::<String>::new(), "{kind} {more}");
    }
}

#[test]
fn what_a_kind_has_not_cannot_be_served_by_it() {
    let refused = |kind: &str, word: &str| {
        format!(
            "line 6: backend.model.serves: \"{word}\" is not to be had from kind \"{kind}\"; take it out, or serve the \
             model by a backend of another kind, like \"openai\""
        )
    };
    for kind in ["anthropic", "gemini", "responses"] {
        check(&text(kind, "serves = ['embeddings']\n"), &[&refused(kind, "embeddings")]);
        check(&text(kind, "serves = ['chat', 'completions']\n"), &[&refused(kind, "completions")]);
    }
    check(&text("deepseek", "serves = ['embeddings']\n"), &[&refused("deepseek", "embeddings")]);
    assert!(load_text(&text("openai", "serves = ['embeddings']\n")).is_ok());
}

#[test]
fn a_syntax_of_calls_is_of_no_use_without_tools() {
    check(
        &text("vllm", "tool_syntax = 'hermes'\ncapabilities = []\n"),
        &[
            "line 6: backend.model.tool_syntax: of no use to a model that calls no tools; say that it calls tools, \
           capabilities = [\"tools\"], or take it out",
        ],
    );
    assert!(load_text(&text("vllm", "tool_syntax = 'hermes'\n")).is_ok());
}

#[test]
fn a_local_model_holds_to_schemas_and_tells_the_chances_of_tokens_unless_a_list_says_otherwise() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let of = |more: &str| {
        let toml =
            format!("[[backend]]\nkind = 'local'\nfile = '{file}'\n[[backend.model]]\nname = 'm'\n{more}\n");
        let models = load_text(&toml).unwrap().catalog.models.clone();
        ["m", "reasoner"].map(|name| {
            models[name].has_capability(Capability::Schema)
                && models[name].has_capability(Capability::Logprobs)
        })
    };
    assert_eq!(of(""), [true, true]);
    assert_eq!(of("capabilities = ['tools']"), [false, true]);
}

#[test]
fn a_local_model_stays_unless_it_is_said_when_it_comes_and_goes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let of = |more: &str| {
        let toml = format!("[[backend]]\nkind = 'local'\nfile = '{file}'\nmodels = ['m']\n{more}\n");
        let settings = load_text(&toml).unwrap();
        let models = settings.backends.iter().flat_map(|backend| &backend.models);
        let source = models.map(|model| &model.source).find(|source| matches!(source, ModelSource::File(..)));
        let Some(ModelSource::File(_, local)) = source else { panic!("{settings:?}") };
        let minutes = local.keep_alive.map(|time| time.as_secs() / 60);
        (local.load_on_startup, minutes, source.unwrap().stays_loaded())
    };
    assert_eq!(of(""), (true, None, true));
    assert_eq!(of("keep_alive = '10m'"), (true, Some(10), false));
    assert_eq!(of("load_on_startup = false"), (false, Some(5), false));
    assert_eq!(of("load_on_startup = false\nkeep_alive = '0s'"), (false, Some(0), false));
    let remote = "[[backend]]\nbase_url = 'http://127.0.0.1:1/v1'\nmodels = ['m']\nkeep_alive = '1m'\n";
    let told = load_text(remote).unwrap_err().to_string();
    assert!(told.contains("backend.keep_alive"), "{told}");
}

#[test]
fn what_is_known_of_a_local_model_by_its_name_is_kept_apart_from_what_is_stated() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let of = |more: &str| {
        let toml = format!(
            "[[backend]]\nkind = 'local'\nfile = '{file}'\n[[backend.model]]\nname = 'qwen3-coder-30b'\n\
             capabilities = ['tools']\n{more}\n"
        );
        let settings = load_text(&toml).unwrap();
        let mut models = settings.backends.iter().flat_map(|backend| &backend.models);
        let file = |source: &ModelSource| match source {
            ModelSource::File(_, local) => Some(local.clone()),
            _ => None,
        };
        let local = models.find_map(|model| file(&model.source)).unwrap();
        (local.settings.tool_syntax, local.settings.tool_syntax_usual, local.tags_are_stated)
    };
    let coder = Some(ToolCallSyntax::Coder);
    assert_eq!(of(""), (None, coder, false));
    assert_eq!(of("tool_syntax = 'hermes'"), (Some(ToolCallSyntax::Hermes), coder, false));
    assert_eq!(of("start_tag = '<think>'"), (None, coder, true));
}

#[test]
fn ones_own_servers_are_taken_to_have_what_servers_have_and_to_know_their_members() {
    let of = |kind: &str, base: &str, more: &str| {
        let toml = format!(
            "[[backend]]\nkind = '{kind}'\nbase_url = '{base}'\n{more}\n[[backend.model]]\nname = 'm'\n"
        );
        let model = load_text(&toml).unwrap().catalog.models["m"].clone();
        (
            model.has_capability(Capability::Tools) && model.has_capability(Capability::Logprobs),
            model.members.unknown,
        )
    };
    let local = "http://127.0.0.1:8000/v1";
    for kind in ["openai", "vllm", "sglang", "ollama", "llamacpp"] {
        assert_eq!(of(kind, local, ""), (true, UnknownMembers::Pass), "{kind}");
    }
    for (kind, base) in [("openai", "https://api.openai.com/v1"), ("deepseek", local), ("mistral", local)] {
        assert_eq!(of(kind, base, ""), (false, UnknownMembers::Refuse), "{kind}");
        let stated = of(kind, base, "unknown_members = 'drop'");
        assert_eq!(stated, (false, UnknownMembers::Drop), "{kind}");
    }
}

#[test]
fn a_model_that_always_thinks_is_not_asked_for_an_answer_without_a_thought() {
    let classes =
        |more: &str| load_text(&text("dashscope", more)).unwrap().catalog.models["m"].classes.clone();
    assert_eq!(classes("thinks_always = true\n"), [EnforcementClass::Native]);
    assert_eq!(classes(""), [EnforcementClass::Native, EnforcementClass::Turn]);
    for (more, expected) in [("thinks_always = true\n", true), ("", false)] {
        let settings = load_text(&text("dashscope", more)).unwrap();
        let ModelSource::OpenAi(upstream) = &settings.backends[1].models[0].source else { panic!("{more}") };
        assert_eq!(upstream.thinks_always, expected, "no tool is forced on it by turning its thoughts off");
    }
    check(
        &text("dashscope", "thinks_always = true\nclasses = ['native', 'turn']\n"),
        &[
            "line 7: backend.model.classes: \"turn\" asks for the answer with thinking off, and the model thinks always; \
           take \"turn\" out, or thinks_always",
        ],
    );
}

#[test]
fn more_effort_is_never_less() {
    check(
        "[thinking.efforts]\nmedium = 0.2\nhigh = 3\n",
        &[
            "line 2: thinking.efforts.medium: \"medium\" would be less than \"low\"; more effort never means a shorter \
             thought: keep them in order",
            "line 3: thinking.efforts.high: \"xhigh\" would be less than \"high\"; more effort never means a shorter \
             thought: keep them in order",
        ],
    );
    assert!(load_text("[thinking.efforts]\nhigh = 3\nxhigh = 3\nmax = 4\ntiny = 0.01\n").is_ok());
    check(
        &text(
            "openai",
            "thinking_max = 9000\nefforts = [{ word = 'high', usual = 5 }, { word = 'low', usual = 9 }]\n",
        ),
        &[
            "line 7: backend.model.efforts: \"low\" stands after \"high\"; keep to their order: none, minimal, low, \
           medium, high, xhigh, max",
        ],
    );
}

#[test]
fn families_are_known_wherever_they_are_served() {
    let of = |kind: &str, name: &str| {
        let text = format!(
            "[[backend]]\nkind = '{kind}'\nbase_url = 'http://127.0.0.1:1/v1'\nmodels = ['{name}']\n"
        );
        let settings = load_text(&text).unwrap();
        let source = settings.backends[1].models[0].source.clone();
        let (ModelSource::OpenAi(upstream) | ModelSource::Vllm(upstream)) = source else { panic!("{kind}") };
        ((*settings.catalog.models[name]).clone(), upstream)
    };
    for kind in ["openai", "vllm", "sglang", "ollama"] {
        assert!(of(kind, "qwen/qwen3-4b-thinking-2507").1.starts_in_thinking, "{kind}");
        assert_eq!(of(kind, "magistral-small-2509").1.end_tag, "[/THINK]", "{kind}");
        let (oss, _) = of(kind, "gpt-oss-20b");
        assert!(
            oss.thinks_always && !oss.classes.contains(&EnforcementClass::Turn),
            "{kind}: {:?}",
            oss.classes
        );
        assert_eq!(oss.efforts.len(), 3, "{kind}");
    }
    assert_eq!(of("ollama", "gpt-oss:20b").0.classes, [EnforcementClass::Effort]);
}

/// Who counts the prompts of the one model of a backend, at each of its deployments.
fn check_readers(backend: &str, expected: &[Option<&str>]) {
    let settings = load_text(&format!("[[backend]]\n{backend}")).unwrap();
    let model = settings.backends.iter().flat_map(|backend| &backend.models).next_back().unwrap();
    let readers: Vec<_> =
        model.deployments.iter().map(|deployment| model.tokenizer_key(deployment)).collect();
    let readers: Vec<_> = readers.iter().map(Option::as_deref).collect();
    assert_eq!(readers, expected, "{backend}");
}

#[test]
fn who_counts_a_prompt_is_known_where_a_name_is_one_tokenizer() {
    let two = "[[backend.deployment]]\nbase_url = 'http://10.0.0.1/v1'\n[[backend.deployment]]\nbase_url = 'http://10.0.0.2/v1'\n";
    check_readers(&format!("kind = 'vllm'\nmodels = ['m']\n{two}"), &[Some("vllm m"); 2]);
    check_readers(
        &format!("kind = 'vllm'\nmodels = ['m']\n{two}upstream = 'n'\n"),
        &[Some("vllm m"), Some("vllm n")],
    );
    let said = |word| format!("[[backend.model]]\nname = 'm'\nreads_alike = {word}\n{two}");
    check_readers(&said(true), &[Some("openai m"); 2]);
    check_readers(&format!("kind = 'vllm'\n{}", said(false)), &[None; 2]);
    // A server that speaks OpenAI's API may be anything, and pass requests on to anybody.
    let own =
        "[[backend.deployment]]\nbase_url = 'https://eu.api.openai.com/v1'\napi_key_env = 'OPENAI_API_KEY'\n";
    check_readers(&format!("models = ['m']\n{own}{two}"), &[Some("openai m"), None, None]);
    check_readers(
        "kind = 'deepseek'\nmodels = ['m']\napi_key_env = 'OPENAI_API_KEY'\n",
        &[Some("deepseek m")],
    );
    for kind in ["deepseek", "anthropic", "openrouter", "llamacpp"] {
        let there = format!("kind = '{kind}'\nbase_url = 'http://10.0.0.1'\nmodels = ['m']\n");
        check_readers(&there, &[None]);
    }
    check_readers("kind = 'openrouter'\nmodels = ['m']\napi_key_env = 'OPENAI_API_KEY'\n", &[None]);
}

/// What is not known of a model is told at its own line, whichever backend comes first.
#[test]
fn what_is_missing_of_a_model_is_told_at_its_own_line() {
    let text = "[[backend]]\nbase_url = 'http://127.0.0.1:1/v1'\n[[backend.model]]\nname = 'told'\nprice_input = 1\n\
                price_output = 1\nability = 0.5\ncontext = 9000\nthinking_max = 0\ncapabilities = ['tools']\n\
                [[backend]]\nname = 'second'\nbase_url = 'http://127.0.0.1:2/v1'\n[[backend.model]]\nname = 'bare'\n\
                capabilities = []\n";
    let told = doubts(text);
    for words in [
        "no price is known: bare is weighed at",
        "whether bare can think",
        "nothing beside plain text is expected of bare",
        "the ability of bare is not known",
        "the context of bare is not known",
    ] {
        let expected = "line 15: backend: ";
        assert!(
            told.iter().any(|told| told.starts_with(expected) && told.contains(words)),
            "{words} in {told:?}"
        );
    }
    assert!(told.iter().all(|told| !told.contains("told can") && !told.contains("of told")), "{told:?}");
}

#[test]
fn a_key_that_lets_nobody_in_any_more_is_doubted() {
    let key = |expires: &str| {
        format!("[[key]]\nname = 'alice'\nhash = '{}'\nexpires_at = '{expires}'\n", super::hash("sk-alice"))
    };
    assert_eq!(doubts(&key("2099-01-01T00:00:00Z")), Vec::<String>::new());
    let told = doubts(&key("2020-01-01T00:00:00Z"));
    assert!(told.len() == 1 && told[0].starts_with("line 4: key.expires_at: past, so that"), "{told:?}");
}

#[test]
fn an_endpoints_address_is_no_base() {
    let text = "[[backend]]\nbase_url = \"http://127.0.0.1:8000/v1/chat/completions\"\nmodels = [\"m\"]\n";
    let told = "line 2: backend.base_url: ends with the endpoint /chat/completions; write where its API begins: \
                \"http://127.0.0.1:8000/v1\"";
    check(text, &[told]);
}

#[test]
fn who_takes_a_schema_writes_json_and_some_write_json_alone() {
    let of = |kind: &str, name: &str, more: &str| {
        let toml = format!(
            "[[backend]]\nkind = '{kind}'\napi_key_env = 'OPENAI_API_KEY'\n[[backend.model]]\nname = '{name}'\n{more}\n"
        );
        let model = load_text(&toml).unwrap().catalog.models[name].clone();
        [Capability::Json, Capability::Schema].map(|capability| model.capabilities.contains(&capability))
    };
    for name in ["deepseek-v4-pro", "deepseek-v4-flash", "deepseek-of-tomorrow"] {
        assert_eq!(of("deepseek", name, ""), [true, false], "{name}");
    }
    assert_eq!(of("deepseek", "deepseek-v4-pro", "capabilities = ['schema']"), [true, true]);
    assert_eq!(of("deepseek", "deepseek-v4-pro", "capabilities = ['tools']"), [false, false]);
    assert_eq!(of("anthropic", "claude-sonnet-5-5", ""), [true, true]);
    assert_eq!(of("anthropic", "claude-sonnet-5-5", "capabilities = ['tools']"), [true, false]);
    assert_eq!(of("gemini", "gemini-2.5-flash", ""), [true, true]);
}
