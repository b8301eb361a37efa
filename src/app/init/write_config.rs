//! The text of a first configuration.

use std::fmt::Write;

use super::found_server::FoundServer;

/// Where the API is to listen.
pub(super) fn listen_address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// A configuration that serves these, or the embedded model where there are none.
pub(super) fn config_text(servers: &[FoundServer], port: u16) -> String {
    let mut text = String::from(
        "# Written by `stint init`. The file config/stint.toml of the source has every setting, with what it does.\n\
         # `stint check` looks it over; `stint config show` says what holds and where that comes from.\n",
    );
    if port != 8080 {
        section(&mut text, "[server]");
        text.push_str("# 8080, which is usual, is taken on this machine.\n");
        member(&mut text, "listen", &listen_address(port));
    }
    if servers.is_empty() {
        text.push_str(
            "\n# The embedded model serves, which knows arithmetic alone. For models of yours:\n#[engine]\n#embedded = false\n\
             #\n#[[backend]]\n#kind = \"llamacpp\"              # or vllm, sglang, ollama, openai, anthropic, gemini, …\n\
             #base_url = \"http://127.0.0.1:8081\"\n#models = [\"…\"]\n",
        );
        return text;
    }
    section(&mut text, "[engine]");
    text.push_str("embedded = false\n");
    let mut named = std::collections::BTreeSet::new();
    for server in servers {
        // A name stands for one model: what is served twice is taken from the first that has it.
        let models: Vec<&String> = server.models.iter().filter(|model| named.insert(*model)).collect();
        if models.is_empty() {
            continue;
        }
        section(&mut text, "[[backend]]");
        member(&mut text, "kind", server.kind);
        member(&mut text, "base_url", &server.base);
        let names: Vec<String> = models.iter().map(|name| quoted(name)).collect();
        // Writing to a text does not fail.
        let _ = writeln!(text, "models = [{}]", names.join(", "));
    }
    text.push_str(
        "\n# Without keys only this machine may ask. A key (`stint keys new` makes one) with a limit of money needs prices:\n\
         # write each model as [[backend.model]] with price_input and price_output then.\n",
    );
    text
}

fn section(text: &mut String, name: &str) {
    let _ = writeln!(text, "\n{name}");
}

fn member(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {}", quoted(value));
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn server(kind: &'static str, port: u16, models: &[&str]) -> FoundServer {
        let models = models.iter().map(|&model| model.to_owned()).collect();
        FoundServer { kind, base: format!("http://127.0.0.1:{port}"), models }
    }

    /// The models of what is written for these.
    fn check(servers: &[FoundServer], port: u16, expected: &[&str]) {
        let text = config_text(servers, port);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let settings =
            config::load(Some(file.path()), &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let settings = settings.unwrap_or_else(|mistakes| panic!("{mistakes} in\n{text}"));
        let models: Vec<&str> = settings.catalog.models.keys().map(|name| &**name).collect();
        assert_eq!((models, settings.http.listen.port()), (expected.to_vec(), port), "{text}");
    }

    #[test]
    fn what_is_written_is_a_right_configuration() {
        check(&[], 8080, &["reasoner"]);
        check(&[server("llamacpp", 8080, &["m"])], 8081, &["m"]);
        let all = [
            server("ollama", 11434, &["qwen3:8b", "llama3.2:3b"]),
            server("vllm", 8000, &["Qwen/Qwen3-32B", "qwen3:8b"]),
            server("sglang", 30000, &["x"]),
            server("openai", 1234, &["y"]),
        ];
        check(&all, 8080, &["Qwen/Qwen3-32B", "llama3.2:3b", "qwen3:8b", "x", "y"]);
    }
}
