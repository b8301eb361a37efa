//! What is learned, and where its log is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::gateway::LearnSettings;

use super::{check, env, load_text, load_with};

fn learn(text: &str) -> LearnSettings {
    load_text(text).unwrap().learn
}

fn log_path(settings: LearnSettings) -> Option<PathBuf> {
    settings.log.map(|log| log.path)
}

#[test]
fn without_a_word_a_gateway_learns_and_logs_beside_its_ledger() {
    let mut usual = learn("");
    let log = usual.log.take().unwrap();
    assert_eq!(usual, LearnSettings::default());
    assert_eq!(log.path, Path::new("/home/alice/.local/share/stint/decisions.jsonl"));
    assert_eq!((log.size_max, log.files_max), (32 << 20, 4));
    let beside = learn("[ledger]\npath = '/data/books.db'\n");
    assert_eq!(log_path(beside).unwrap(), Path::new("/data/decisions.jsonl"));
    let memory = |name: &str| if name == "STINT_LEDGER" { Some(":memory:".to_owned()) } else { env(name) };
    assert_eq!(log_path(load_with("", &memory).unwrap().learn), None);
    assert_eq!(log_path(learn("[learn]\nlog = false\n")), None);
}

#[test]
fn what_is_stated_holds() {
    let stated = learn(
        "[learn]\nenabled = false\nkeep = '1h'\nstories_max = 5000\nsave_every = '2s'\nasked_again = '0s'\n\
         log_file = '/log/d.jsonl'\nlog_max = '1MiB'\nlog_files = 0\nforget = 0.99\nfeedback_max = 9\nprior_weight = 50\nspread = 0.5\n",
    );
    assert_eq!(
        (stated.enabled, stated.keep, stated.stories_max, stated.asked_again),
        (false, Duration::from_secs(3600), 5000, Duration::ZERO)
    );
    assert_eq!(stated.feedback_max, 9);
    let beliefs = &stated.beliefs;
    assert_eq!((beliefs.forget, beliefs.prior_weight, beliefs.spread), (0.99, 50.0, 0.5));
    let log = stated.log.unwrap();
    assert_eq!((&*log.path, log.size_max, log.files_max), (Path::new("/log/d.jsonl"), 1 << 20, 0));
}

#[test]
fn what_cannot_be_is_named() {
    check(
        "[learn]\nenabled = 1\nkeep = '1s'\nforget = 1\nlog = false\nlog_file = 'x'\n\
         stories_max = 0\nfeedback_max = 0\n",
        &[
            "line 2: learn.enabled: a whole number in place of a yes or no; write true or false, without quotes",
            "line 3: learn.keep: \"1s\" is out of range; write \"1m\" to \"2160h\"",
            "line 4: learn.forget: 1 is out of range; write 0.5 to 0.999999",
            "line 6: learn.log_file: a place for a log that is off; write log = true, or take it out",
            "line 7: learn.stories_max: 0 is out of range; write 1000 to 10000000",
            "line 8: learn.feedback_max: 0 is out of range; write 1 to 1000000",
        ],
    );
}

#[test]
fn a_shared_ledger_has_its_log_in_the_data_folder() {
    let shared = |name: &str| match name {
        "DATABASE_URL" => Some("postgres://u:p@127.0.0.1/stint".to_owned()),
        _ => env(name),
    };
    let settings = load_with("[ledger]\nurl_env = 'DATABASE_URL'\n", &shared).unwrap();
    let path = log_path(settings.learn);
    assert_eq!(path.unwrap(), Path::new("/home/alice/.local/share/stint/decisions.jsonl"));
}
