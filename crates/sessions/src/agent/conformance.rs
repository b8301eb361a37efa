//! The conformance tests that every episode store must pass.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use stint_types::catalog::TaskClass;
use stint_types::chat::{EpisodeLimits, EpisodeRaise, Request};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, Count, EpisodeId, Money, Timestamp, Tokens};

use super::{
    AddedWords, Addition, Additions, AnsweredStep, BrokenOffStep, CountedPrompt, EpisodeEnding,
    EpisodeLength, EpisodeOwner, EpisodeStore, HistoryHash, IdenticalEpisode, LastStep, RouteTurns,
    StoredEpisode,
};

const EVER: Timestamp = Timestamp(0);

/// Runs the whole suite on an empty store.
pub async fn conforms(store: &dyn EpisodeStore) {
    limits_are_only_lowered(store, "limited").await;
    limits_stay(store, "limited").await;
    a_raise_is_on_top_of_what_is_stated(store).await;
    runs_are_listed_by_account_and_name(store).await;
    the_runs_that_were_used_last_are_listed_first(store).await;
    a_run_is_its_account_s_alone(store).await;
    a_run_is_its_key_s_alone(store).await;
    a_run_is_found_by_its_last_history(store).await;
    identical_ones_are_handed_out_once_each(store).await;
    a_refused_caller_is_handed_the_same_again(store).await;
    what_is_too_old_is_not_found(store).await;
    steps_are_counted_and_the_latest_courses_told(store).await;
    what_was_added_stays_with_its_run(store).await;
    a_step_that_is_answered_is_not_found_by_its_beginning(store).await;
    an_episode_whose_step_runs_is_handed_out_last(store).await;
    a_beginning_is_taken_back(store).await;
    the_oldest_are_purged_first(store).await;
    of_many_identical_ones_the_latest_are_kept(store).await;
}

fn account() -> AccountId {
    AccountId::new("acme/alice")
}

fn owner() -> EpisodeOwner {
    owner_of(&account())
}

fn owner_of(account: &AccountId) -> EpisodeOwner {
    EpisodeOwner { account: account.clone(), key: KeyId::of_declared(account) }
}

fn id(name: &str) -> EpisodeId {
    name.parse().unwrap()
}

fn limits(nanos: u64, searches: u64) -> EpisodeLimits {
    let mut limits = EpisodeLimits { cost: Some(Money(nanos)), ..EpisodeLimits::default() };
    limits.tools.all = Some(Count(9));
    limits.tools.each.insert("search \"x\"*".into(), Count(searches));
    limits
}

fn step(name: &str, from: Option<u8>, to: &[u8], at: i64) -> AnsweredStep {
    let last = LastStep {
        model: "one".into(),
        class: TaskClass::Agentic,
        context: Tokens(1_000),
        reading: (at % 2 == 1)
            .then(|| CountedPrompt::of(&Request::new("m", Vec::new()), "m", Tokens(at.unsigned_abs()), None))
            .flatten(),
        ended: EpisodeEnding::Open,
        route_turns: Some(RouteTurns { used: Count(2), most: Count(5) }),
    };
    AnsweredStep {
        owner: owner(),
        id: id(name),
        from: from.map(link),
        to: to.iter().copied().map(link).collect(),
        is_first: from.is_none(),
        last,
        added: Vec::new(),
        begun: None,
        at: Timestamp(at),
    }
}

fn link(number: u8) -> HistoryHash {
    HistoryHash([number; 16])
}

async fn find(store: &dyn EpisodeStore, number: u8) -> Option<String> {
    let found = store.find(&owner(), &link(number), EVER).await.unwrap();
    found.map(|id| id.to_string())
}

/// A step lowers the limits of its episode, and never raises them.
pub async fn limits_are_only_lowered(store: &dyn EpisodeStore, name: &str) {
    let none = EpisodeLimits::default();
    assert_eq!(store.read(&account(), &id(name)).await.unwrap(), None);
    let begun = store.open(&owner(), &id(name), &none, Timestamp(10)).await.unwrap();
    assert_eq!(begun, StoredEpisode::new(id(name), Some(owner().key), none.clone(), Timestamp(10)));
    store.open(&owner(), &id(name), &limits(50, 3), Timestamp(11)).await.unwrap();
    let higher = store.open(&owner(), &id(name), &limits(70, 2), Timestamp(12)).await.unwrap();
    assert_eq!(higher.limits, limits(50, 2));
}

/// What is left of that after a restart.
pub async fn limits_stay(store: &dyn EpisodeStore, name: &str) {
    let again = store.open(&owner(), &id(name), &EpisodeLimits::default(), Timestamp(13)).await.unwrap();
    assert_eq!(again.limits, limits(50, 2));
    store.record_step(&step(name, Some(1), &[2], 14)).await.unwrap();
    let again = store.open(&owner(), &id(name), &EpisodeLimits::default(), Timestamp(15)).await.unwrap();
    assert_eq!((again.limits, again.steps), (limits(50, 2), Count(1)));
}

/// What was added to the prompts of a run is there in the order of its steps, and each once.
async fn what_was_added_stays_with_its_run(store: &dyn EpisodeStore) {
    let added = |number: u8, after: Option<u8>| Addition {
        before: link(number),
        after: after.map(link),
        words: AddedWords {
            text: format!("{number} left\n\"now\" \u{fffd}").into(),
            withheld: ["search".into()].into(),
        },
    };
    let with = |from, to: &[u8], added: &[Addition]| AnsweredStep {
        added: added.to_vec(),
        ..step("added to", from, to, 40)
    };
    let read = async || store.read(&account(), &id("added to")).await.unwrap().unwrap().added;
    let none = EpisodeLimits::default();
    let broken_off = |number: u8| BrokenOffStep {
        owner: owner(),
        id: id("added to"),
        link: link(number),
        added: vec![added(number, None)],
        is_running: false,
        at: Timestamp(41),
    };
    store.record_broken_off(&broken_off(1)).await.unwrap();
    assert_eq!(find(store, 1).await, None, "nobody finds what there is not");
    assert_eq!(store.read(&account(), &id("added to")).await.unwrap(), None, "there is no such run");
    store.record_step(&with(None, &[90], &[added(1, Some(2)), added(1, Some(3))])).await.unwrap();
    store.open(&owner(), &id("added to"), &none, Timestamp(41)).await.unwrap();
    store.record_step(&with(Some(90), &[91], &[added(4, Some(5))])).await.unwrap();
    store.record_broken_off(&broken_off(6)).await.unwrap();
    assert_eq!(find(store, 6).await.as_deref(), Some("added to"));
    let expected = vec![added(1, Some(2)), added(1, Some(3)), added(4, Some(5)), added(6, None)];
    assert_eq!(read().await, Additions::from(expected));
    let opened = store.open(&owner(), &id("added to"), &limits(9, 9), Timestamp(42)).await.unwrap();
    assert_eq!(opened.added, read().await);
}

/// A step is found by its beginning until it is answered, and what was added to it is there once.
async fn a_step_that_is_answered_is_not_found_by_its_beginning(store: &dyn EpisodeStore) {
    let added = |after: Option<u8>| Addition {
        before: link(7),
        after: after.map(link),
        words: AddedWords { text: "7 left".into(), ..AddedWords::default() },
    };
    let run = id("begun");
    let begins = BrokenOffStep {
        owner: owner(),
        id: run.clone(),
        link: link(7).broken_off(),
        added: vec![added(None)],
        is_running: true,
        at: Timestamp(43),
    };
    store.open(&owner(), &run, &EpisodeLimits::default(), Timestamp(43)).await.unwrap();
    store.record_broken_off(&begins).await.unwrap();
    let found = async || store.identical_episodes(&owner(), &begins.link, EVER).await.unwrap().len();
    let read = async || store.read(&account(), &run).await.unwrap().unwrap().added;
    assert_eq!((found().await, read().await), (1, Additions::from(vec![added(None)])));
    let answered = AnsweredStep {
        added: vec![added(Some(8))],
        begun: Some(added(None)),
        ..step("begun", None, &[92], 44)
    };
    store.record_step(&answered).await.unwrap();
    assert_eq!((found().await, read().await), (0, Additions::from(vec![added(Some(8))])));
    assert_eq!(find(store, 92).await.as_deref(), Some("begun"));
}

/// Of two steps with the same beginning, the one that broke off is handed out before the one that runs.
async fn an_episode_whose_step_runs_is_handed_out_last(store: &dyn EpisodeStore) {
    let begun = |name: &str, at: i64| BrokenOffStep {
        owner: owner(),
        id: id(name),
        link: link(93),
        added: Vec::new(),
        is_running: true,
        at: Timestamp(at),
    };
    for (name, at) in [("broke off", 43), ("runs", 44)] {
        store.open(&owner(), &id(name), &EpisodeLimits::default(), Timestamp(at)).await.unwrap();
        store.record_broken_off(&begun(name, at)).await.unwrap();
    }
    let identical = store.identical_episodes(&owner(), &link(93), EVER).await.unwrap();
    assert!(
        identical.len() == 2
            && identical.iter().all(|episode| episode.continued == IdenticalEpisode::RUNNING)
    );
    let broke_off = BrokenOffStep { is_running: false, ..begun("broke off", 43) };
    store.record_broken_off(&broke_off).await.unwrap();
    for _ in 0..2 {
        assert_eq!(find(store, 93).await.as_deref(), Some("broke off"), "also when it was gone on from");
    }
}

/// Of a step that said nothing nothing stays, and of an episode that it would have begun neither.
async fn a_beginning_is_taken_back(store: &dyn EpisodeStore) {
    let added = |text: &str| Addition {
        before: link(8),
        after: None,
        words: AddedWords { text: text.into(), ..AddedWords::default() },
    };
    let begun = |name: &str, text: &str| BrokenOffStep {
        owner: owner(),
        id: id(name),
        link: link(94),
        added: vec![added(text)],
        is_running: true,
        at: Timestamp(43),
    };
    let read = async |name| store.read(&account(), &id(name)).await.unwrap();
    for (name, stated) in [("bare", EpisodeLimits::default()), ("limited", limits(5, 5))] {
        store.open(&owner(), &id(name), &stated, Timestamp(43)).await.unwrap();
        store.record_broken_off(&begun(name, "other")).await.unwrap();
        store.record_broken_off(&begun(name, "8 left")).await.unwrap();
        store.take_back(&begun(name, "8 left"), false).await.unwrap();
        assert_eq!(read(name).await.unwrap().added, Additions::from(vec![added("other")]));
        assert_eq!(store.identical_episodes(&owner(), &link(94), EVER).await.unwrap(), []);
        store.take_back(&begun(name, "other"), true).await.unwrap();
    }
    assert_eq!(read("bare").await, None);
    assert_eq!(read("limited").await.unwrap().added, Additions::default());
}

async fn a_raise_is_on_top_of_what_is_stated(store: &dyn EpisodeStore) {
    let (run, now) = (id("raised"), Timestamp(16));
    let mut more = EpisodeRaise { cost: Money(30), raises: 1, ..EpisodeRaise::default() };
    more.tools.each.insert("search \"x\"*".into(), Count(4));
    assert_eq!(store.raise(&account(), &run, &more, now).await.unwrap(), None, "there is no such run");
    store.open(&owner(), &run, &limits(50, 2), now).await.unwrap();
    let raised = store.raise(&account(), &run, &more, now).await.unwrap().unwrap();
    let expected = EpisodeLimits { raises: 1, ..limits(80, 6) };
    assert_eq!(raised.limits, expected);
    // Its steps go on to state what they stated, and may state less.
    assert_eq!(store.open(&owner(), &run, &limits(50, 2), now).await.unwrap().limits, expected);
    let lower = store.open(&owner(), &run, &limits(40, 2), now).await.unwrap();
    assert_eq!(lower.limits, EpisodeLimits { raises: 1, ..limits(70, 6) });
    assert_eq!(store.read(&account(), &run).await.unwrap().unwrap().limits, lower.limits);
    let end = EpisodeRaise { is_end: true, raises: 1, ..EpisodeRaise::default() };
    let ended = store.raise(&account(), &run, &end, now).await.unwrap().unwrap();
    assert_eq!((ended.limits.turns, ended.limits.raises), (Some(Count::ZERO), 2));
}

async fn runs_are_listed_by_account_and_name(store: &dyn EpisodeStore) {
    let (one, other) = (AccountId::new("listed/a"), AccountId::new("listed/b"));
    for (account, name) in [(&one, "2"), (&other, "1"), (&one, "1")] {
        store.open(&owner_of(account), &id(name), &limits(5, 5), Timestamp(17)).await.unwrap();
    }
    let names = async |account: Option<&AccountId>, after: Option<(AccountId, EpisodeId)>, most: u32| {
        let listed = store.list(account, after.as_ref(), most).await.unwrap();
        let name = |(account, run): (AccountId, StoredEpisode)| format!("{account} {}", run.id);
        listed.into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(Some(&one), None, 9).await, ["listed/a 1", "listed/a 2"]);
    assert_eq!(names(Some(&one), None, 1).await, ["listed/a 1"]);
    let after = Some((one.clone(), id("1")));
    assert_eq!(names(None, after, 2).await, ["listed/a 2", "listed/b 1"]);
}

async fn the_runs_that_were_used_last_are_listed_first(store: &dyn EpisodeStore) {
    let (one, other) = (AccountId::new("recent/a"), AccountId::new("recent/b"));
    for (account, name, at) in [(&one, "early", 18), (&other, "late", 900), (&one, "later", 901)] {
        store.open(&owner_of(account), &id(name), &limits(5, 5), Timestamp(at)).await.unwrap();
    }
    let names = async |account: Option<&AccountId>, most: u32| {
        let listed = store.recent(account, most).await.unwrap();
        listed.into_iter().map(|(account, run)| format!("{account} {}", run.id)).collect::<Vec<_>>()
    };
    assert_eq!(names(Some(&one), 9).await, ["recent/a later", "recent/a early"]);
    assert_eq!(names(None, 2).await, ["recent/a later", "recent/b late"]);
}

async fn a_run_is_its_account_s_alone(store: &dyn EpisodeStore) {
    let other = AccountId::new("acme");
    store.open(&owner(), &id("mine"), &limits(5, 5), Timestamp(20)).await.unwrap();
    store.record_step(&step("mine", None, &[20], 21)).await.unwrap();
    assert_eq!(store.read(&other, &id("mine")).await.unwrap(), None);
    let other = owner_of(&other);
    assert_eq!(store.find(&other, &link(20), EVER).await.unwrap(), None);
    let theirs = store.open(&other, &id("mine"), &EpisodeLimits::default(), Timestamp(22)).await.unwrap();
    assert!(theirs.limits.is_empty());
}

/// A later key of the same name neither finds it nor changes it.
async fn a_run_is_its_key_s_alone(store: &dyn EpisodeStore) {
    let later = EpisodeOwner { key: KeyId::of_declared(&AccountId::new("another")), ..owner() };
    store.open(&owner(), &id("owned"), &limits(5, 5), Timestamp(23)).await.unwrap();
    store.record_step(&step("owned", None, &[26], 24)).await.unwrap();
    assert_eq!(store.find(&later, &link(26), EVER).await.unwrap(), None);
    assert_eq!(store.identical_episodes(&later, &link(26), EVER).await.unwrap(), []);
    let opened = store.open(&later, &id("owned"), &limits(1, 1), Timestamp(25)).await.unwrap();
    assert_eq!((opened.key, opened.limits), (Some(owner().key), limits(5, 5)));
    assert_eq!(store.read(&account(), &id("owned")).await.unwrap().unwrap().limits, limits(5, 5));
    let episode = AnsweredStep { owner: later.clone(), ..step("later", None, &[26], 25) };
    store.record_step(&episode).await.unwrap();
    for (owner, name) in [(&later, "later"), (&owner(), "owned"), (&later, "later"), (&owner(), "owned")] {
        assert_eq!(store.find(owner, &link(26), EVER).await.unwrap(), Some(id(name)));
    }
}

async fn a_run_is_found_by_its_last_history(store: &dyn EpisodeStore) {
    assert_eq!(find(store, 30).await, None);
    store.record_step(&step("found", None, &[30, 31], 30)).await.unwrap();
    store.record_step(&step("found", Some(30), &[32], 31)).await.unwrap();
    for number in [31, 32, 30] {
        assert_eq!(find(store, number).await.as_deref(), Some("found"), "also by an earlier one");
    }
    let found = store.read(&account(), &id("found")).await.unwrap().unwrap();
    assert_eq!(
        (found.steps, found.last, found.last_used),
        (Count(2), Some(step("found", None, &[], 31).last), Timestamp(31))
    );
}

async fn identical_ones_are_handed_out_once_each(store: &dyn EpisodeStore) {
    for (name, at) in [("younger", 41), ("older", 40), ("youngest", 42)] {
        store.record_step(&step(name, None, &[40], at)).await.unwrap();
    }
    assert_eq!(store.identical_episodes(&owner(), &link(40), Timestamp(41)).await.unwrap().len(), 2);
    assert_eq!(find(store, 40).await.as_deref(), Some("youngest"), "an older one may have been given up");
    // The step that follows says the same once more, and counts no second time.
    store.record_step(&step("youngest", Some(40), &[41], 43)).await.unwrap();
    assert_eq!(find(store, 40).await.as_deref(), Some("younger"));
    assert_eq!(find(store, 40).await.as_deref(), Some("older"));
    assert_eq!(find(store, 40).await.as_deref(), Some("youngest"), "all were gone on from once");
}

async fn a_refused_caller_is_handed_the_same_again(store: &dyn EpisodeStore) {
    for (name, at) in [("first", 43), ("second", 44)] {
        store.record_step(&step(name, None, &[43], at)).await.unwrap();
    }
    for _ in 0..3 {
        assert_eq!(find(store, 43).await.as_deref(), Some("second"));
        store.release(&account(), &link(43), &id("second")).await.unwrap();
    }
    store.release(&account(), &link(43), &id("second")).await.unwrap();
    assert_eq!(find(store, 43).await.as_deref(), Some("second"), "it is never owed one");
    assert_eq!(find(store, 43).await.as_deref(), Some("first"));
    store.release(&account(), &link(43), &id("nobody")).await.unwrap();
}

/// Where many episodes have the same history, one of the latest is found.
async fn of_many_identical_ones_the_latest_are_kept(store: &dyn EpisodeStore) {
    for at in 0..50 {
        store.record_step(&step(&format!("same {at}"), None, &[45], 100 + at)).await.unwrap();
    }
    let identical = store.identical_episodes(&owner(), &link(45), EVER).await.unwrap();
    assert_eq!(identical.len(), IdenticalEpisode::IDENTICAL_MAX);
    assert!(identical.iter().all(|episode| episode.at >= Timestamp(118)), "{identical:?}");
    assert_eq!(find(store, 45).await.as_deref(), Some("same 49"));
}

/// Two who ask two stores of one database at once.
pub async fn twins_at_once(one: &dyn EpisodeStore, other: &dyn EpisodeStore) {
    for round in 100..120 {
        for name in ["left", "right"] {
            one.record_step(&step(&format!("{name} {round}"), None, &[round], 1)).await.unwrap();
        }
        let (left, right) = tokio::join!(find(one, round), find(other, round));
        assert!(left.is_some() && right.is_some() && left != right, "{left:?} {right:?}");
    }
}

async fn what_is_too_old_is_not_found(store: &dyn EpisodeStore) {
    store.record_step(&step("old", None, &[50], 50)).await.unwrap();
    assert_eq!(store.find(&owner(), &link(50), Timestamp(51)).await.unwrap(), None);
    assert_eq!(store.find(&owner(), &link(50), Timestamp(50)).await.unwrap(), Some(id("old")));
}

async fn steps_are_counted_and_the_latest_courses_told(store: &dyn EpisodeStore) {
    store.record_step(&step("short", None, &[60], 60)).await.unwrap();
    let mut last = step("short", Some(60), &[61], 61);
    last.last.ended = EpisodeEnding::Answered;
    last.last.model = "two".into();
    store.record_step(&last).await.unwrap();
    store.open(&owner(), &id("unanswered"), &EpisodeLimits::default(), Timestamp(62)).await.unwrap();
    let course = EpisodeLength {
        class: TaskClass::Agentic,
        model: "two".into(),
        steps: Count(2),
        ended: EpisodeEnding::Answered,
    };
    assert_eq!(store.episode_lengths(1).await.unwrap(), [course]);
    assert!(store.episode_lengths(100).await.unwrap().len() > 1);
}

async fn the_oldest_are_purged_first(store: &dyn EpisodeStore) {
    while store.purge(Timestamp(1_000), 3).await.unwrap() >= 3 {}
    assert_eq!(store.purge(Timestamp(1_000), 3).await.unwrap(), 0);
    assert_eq!(find(store, 30).await, None);
    for (name, at) in [("b", 71), ("a", 70), ("c", 72)] {
        store.record_step(&step(name, None, &[u8::try_from(at).unwrap()], at)).await.unwrap();
    }
    assert_eq!(store.purge(Timestamp(72), 1).await.unwrap(), 1);
    assert_eq!(store.read(&account(), &id("a")).await.unwrap(), None);
    assert_eq!(find(store, 71).await.as_deref(), Some("b"));
    assert_eq!(store.purge(Timestamp(72), 5).await.unwrap(), 1);
    assert_eq!((find(store, 71).await, find(store, 72).await.as_deref()), (None, Some("c")));
}
