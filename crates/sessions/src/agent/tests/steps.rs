//! Tests of what a step may do.

use serde_json::Value;
use stint_ledger::EpisodeBalance;

use super::*;

/// A step of an episode, and what is known about it.
struct Scene {
    request: Request,
    limits: EpisodeLimits,
    standing: EpisodeBalance,
    account: Option<Headroom>,
    turns: Option<TurnCap>,
    is_named: bool,
    settings: Settings,
    calls_max: Option<Count>,
}

impl Scene {
    fn new(limits: EpisodeLimits) -> Scene {
        Scene {
            request: request(&["search", "browse"], searched()),
            limits,
            standing: EpisodeBalance::default(),
            account: None,
            turns: None,
            is_named: true,
            settings: Settings::default(),
            calls_max: None,
        }
    }

    fn spent(mut self, each: &[(&str, u64)]) -> Scene {
        self.standing.spent.tools = counts(each);
        self
    }

    fn reserved(mut self, each: &[(&str, u64)]) -> Scene {
        self.standing.reserved.tools = counts(each);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Scene)) -> Scene {
        change(&mut self);
        self
    }

    fn next(&self) -> StepDecision {
        let history = History::read(&self.request, self.is_named, &self.settings).unwrap();
        let asked = StepInput {
            request: &self.request,
            limits: &self.limits,
            balance: &self.standing,
            account_headroom: self.account,
            history: &history,
            is_named: self.is_named,
            turn_cap: self.turns,
            is_enforced: true,
            tracker: true,
            added_bytes: 0,
            last_added: None,
            calls_max: self.calls_max.unwrap_or(self.settings.calls_per_answer),
        };
        decide_step(&asked, &self.settings)
    }

    fn go(&self) -> StepPlan {
        match self.next() {
            StepDecision::Proceed(step) => *step,
            other => panic!("{other:?}"),
        }
    }

    fn sent(&self) -> Request {
        self.go().applied(&self.request)
    }
}

/// The model's answer, and what the user says then.
fn asked_anew() -> [Message; 2] {
    [Message::text(Role::Assistant, "Nobody."), user("And now?")]
}

/// What is set aside, as `all; tool count …`.
fn aside(step: &StepPlan) -> String {
    let each = step.tools.each.iter().map(|(tool, count)| format!(" {tool} {count}"));
    format!("{};{}", step.tools.all, each.collect::<String>())
}

/// The declared tools that may be called.
fn names(request: &Request) -> Vec<&str> {
    let names = request.tools.iter().map(|tool| tool.name.as_str());
    names.filter(|name| !request.withheld_tools.iter().any(|withheld| **withheld == **name)).collect()
}

fn tail(request: &Request) -> String {
    request.messages.last().unwrap().plain_text()
}

#[test]
fn where_nothing_is_limited_nothing_is_changed() {
    let scene = Scene::new(limits(""));
    let step = scene.go();
    assert!(
        step.call_limits.is_unlimited() && step.tools.is_zero() && !step.is_final() && step.why.is_none()
    );
    assert_eq!(scene.sent(), scene.request);
}

#[test]
fn the_least_of_what_is_left_and_what_one_answer_gets_is_set_aside() {
    let check = |said: &str, spent: &[(&str, u64)], expected: &str| {
        assert_eq!(aside(&Scene::new(limits(said)).spent(spent).go()), expected, "{said} {spent:?}");
    };
    check("search 100", &[("search", 5)], "8; search 8");
    check("search 10", &[("search", 7)], "3; search 3");
    check("search 10, browse 2", &[("search", 7)], "5; browse 2 search 3");
    check("search 10, * 12", &[("search", 3), ("browse", 7)], "2; search 7");
    check("* 100", &[], "8;");
}

#[test]
fn a_spent_tool_is_withheld_and_stays_declared() {
    let scene = Scene::new(limits("search 3, browse 9")).spent(&[("search", 3)]);
    let step = scene.go();
    assert_eq!((step.withheld.len(), step.is_final()), (1, false));
    assert_eq!(scene.sent().tools, scene.request.tools, "all stay declared: what was cached goes on holding");
    assert_eq!(names(&scene.sent()), ["browse"]);
    assert_eq!(step.call_limits.tools.each["search"], Count::ZERO, "nor may it be called from memory");
    assert!(tail(&scene.sent()).contains("search: 3 used, 0 left") || !tail(&scene.sent()).is_empty());
    assert_eq!(step.why.as_deref(), Some("search withheld, being used up"));
}

#[test]
fn at_the_last_turn_the_model_is_told_that_every_tool_is_withheld() {
    let scene = Scene::new(limits("search 9, turns 2"));
    let (step, sent) = (scene.go(), scene.sent());
    assert!(step.is_final() && step.withheld.is_empty());
    assert_eq!(names(&sent), Vec::<&str>::new());
    assert_eq!(step.addition().map(|words| words.withheld.len()), Some(2));
    let again = step.retries(&sent, &scene.settings);
    assert!(
        again.iter().all(|retry| retry.request.withheld_tools.is_empty()),
        "then nothing is left to words"
    );
}

#[test]
fn when_all_tools_are_spent_they_stay_declared_and_the_answer_is_asked_for() {
    for said in ["search 3, browse 0", "* 3"] {
        let scene = Scene::new(limits(said)).spent(&[("search", 3)]);
        let (step, sent) = (scene.go(), scene.sent());
        assert!(step.is_final() && step.tools.is_zero(), "{said}");
        assert_eq!((&sent.tools, &sent.tool_choice), (&scene.request.tools, &Some("none".into())));
        assert_eq!(names(&sent), [""; 0], "all are withheld");
        assert!(tail(&sent).contains(&scene.settings.tracker_messages.last));
        assert_eq!(step.call_limits, AnswerCallLimits::none());
    }
}

#[test]
fn a_tool_that_is_only_set_aside_is_waited_for() {
    let wait = |scene: Scene| match scene.next() {
        StepDecision::Wait(wait) => wait,
        other => panic!("{other:?}"),
    };
    let own = Scene::new(limits("search 10")).spent(&[("search", 4)]).reserved(&[("search", 6)]);
    assert_eq!(wait(own).tools, ["search".into()]);
    let all = Scene::new(limits("* 10")).spent(&[("search", 4)]).reserved(&[("browse", 6)]);
    assert_eq!(wait(all).tools.len(), 2);
    let turn = Scene::new(limits("turns 4")).with(|scene| {
        scene.standing.spent.turns = Count(2);
        scene.standing.reserved.turns = Count(2);
    });
    assert!(wait(turn).turn);
    let some = Scene::new(limits("search 10")).spent(&[("search", 4)]).reserved(&[("search", 5)]);
    assert_eq!(aside(&some.go()), "1; search 1");
}

#[test]
fn a_tool_that_the_caller_forces_and_that_is_spent_is_none_and_no_error() {
    let force = json!({"type": "function", "function": {"name": "search"}});
    let scene = Scene::new(limits("search 3")).spent(&[("search", 3)]);
    let scene = scene.with(|scene| scene.request.tool_choice = Some(force.clone()));
    assert_eq!(scene.sent().tool_choice, Some("none".into()));
    assert!(scene.go().tools.is_zero());
    let required = Scene::new(limits("turns 3")).with(|scene| {
        scene.standing.spent.turns = Count(2);
        scene.request.tool_choice = Some("required".into());
    });
    assert_eq!(required.sent().tool_choice, Some("none".into()));
    // The other one is only taken, and not asked for.
    let scene = Scene::new(limits("search 3, browse 1")).reserved(&[("browse", 1)]);
    let scene = scene.with(|scene| scene.request.tool_choice = Some(force));
    assert!(matches!(scene.next(), StepDecision::Proceed(_)));
}

/// A list of the tools that may be called, as chat completions have it.
fn allow(mode: &str, names: &[&str]) -> Value {
    let tool = |name: &&str| json!({"type": "function", "function": {"name": name}});
    let tools: Vec<_> = names.iter().map(tool).collect();
    json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}})
}

#[test]
fn a_callers_list_of_allowed_tools_withholds_the_others_and_leaves_the_list_of_tools_alone() {
    let sent = |said: &str, spent: &[(&str, u64)], choice: Value| {
        let scene =
            Scene::new(limits(said)).spent(spent).with(|scene| scene.request.tool_choice = Some(choice));
        let (step, sent) = (scene.go(), scene.sent());
        assert_eq!(sent.tools, scene.request.tools);
        for name in &sent.withheld_tools {
            assert_eq!(step.call_limits.tools.each[name], Count::ZERO, "calls of {name} do not pass");
        }
        let names: Vec<String> = names(&sent).into_iter().map(str::to_owned).collect();
        (names.join(" "), sent.tool_choice.unwrap())
    };
    let named = json!({"type": "function", "function": {"name": "browse"}});
    assert_eq!(sent("", &[], allow("auto", &["browse"])), ("browse".to_owned(), json!("auto")));
    assert_eq!(sent("", &[], allow("required", &["browse"])), ("browse".to_owned(), named));
    let both = allow("required", &["search", "browse"]);
    assert_eq!(sent("", &[], both), ("search browse".to_owned(), json!("required")));
    let spent = [("search", 3)];
    let listed = |names: &[&str]| sent("search 3", &spent, allow("auto", names));
    assert_eq!(listed(&["search", "browse"]), ("browse".to_owned(), json!("auto")), "what is spent goes too");
    assert_eq!(listed(&["search"]), (String::new(), json!("none")), "nothing is left of the list");
}

#[test]
fn a_model_that_called_what_the_callers_list_leaves_out_is_told_which_and_asked_again() {
    let scene = Scene::new(limits("")).with(|scene| {
        scene.request.tool_choice = Some(allow("auto", &["browse"]));
    });
    let sent = scene.sent();
    let retries = scene.go().retries(&sent, &scene.settings);
    assert_eq!(retries.len(), 2);
    assert!(tail(&retries[0].request).contains("Not to be called in this answer: search."));
    assert_eq!((&retries[0].request.tools, names(&retries[0].request)), (&sent.tools, vec!["browse"]));
    let later = Scene::new(limits(""));
    assert_eq!(names(&later.sent()), ["search", "browse"], "the list holds for the one request");
}

#[test]
fn the_last_turn_is_the_answer_and_after_it_there_is_none() {
    let scene = |spent| Scene::new(limits("turns 3")).with(|scene| scene.standing.spent.turns = Count(spent));
    assert!(!scene(1).go().is_final());
    assert!(scene(2).go().is_final());
    assert_eq!(scene(3).next(), StepDecision::Exhausted(ExhaustedBudget::Turns(Count(3))));
    let broke = Scene::new(limits("nanos 50")).with(|scene| scene.standing.spent.cost = Money(50));
    assert_eq!(broke.next(), StepDecision::Exhausted(ExhaustedBudget::Money(Money(50))));
}

#[test]
fn the_clients_history_may_only_tighten() {
    let more = Scene::new(limits("search 2"));
    assert_eq!(aside(&more.go()), "1; search 1", "it shows a call that the ledger does not know");
    let stripped = Scene::new(limits("search 2")).spent(&[("search", 2)]);
    let stripped = stripped.with(|scene| scene.request.messages.truncate(1));
    assert_eq!(names(&stripped.sent()), ["browse"]);
    let earlier = Scene::new(limits("search 1")).with(|scene| scene.request.messages.extend(asked_anew()));
    assert_eq!(aside(&earlier.go()), "1; search 1", "a named run has only what came since the user spoke");
    let nameless = earlier.with(|scene| scene.is_named = false);
    assert_eq!(names(&nameless.sent()), ["browse"]);
}

#[test]
fn one_call_at_a_time_is_one_unless_its_elements_are_counted() {
    let one = |settings: Settings| {
        let scene = Scene::new(limits("search 10, browse 10")).with(|scene| scene.settings = settings);
        scene.with(|scene| drop(scene.request.extra.insert("parallel_tool_calls".into(), false.into()))).go()
    };
    let plain = one(Settings::default());
    assert_eq!((aside(&plain).as_str(), plain.call_limits.calls), ("1; browse 1 search 1", Some(Count::ONE)));
    assert_eq!(aside(&one(settings())), "8; browse 1 search 8");
}

#[test]
fn what_the_caller_allows_one_answer_caps_it() {
    let some =
        |calls| Scene::new(limits("")).with(|scene| scene.request.budget.tool_calls_max = Some(Count(calls)));
    assert_eq!(some(2).go().call_limits.tools.all, Some(Count(2)));
    let none = some(0);
    assert_eq!((none.sent().tool_choice, none.go().is_final()), (Some("none".into()), false));
}

#[test]
fn each_choice_gets_its_part() {
    let scene = |choices| {
        let scene = Scene::new(limits("search 10")).spent(&[("search", 3)]);
        scene.with(|scene| scene.request.choices = choices)
    };
    let step = scene(3).go();
    assert_eq!((aside(&step).as_str(), step.call_limits.tools.each["search"]), ("6; search 6", Count(2)));
    assert_eq!(names(&scene(8).sent()), ["browse"], "there is not one for each");
}

#[test]
fn calls_are_set_aside_at_their_price_and_only_as_many_as_can_be_paid() {
    let priced = |said: &str, spent: u64| {
        Scene::new(limits(said)).with(|scene| {
            scene.settings = settings();
            scene.standing.spent.cost = Money(spent);
            scene.request.messages.truncate(1);
        })
    };
    let step = priced("", 0).go();
    assert_eq!((aside(&step).as_str(), step.tools_cost), ("8; search 8", Money(800)));
    let step = priced("nanos 1000", 650).go();
    assert_eq!((aside(&step).as_str(), step.tools_cost), ("3; search 3", Money(300)));
    assert_eq!(names(&priced("nanos 1000", 950).sent()), ["browse"]);
    assert_eq!(priced("search 9, * 2", 0).go().tools_cost, Money(200));
}

#[test]
fn where_the_money_does_not_pay_for_so_many_calls_fewer_are_set_aside_and_in_the_end_none() {
    let at_most = |most| Scene::new(limits("search 9")).with(|scene| scene.calls_max = Some(Count(most)));
    let priced = |most| at_most(most).with(|scene| scene.settings = settings()).go();
    assert_eq!((aside(&priced(8)).as_str(), priced(8).fewer_calls(Count(8))), ("8; search 8", Count(4)));
    assert_eq!((aside(&priced(1)).as_str(), priced(1).fewer_calls(Count(1))), ("1; search 1", Count(0)));
    assert!(priced(0).is_final());
    assert_eq!(at_most(8).go().fewer_calls(Count(8)), Count(0), "what costs nothing saves nothing");
}

#[test]
fn what_the_accounts_own_limits_leave_holds_too() {
    let room = |unspent, free| Some(Headroom { unspent: Count(unspent), free: Count(free) });
    let scene = |room| Scene::new(limits("")).with(|scene| scene.account = room);
    assert_eq!(scene(room(3, 3)).go().call_limits.tools.all, Some(Count(3)));
    assert!(scene(room(0, 0)).go().is_final());
    assert!(matches!(scene(room(3, 0)).next(), StepDecision::Wait(_)));
}

#[test]
fn a_learned_cap_is_extended_once_when_the_agent_calls_on() {
    let turn = |taken| {
        Scene::new(limits("")).with(|scene| {
            scene.standing.spent.turns = Count(taken);
            scene.turns = Some(TurnCap { usual: Count(4), extended: Count(6) });
        })
    };
    assert!(!turn(2).go().is_final() && tail(&turn(2).sent()).contains("turns: 2 used, 2 left"));
    let extended = &Settings::default().tracker_messages.extended;
    assert!(!turn(3).go().is_final() && tail(&turn(3).sent()).contains(extended));
    assert!(tail(&turn(3).sent()).contains("turns: 3 used, 3 left"));
    assert!(!turn(4).go().is_final() && !tail(&turn(4).sent()).contains(extended));
    assert!(turn(5).go().is_final());
    assert!(turn(9).go().is_final(), "a route's cap never refuses an answer");
    let anew = turn(9).with(|scene| {
        scene.is_named = false;
        scene.request.messages.extend(asked_anew());
    });
    assert!(!anew.go().is_final(), "what the user says anew is a task of its own");
    let fixed = turn(3).with(|scene| scene.turns = Some(TurnCap::fixed(Count(4))));
    assert!(fixed.go().is_final());
}

#[test]
fn a_run_in_circles_gets_one_call_where_something_is_limited() {
    let mut messages = vec![user("Who?")];
    for turn in ["a", "b", "c"] {
        messages.extend([calls(turn, &[("search", "{}")]), result(&format!("{turn}0"), "Nobody.")]);
    }
    let scene = |said| {
        let messages = messages.clone();
        Scene::new(limits(said)).with(|scene| scene.request.messages = messages)
    };
    let held = scene("search 10");
    assert_eq!(aside(&held.go()), "1; search 1");
    assert!(tail(&held.sent()).contains("search was made 3 times"), "{}", tail(&held.sent()));
    assert_eq!(scene("").sent(), scene("").request);
}

#[test]
fn a_request_without_tools_is_only_told() {
    let scene = Scene::new(limits("search 1, turns 9")).with(|scene| scene.request.tools.clear());
    let sent = scene.sent();
    assert_eq!((sent.tool_choice.clone(), sent.tools.len()), (None, 0));
    assert!(tail(&sent).contains("turns: 1 used, 8 left"), "{}", tail(&sent));
}

#[test]
fn a_caller_that_insists_on_a_used_up_tool_gets_an_answer_that_says_why() {
    let scene = Scene::new(limits("search 2, browse 9")).spent(&[("search", 2)]);
    let insisting = json!({"type": "function", "function": {"name": "search"}});
    let scene = scene.with(|scene| scene.request.tool_choice = Some(insisting));
    let (step, words) = (scene.go(), TrackerMessages::default());
    assert_eq!((scene.sent().tool_choice, step.is_final()), (Some("none".into()), false));
    assert_eq!(step.why.as_deref(), Some("search withheld, being used up; so no call is insisted on"));
    let told = tail(&scene.sent());
    assert!(
        told.contains(&format!("Used up: search. {}", words.spent)) && !told.contains(&words.high),
        "{told}"
    );
}

#[test]
fn why_a_run_is_made_to_answer_is_known() {
    let check = |said: &str, scene: fn(&mut Scene), finality: Option<Finality>| {
        assert_eq!(Scene::new(limits(said)).with(scene).go().finality, finality, "{said}");
    };
    check("search 9", |_| {}, None);
    check("turns 2", |_| {}, Some(Finality::Turns));
    check("search 0, browse 0", |_| {}, Some(Finality::Tools));
    check("nanos 1000", |scene| scene.calls_max = Some(Count::ZERO), Some(Finality::Money));
    check("", |scene| scene.turns = Some(TurnCap::fixed(Count(2))), Some(Finality::RouteTurns));
}
