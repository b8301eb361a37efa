//! What an operator says of keys, of those who manage them, and what an import takes.

use crate::config;
use stint_types::tenant::{DirectorySnapshot, FeedbackTrust, KeyStoreState, to_toml};

use super::{check, hash, load_text, with_examples};

/// CF-08, CF-09: the admin API is served only to clients with a token that cannot be guessed.
#[test]
fn the_admin_api_needs_a_token() {
    let what = |text: &str| {
        let mistakes = load_text(&format!("[admin]\n{text}\n")).map(drop).unwrap_err();
        mistakes.errors.iter().map(|one| format!("{}: {}", one.key, one.what)).collect::<Vec<_>>()
    };
    assert_eq!(what(""), ["admin.token_env: no token"]);
    assert_eq!(what("token_env = 'EMPTY'"), ["admin.token_env: EMPTY is not set"]);
    assert_eq!(what("token_env = 'ABSENT'"), ["admin.token_env: ABSENT is not set"]);
    assert_eq!(what("token_env = 'SHORT'"), ["admin.token_env: a token of fewer than 16 characters"]);
    assert_eq!(what("token = 'in-the-text-itself'"), ["admin.token: a secret in the configuration"]);
    let good = "token_env = 'STINT_ADMIN_TOKEN'";
    let same = format!("listen = '127.0.0.1:8080'\n{good}");
    assert_eq!(what(&same), ["admin.listen: the address of another listener"]);
    let public = format!("listen = '0.0.0.0:8090'\n{good}");
    assert_eq!(what(&public), ["admin.hosts: missing for an address that others reach"]);
    assert!(load_text(&format!("[admin]\n{public}\nhosts = ['stint.internal']\n")).is_ok());
    let settings = load_text(&format!("[admin]\n{good}\n")).unwrap();
    assert_eq!(settings.admin.as_ref().unwrap().listen.to_string(), "127.0.0.1:8090");
    assert!(!format!("{settings:?}").contains("sk-secret"), "a secret shows itself");
}

#[test]
fn keys_are_limited_to_what_there_is() {
    let key = format!("[[key]]\nname = 'alice'\nhash = '{}'\n", hash("sk-alice"));
    check(
        &format!("{key}models = ['reasone']\nroutes = ['nowhere at all']\nexpires_at = 'soon'\n"),
        &[
            "line 4: key.models: there is no \"reasone\" among the models; did you mean \"reasoner\"?",
            "line 5: key.routes: there is no \"nowhere at all\" among the routes; these are there: auto",
            "line 6: key.expires_at: not a moment; write it like \"2027-01-31T12:00:00Z\"",
        ],
    );
    let settings = load_text(&format!("{key}expires_at = 2027-01-31T12:00:00Z\n")).unwrap();
    assert_eq!(settings.tenants[0].expires.unwrap().to_string(), "2027-01-31T12:00:00Z");
}

#[test]
fn the_words_of_a_key_count_up_to_a_limit_unless_the_operator_trusts_it() {
    let key = format!("[[key]]\nname = 'alice'\nhash = '{}'\n", hash("sk-alice"));
    let trust = |more: &str| load_text(&format!("{key}{more}\n")).unwrap().tenants[0].feedback;
    assert_eq!(trust(""), FeedbackTrust::Bounded);
    assert_eq!(trust("feedback = 'bounded'"), FeedbackTrust::Bounded);
    assert_eq!(trust("feedback = 'trusted'"), FeedbackTrust::Trusted);
    let mistakes = load_text(&format!("{key}feedback = 'always'\n")).map(drop).unwrap_err();
    assert_eq!(mistakes.errors[0].key, "key.feedback");
}

#[test]
fn what_was_exported_is_read_as_it_was() {
    let catalog = load_text(&with_examples()).unwrap().catalog;
    let text = with_examples();
    let (_, keys) = text.split_once("[[key]]").unwrap();
    let (keys, _) = keys.split_once("[[issuer]]").unwrap();
    let declared = config::keys(&format!("[[key]]{keys}"), "an import", &catalog).unwrap();
    let book = DirectorySnapshot::new(declared.clone(), false, KeyStoreState::default());
    let exported = to_toml(&book);
    let mut again = config::keys(&exported, "an export", &catalog).unwrap();
    again.terms.sort_by(|one, other| one.account.cmp(&other.account));
    let mut expected = declared;
    expected.terms.sort_by(|one, other| one.account.cmp(&other.account));
    assert_eq!(again, expected, "{exported}");
    let mistakes = config::keys("[server]\n[[key]]\nname = ''\n", "an import", &catalog).unwrap_err();
    let lines: Vec<_> = mistakes.errors.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [Some(1), Some(2), Some(3)], "{mistakes}");
}

/// CF-10: a limit that would refuse everything is a mistake.
#[test]
fn limits_are_on_models_that_there_are_and_let_something_through() {
    let limits = "limits = [\n{ money = '1', per = 'day', model = 'reasonr' },\n\
                  { money = '1', per = 'day', model = 'auto' },\n\
                  { money = '1', per = 'day', model = 'of another house' },\n{ concurrency = 0 },\n\
                  { requests = 0, per = 'day' },\n{ money = '1', per = 'day', model = 'reasoner' }]\n";
    let complaints = |section: &str| {
        let of = |line, key, what| format!("line {line}: {section}.limits.{key}: {what}");
        [
            of(5, "model", "there is no model \"reasonr\"; did you mean \"reasoner\"?"),
            of(6, "model", "there is no model \"auto\"; it is a route: limit the models that it leads to"),
            of(7, "model", "there is no model \"of another house\"; these are there: reasoner"),
            of(
                8,
                "concurrency",
                "0 would refuse every request; write at least 1, or take the limit out; `requests = 0` lets nothing \
                 through",
            ),
        ]
    };
    let key = format!("[[key]]\nname = 'alice'\nhash = '{}'\n{limits}", hash("sk-alice"));
    check(&key, &complaints("key").each_ref().map(String::as_str));
    let account =
        format!("# An account.\n\n[[account]]\nname = 'acme'\n{limits}").replacen("# An account.\n", "", 1);
    check(&account, &complaints("account").each_ref().map(String::as_str));
}

/// Both secrets of a key are taken while one replaces the other; three are a mistake, and so is one twice.
#[test]
fn a_key_may_have_two_hashes_while_one_replaces_the_other() {
    let [old, new, third] = ["sk-old", "sk-new", "sk-third"].map(hash);
    let load = |hashes: &str| load_text(&format!("[[key]]\nname = 'alice'\nhash = {hashes}\n"));
    let tenants = load(&format!("['{new}', '{old}']")).unwrap().tenants;
    let hashes = |tenant: &stint_types::tenant::Tenant| {
        [tenant.key, tenant.second].map(|hash| hash.unwrap().to_string())
    };
    assert_eq!(tenants.iter().map(hashes).collect::<Vec<_>>(), [[new.to_string(), old.to_string()]]);
    for (wrong, what) in [
        (format!("['{old}', '{new}', '{third}']"), "3 hashes"),
        (format!("['{old}', '{old}']"), "one hash twice"),
        ("[]".to_owned(), "0 hashes"),
    ] {
        let mistakes = load(&wrong).map(drop).unwrap_err();
        assert_eq!(mistakes.errors[0].what, what);
    }
    let other = format!("[[key]]\nname = 'bob'\nhash = '{old}'\n");
    let shared = load_text(&format!("[[key]]\nname = 'alice'\nhash = ['{new}', '{old}']\n{other}"));
    assert_eq!(shared.map(drop).unwrap_err().errors[0].what, "the hash of \"alice\" too");
}

/// Its spending would be in nobody's budget.
#[test]
fn a_key_of_an_account_that_is_nearly_declared_is_doubted() {
    let of = |account: &str| {
        let declared = "[[account]]\nname = 'acme/research'\n[[account]]\nname = 'acme/team1'\n";
        let key = format!("[[key]]\nname = 'alice'\naccount = '{account}'\nhash = '{}'\n", hash("sk-alice"));
        let warnings = load_text(&format!("{declared}{key}")).unwrap().warnings;
        let told = warnings.iter().map(ToString::to_string);
        told.filter(|told| told.contains("key.account")).collect::<Vec<_>>()
    };
    let told = "line 7: key.account: there is no [[account]] \"acme/reserch\": no limits hold for it but those above it; \
                did you mean \"acme/research\"?";
    assert_eq!(of("acme/reserch"), [told]);
    assert_eq!(of("amce/research").len(), 1);
    assert_eq!(of("acme-research").len(), 1);
    for account in ["acme/research", "acme", "acme/sales", "acme/team2", "elsewhere", "acne/research"] {
        assert_eq!(of(account), Vec::<String>::new(), "{account}");
    }
}
