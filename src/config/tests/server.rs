//! The server's own limits, and who may reach it.

use super::*;

#[test]
fn what_still_runs_is_not_forgotten() {
    let text = |keep| format!("[gateway]\ntime_max = '1h'\n[idempotency]\nkeep = '{keep}'\n");
    check(
        &text("10m"),
        &[
            "line 4: idempotency.keep: shorter than a request may run; write at least time_max of [gateway], or \"0s\" to \
           switch idempotency off",
        ],
    );
    for keep in ["1h", "0s"] {
        load_text(&text(keep)).unwrap();
    }
}

#[test]
fn a_caller_may_state_a_later_deadline_than_nobody_wrote() {
    let times = |text: &str| {
        let gateway = load_text(text).unwrap().gateway;
        (gateway.time_max.as_secs(), gateway.deadline_max.as_secs())
    };
    assert_eq!(times(""), (600, 3_600));
    assert_eq!(times("[gateway]\ntime_max = '20s'\n"), (20, 20));
    assert_eq!(times("[idempotency]\nkeep = '20m'\n"), (600, 1_200), "what still runs is not forgotten");
}

#[test]
fn there_is_room_for_one_body_at_least() {
    check(
        "[server]\nbody_max = '2MiB'\nbodies_max = '1MiB'\n",
        &[
            "line 3: server.bodies_max: less than body_max; give it room for one body at least; for several, some times body_max",
        ],
    );
    let settings = load_text("[server]\nbody_max = '512MiB'\n").unwrap();
    assert_eq!(settings.http.bodies_max, 512 << 20, "where nothing is said");
}

/// CF-01, CF-09: an open server for everybody is refused.
#[test]
fn only_loopback_is_served_without_keys() {
    let open = "[server]\nlisten = '0.0.0.0:8080'\n";
    let mistakes = load_text(open).map(drop).unwrap_err();
    assert_eq!(mistakes.errors[0].what, "0.0.0.0:8080 would be open to everyone who reaches it");
    let none = load_text(&format!("key = []\n{open}")).map(drop).unwrap_err();
    assert_eq!(none.errors[0].what, mistakes.errors[0].what, "no keys are no keys, however it is written");
    assert!(load_text(&format!("{open}[keys]\ngenerate = 'first-key'\n")).is_ok());
    let hash = format!("sha256:{}", "0".repeat(64));
    assert!(load_text(&format!("{open}[[key]]\nname = 'alice'\nhash = '{hash}'\n")).is_ok());
    let faulty = load_text(&format!("{open}[[key]]\nname = 'alice'\nhash = 'sha256:zz'\n"));
    let faulty = faulty.map(drop).unwrap_err().to_string();
    assert!(faulty.contains("key.hash") && !faulty.contains("would be open"), "{faulty}");
}

/// CF-08: a key of nothing is refused.
#[test]
fn keys_that_nobody_or_everybody_has_are_refused() {
    let nothing = hash("");
    check(
        &format!("[[key]]\nname = 'alice'\nhash = '{nothing}'\n"),
        &[
            "line 3: key.hash: the hash of nothing, not of a key; `stint keys new` makes a key and prints its hash",
        ],
    );
    let first = format!("[keys]\ngenerate = 'k'\n[[key]]\nname = 'first'\nhash = '{}'\n", hash("sk-a"));
    check(
        &first,
        &[
            "line 4: key.name: \"first\" is the name of the key that [keys] generate makes; give this one another name",
        ],
    );
    assert!(load_text(&first.replace("generate = 'k'", "")).is_ok(), "without generate the name is free");
    assert!(
        COMPLETE.contains(&format!("sha256:{}", "0".repeat(64))),
        "the example is the hash of no known key"
    );
}
