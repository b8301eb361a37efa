//! Accounts and their limits.

use super::*;

#[test]
fn limits_say_one_unit_and_one_window() {
    let key = format!("[[key]]\nname = 'alice'\nhash = 'sha256:{}'\n", "a".repeat(64));
    let what = |limits: &str| {
        let mistakes = load_text(&format!("{key}limits = [{limits}]\n")).map(drop).unwrap_err();
        mistakes.errors.iter().map(|mistake| mistake.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(what("{ money = 0.5, per = 'day' }"), ["a fraction in place of an amount of money"]);
    assert_eq!(what("{ money = '1', thinking = 1, per = 'day' }"), ["not one limit"]);
    assert_eq!(what("{ money = '1' }"), ["missing"]);
    assert_eq!(what("{ money = '1', per = 'dya' }"), ["\"dya\" is unknown"]);
    assert_eq!(
        what("{ money = '1', per = 'day' }, { money = '2', per = 'day' }"),
        ["a second limit of money per day"]
    );
    assert_eq!(what("{ concurrency = 8, per = 'day' }"), ["without meaning for concurrency"]);
    let twice = "{ money = '1', per = 'day', tag = 'a', each = 'user' }";
    assert_eq!(what(twice), ["a limit on more than one of model, tag and each"]);
    assert!(
        load_text(&format!("{key}limits = [{{ requests = 6, per = 'minute' }}, {{ concurrency = 2 }}]\n"))
            .is_ok()
    );
}

#[test]
fn accounts_are_paths_and_stand_once() {
    let hash = "a".repeat(64);
    let load = |text: &str| {
        load_text(&text.replace("HASH", &format!("hash = 'sha256:{hash}'"))).map_err(|mistakes| {
            mistakes
                .errors
                .iter()
                .map(|mistake| format!("{}: {}", mistake.key, mistake.what))
                .collect::<Vec<_>>()
        })
    };
    let wrong = |text: &str| load(text).map(drop).unwrap_err();
    let twice = "[[account]]\nname = 'acme/bob'\n[[key]]\nname = 'bob'\naccount = 'acme'\nHASH\n";
    assert_eq!(wrong(twice), ["key.name: \"acme/bob\" stands here twice"]);
    let empty = "account.name: an account needs a name, and each part between slashes too";
    assert_eq!(wrong("[[account]]\nname = 'acme//x'\n"), [empty]);
    let zone =
        "account.time_zone: there is no time zone \"Berlin\": write it like \"Europe/Berlin\" or \"UTC\"";
    assert_eq!(wrong("[[account]]\nname = 'a'\ntime_zone = 'Berlin'\n"), [zone]);
    let share = "account.warn_at: 0 is not a share: write a whole number of percent from 1 to 100";
    assert_eq!(wrong("[[account]]\nname = 'a'\nwarn_at = 0\n"), [share]);
    let settings = load("[[key]]\nname = 'bob'\naccount = 'acme/research'\nHASH\n").unwrap();
    assert_eq!(settings.tenants[0].account.as_str(), "acme/research/bob");
}
