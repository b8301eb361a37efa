//! Environment variables, secrets and paths.

use super::*;

#[test]
fn a_ledger_on_a_server_is_named_by_a_variable_or_a_file_and_shows_no_password() {
    let env = |name: &str| match name {
        "DATABASE_URL" => Some("postgres://stint:pa55@db/stint\n".to_owned()),
        name => env(name),
    };
    let settings = load_with("[ledger]\nurl_env = 'DATABASE_URL'\n", &env).unwrap();
    assert!(matches!(settings.storage, storage::Settings::Postgres(_)));
    assert!(!format!("{settings:?}").contains("pa55"));
    check(
        "[ledger]\nurl_env = 'DATABASE_URL'\n",
        &["line 2: ledger.url_env: DATABASE_URL is not set; export it before starting"],
    );
    check(
        "[ledger]\nurl = 'postgres://stint:pa55@db/stint'\n",
        &[
            "line 2: ledger.url: a secret in the configuration; put it into an environment variable or a file \
         and name that: url_env or url_file",
        ],
    );
    let both = load_with("[ledger]\npath = 'a.db'\nurl_env = 'DATABASE_URL'\n", &env).unwrap_err();
    assert_eq!(
        both.errors[0].to_string(),
        "line 2: ledger.path: a second place for the ledger; take it out, or the url"
    );
}

#[test]
fn what_stands_in_place_of_a_variables_name_is_told_without_a_secret() {
    let of = |written: &str| {
        let text = format!(
            "[[backend]]\nbase_url = 'http://127.0.0.1:1'\nmodels = ['m']\napi_key_env = '{written}'\n"
        );
        load_text(&text).unwrap_err().errors[0].to_string()
    };
    for written in ["$NO_KEY", "${NO_KEY}"] {
        let told =
            format!("line 4: backend.api_key_env: {written} is not set; write the name alone: \"NO_KEY\"");
        assert_eq!(of(written), told);
    }
    for secret in ["sk-proj-1234567890", "AIzaSy1234567890"] {
        let told = of(secret);
        assert!(told.contains("a secret in place of the name of a variable"), "{told}");
        assert!(!told.contains("1234567890"), "{told}");
    }
}

/// Docker sends the quotation marks of its files of variables along.
#[test]
fn a_secret_in_quotation_marks_is_doubted() {
    let warned = |value: &'static str| {
        let env = move |name: &str| if name == "QUOTED" { Some(value.to_owned()) } else { env(name) };
        let text = "[[backend]]\nbase_url = 'http://127.0.0.1:1'\nmodels = ['m']\napi_key_env = 'QUOTED'\n";
        let warnings = load_with(text, &env).unwrap().warnings;
        warnings
            .iter()
            .any(|warning| warning.key == "backend.api_key_env" && warning.what.contains("quotation"))
    };
    assert!(warned("\"sk-1\"") && warned("'sk-1'\n"));
    assert!(!warned("sk-1") && !warned("\"sk-1") && !warned("\""));
}

#[test]
fn the_environment_goes_before_the_file() {
    let env = |name: &str| match name {
        "STINT_LISTEN" => Some("127.0.0.1:9999".to_owned()),
        "STINT_LEDGER" => Some("/data/ledger.db".to_owned()),
        "STINT_LOG" => Some("debug".to_owned()),
        _ => None,
    };
    let settings =
        load_with("[server]\nlisten = '127.0.0.1:1'\n[ledger]\npath = 'other.db'\n", &env).unwrap();
    assert_eq!(settings.http.listen.port(), 9999);
    assert_eq!(kept_in(&settings), Path::new("/data/ledger.db"));
    assert_eq!(settings.log.filter, "debug");
}

#[test]
fn a_misspelt_level_of_the_log_is_a_mistake_and_does_not_silence_it() {
    let wrong = "is no level, and nothing here logs by that name; the levels are off, error, warn, info, debug and \
                 trace; a module has one, like \"info,hyper=debug\"";
    for (filter, word) in [("inof", "inof"), ("info,hyperr", "hyperr"), ("stintt::http", "stintt::http")] {
        let told = format!("line 2: log.filter: \"{word}\" {wrong}");
        check(&format!("[log]\nfilter = '{filter}'\n"), &[&*told]);
        let env = |name: &str| (name == "STINT_LOG").then(|| filter.to_owned()).or_else(|| env(name));
        assert!(load_with("", &env).unwrap_err().to_string().contains(wrong), "{filter}");
    }
    for filter in [
        "INFO",
        "off",
        "info,stint::requests=off",
        "stint",
        "warn,stint_ledger,sqlx::query",
        "info,other=debug,",
    ] {
        let text = format!("[log]\nfilter = '{filter}'\n");
        assert!(load_text(&text).is_ok(), "{filter}: {:?}", load_text(&text).err());
    }
}

/// A command that only reads stored data needs the ledger's address, and no secret of a server's.
#[test]
fn a_command_that_only_reads_needs_no_server_secrets() {
    let text = "[admin]\ntoken_env = 'NOT_THERE'\n[[backend]]\nbase_url = 'http://127.0.0.1:1/v1'\n\
                api_key_file = '/not/there'\nmodels = ['m']\n";
    assert_eq!(load_text(text).map(drop).unwrap_err().errors.len(), 2);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let settings = load_offline(Some(file.path()), &env).unwrap();
    assert!(settings.admin.is_none());
    file.write_all(b"[ledger]\nurl_env = 'NOT_THERE'\n").unwrap();
    assert_eq!(load_offline(Some(file.path()), &env).map(drop).unwrap_err().errors.len(), 1);
}

/// After a refused reload the verbs that look after the running gateway read the refused file.
#[test]
fn a_verb_that_needs_some_sections_passes_over_mistakes_elsewhere() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"nonsense = 1\n[server]\nlisten = '127.0.0.1:7'\n[log]\nfilter = 'inof'\n").unwrap();
    let (settings, elsewhere) = load_sections(Some(file.path()), &env, &["server"]).unwrap();
    assert_eq!((settings.http.listen.port(), elsewhere.unwrap().errors.len()), (7, 2));
    assert!(load_sections(Some(file.path()), &env, &["log"]).is_err());
    for (text, needed) in [
        ("[serve]\nlisten = '127.0.0.1:7'\n", "server"),
        ("[server]\nlisten = '127.0.0.1:7'\nlisten = '127.0.0.1:8'\n", "server"),
        ("[server]\nlisten = 7\n", "server"),
        ("[ledger]\npaht = 'a.db'\n", "ledger"),
        ("[ledger\n", "ledger"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let refused = load_sections(Some(file.path()), &env, &[needed]).map(drop).unwrap_err();
        assert!(!refused.errors.is_empty(), "{text}");
    }
    assert!(load_sections(None, &env, &["server", "ledger"]).unwrap().1.is_none());
}

#[test]
fn a_mistake_in_the_environment_is_named() {
    let env = |name: &str| (name == "STINT_LISTEN" || name == "HOME").then(|| "/x".to_owned());
    let mistakes = load(None, &env).map(drop).unwrap_err();
    assert!(mistakes.to_string().contains("STINT_LISTEN: not an address to listen on"), "{mistakes}");
}

#[test]
fn relative_paths_start_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stint.toml");
    std::fs::write(&file, "[ledger]\npath = 'ledger.db'\n").unwrap();
    assert_eq!(kept_in(&load(Some(&file), &env).unwrap()), folder.path().join("ledger.db"));
}
