//! Tests of how mistakes are reported.

use super::*;

#[test]
fn a_backend_of_an_unknown_kind_shows_its_other_mistakes() {
    check(
        "[[backend]]\nkind = 'opnai'\nbase_url = 'nowhere'\nidle_timeut = '5s'\nfile = 'x'\n[[backend.model]]\n\
         name = 'm'\nprice_input = '1'\nhand_off = 'x'\ncontxt = 1\n[[key]]\nname = 'a'\nmodels = ['m']\n",
        &[
            "line 2: backend.kind: \"opnai\" is unknown; did you mean \"openai\"?",
            "line 3: backend.base_url: not a URL: relative URL without a base; write it like \"https://api.example.com/v1\"",
            "line 4: backend.idle_timeut: unknown key; did you mean idle_timeout?",
            "line 6: backend.model.price_output: missing beside the other price; a price of \"0\" is a price",
            "line 9: backend.model.hand_off: does not close the thought; write \"</think>\" where the thought is to end",
            "line 10: backend.model.contxt: unknown key; did you mean context?",
            "line 11: key.hash: missing; write what `stint keys new` printed, \"sha256:…\"; the key itself stays with its owner",
        ],
    );
    check(
        "[[backend]]\nkind = 'gguf'\nfile = 3\nmodels = ['m']\n",
        &[
            "line 2: backend.kind: \"gguf\" is unknown; write \"openai\" or \"anthropic\" or \"gemini\" or \"responses\" or \"llamacpp\" or \"vllm\" or \"sglang\" or \"ollama\" or \"deepseek\" or \"dashscope\" or \"openrouter\" or \"mistral\" or \"xai\" or \"local\"",
            "line 3: backend.file: a whole number in place of text; put it in quotes",
        ],
    );
}

/// CF-02: unknown keys and wrong units, by their lines.
#[test]
fn every_mistake_is_reported_at_once_with_its_line_and_its_remedy() {
    let text = "[server]\nlisten = 'here'\nheders_max = 10\ndrain = 5\n\n[[backend]]\nkind = 'bedrock'\nfoo = 1\n\n\
                [[key]]\nname = 'alice'\n";
    check(
        text,
        &[
            "line 2: server.listen: not an address to listen on; write an address and a port, like \
             \"127.0.0.1:8080\" or \"[::1]:8080\"",
            "line 3: server.heders_max: unknown key; did you mean headers_max?",
            "line 4: server.drain: a whole number in place of a time; write it with its unit, like \"10s\" or \
             \"500ms\"",
            "line 7: backend.kind: \"bedrock\" is unknown; write \"openai\" or \"anthropic\" or \"gemini\" or \"responses\" or \"llamacpp\" or \"vllm\" or \"sglang\" or \"ollama\" or \"deepseek\" or \"dashscope\" or \"openrouter\" or \"mistral\" or \"xai\" or \"local\"",
            "line 10: key.hash: missing; write what `stint keys new` printed, \"sha256:…\"; the key itself stays with \
             its owner",
        ],
    );
}

#[test]
fn a_text_that_is_not_toml_says_where() {
    let mistakes = load_text("[server]\nlisten = 127.0.0.1\n").map(drop).unwrap_err();
    assert_eq!(mistakes.errors[0].line, Some(2), "{mistakes}");
    check("[log]\nfilter = 'info'\nfilter = 'warn'\n", &["line 3: filter: stands twice; write it once"]);
}

#[test]
fn a_missing_file_is_one_mistake() {
    let mistakes = load(Some(Path::new("absent.toml")), &env).map(drop).unwrap_err();
    assert!(mistakes.to_string().starts_with("1 mistake in absent.toml\n  cannot be read: "), "{mistakes}");
}

/// CF-06, CF-08: a secret is named, not written, and is never empty.
#[test]
fn a_secret_in_the_file_is_refused() {
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key = 'sk-1'\n",
        &[
            "line 4: backend.api_key: a secret in the configuration; put it into an environment variable or a file \
           and name that: api_key_env or api_key_file",
        ],
    );
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key_env = 'OTHER_KEY'\n",
        &["line 4: backend.api_key_env: OTHER_KEY is not set; export it before starting"],
    );
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key_env = 'sk-1'\n",
        &[
            "line 4: backend.api_key_env: a secret in place of the name of a variable; export it under a name and write that \
             name here; this one stood in a file, so take a new one",
        ],
    );
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key_env = ' '\n",
        &["line 4: backend.api_key_env: names no variable; write the name of a variable that has the secret"],
    );
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key_env = '$'\n",
        &[
            "line 4: backend.api_key_env: what it names is not set, and not shown, since it may be a secret; write the name of a \
             variable that has the secret, never the secret",
        ],
    );
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\n[alerts]\nwebhook_env = 'https://hooks.example/T0'\n",
        &[
            "line 5: alerts.webhook_env: what it names is not set, and not shown, since it may be a secret; write the name of a \
           variable that has the secret, never the secret",
        ],
    );
}

/// IN-18: no upstream is where a cloud tells a machine its secrets.
#[test]
fn an_upstream_that_tells_secrets_is_refused() {
    check(
        "[[backend]]\nbase_url = 'http://169.254.169.254/v1'\nmodels = ['m']\n",
        &[
            "line 2: backend.base_url: leads to where a cloud tells a machine its own secrets; write the address of the model's server",
        ],
    );
}
