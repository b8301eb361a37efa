//! Settings that cannot change while the process lives: a reload that changes them is refused.

use crate::config::{ConfigErrors, Diagnostic, Settings};

/// Refuses a configuration that changes any of them, and names all of these.
pub(super) fn check(now: &Settings, next: &Settings) -> Result<(), ConfigErrors> {
    let (http, other) = (&now.http, &next.http);
    let admin = [now, next].map(|settings| settings.admin.as_ref().map(|access| access.listen));
    // How many may run at once is set in another section, which may change.
    let remembered = stint_sessions::idempotency::Settings {
        running_max: now.idempotency.running_max,
        ..next.idempotency.clone()
    };
    let same = [
        ("server.listen", http.listen == other.listen),
        ("server.metrics_listen", http.metrics_listen == other.metrics_listen),
        ("admin.listen", admin[0] == admin[1]),
        ("gateway.flights_max", now.gateway.flights_max == next.gateway.flights_max),
        ("ledger", now.storage == next.storage && now.ledger == next.ledger),
        ("idempotency", now.idempotency == remembered),
        ("responses", now.responses == next.responses),
        ("learn", now.learn == next.learn),
        ("traces", now.traces == next.traces),
        ("log.format", now.log.format == next.log.format),
    ];
    let errors: Vec<Diagnostic> = if now.is_written && !next.is_written {
        // All other changes follow from it.
        vec![emptied()]
    } else {
        same.iter().filter(|(_, is_same)| !is_same).map(|(key, _)| mistake(key)).collect()
    };
    if errors.is_empty() {
        return Ok(());
    }
    Err(ConfigErrors { source: "the new configuration".to_owned(), errors })
}

fn mistake(key: &str) -> Diagnostic {
    let what = "not as it was at the start, and settled since then".to_owned();
    let remedy = "restart to change it, or put it back".to_owned();
    Diagnostic { line: None, key: key.to_owned(), what, remedy }
}

/// Overwriting a file on a full disk leaves it empty, and an empty configuration would mean all defaults.
fn emptied() -> Diagnostic {
    let what = "there is nothing in it any more".to_owned();
    let remedy = "write it again (is the disk full?); restart where that is meant".to_owned();
    Diagnostic { line: None, key: String::new(), what, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn settings(toml: &str) -> Settings {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let ledger = |name: &str| (name == "STINT_LEDGER").then(|| "here.db".to_owned());
        let has_own = toml.contains("[ledger]");
        config::load(Some(file.path()), &|name| ledger(name).filter(|_| !has_own)).unwrap()
    }

    fn check(toml: &str, expected: &[&str]) {
        let base = "[ledger]\npath = \"here.db\"\n";
        let toml = if toml.contains("[ledger]") { toml.to_owned() } else { format!("{base}{toml}") };
        let refused = super::check(&settings(base), &settings(&toml)).err();
        let list = refused.map(|mistakes| mistakes.errors).unwrap_or_default();
        let keys: Vec<&str> = list.iter().map(|mistake| &*mistake.key).collect();
        assert_eq!(keys, expected, "{toml}");
    }

    #[test]
    fn what_is_settled_at_the_start_is_refused_by_name() {
        check("", &[]);
        check("[server]\nlisten = \"127.0.0.1:1\"\nconnections_max = 7\n", &["server.listen"]);
        check("[server]\nmetrics_listen = \"127.0.0.1:2\"\n", &["server.metrics_listen"]);
        check("[gateway]\nflights_max = 7\n", &["gateway.flights_max"]);
        check("[ledger]\npath = \"elsewhere.db\"\n", &["ledger"]);
        check("[ledger]\npath = \"here.db\"\nstall_max = \"9s\"\n", &["ledger"]);
        check("[idempotency]\nreplay_streams = true\n", &["idempotency"]);
        check("[responses]\nkeep = \"1h\"\n[learn]\nforget = 0.9\n", &["responses", "learn"]);
        check("[learn]\nstories_max = 5000\n", &["learn"]);
        check("[log]\nformat = \"json\"\n", &["log.format"]);
    }

    #[test]
    fn a_file_that_was_emptied_is_refused_and_one_that_was_empty_is_not() {
        let (written, empty) = (settings("[engine]\nsequences = 1\n"), settings(" \n# nothing\n"));
        let told = super::check(&written, &empty).unwrap_err().to_string();
        assert!(told.contains("nothing in it any more; write it again"), "{told}");
        assert_eq!(super::check(&empty, &empty), Ok(()));
        assert_eq!(super::check(&empty, &written), Ok(()));
    }

    #[test]
    fn what_requests_go_by_may_change() {
        check(
            "[server]\nbody_max = \"1MiB\"\nhead_timeout = \"3s\"\nheartbeat = \"1s\"\ndrain = \"1s\"\n[gateway]\n\
             time_max = \"20s\"\n[agents]\ntracker = false\n[log]\nfilter = \"debug\"\n[engine]\nembedded = false\n\
             [resilience]\nqueue_max = 3\n[[backend]]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"m\"]\n",
            &[],
        );
    }
}
