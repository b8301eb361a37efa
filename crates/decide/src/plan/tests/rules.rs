//! The rules, as tables.

use std::time::Duration;

use stint_types::catalog::{AbilityGuess, ModelConditions};
use stint_types::units::Preference;

use super::*;

pub(super) fn check(change: impl FnOnce(&mut PlanFixture), thinking: u64, solution: u64, why: &str) {
    let plan = world().with(change).plan().unwrap();
    let offer = &plan.best;
    assert_eq!((offer.thinking, offer.solution), (Tokens(thinking), Tokens(solution)), "{}", plan.why);
    assert!(plan.why.contains(why), "{}", plan.why);
}

pub(super) fn check_refused(change: impl FnOnce(&mut PlanFixture), expected: &PlanRefusal) {
    assert_eq!(&world().with(change).plan().unwrap_err(), expected);
}

#[test]
fn a_stated_thinking_budget_is_the_thinking_budget() {
    check(|w| w.budget.thinking = Some(Tokens(800)), 800, 256, "stated");
    check(|w| w.budget.thinking = Some(Tokens(0)), 0, 256, "without thinking");
    check(
        |w| (w.budget.thinking, w.budget.reasoning_effort) = (Some(Tokens(9)), effort_of(1.0, None)),
        9,
        256,
        "stated",
    );
    check(|w| (w.budget.thinking, w.market.shadow_price) = (Some(Tokens(800)), 1e6), 800, 256, "stated");
}

#[test]
fn a_stated_thinking_budget_gives_way_to_other_stated_caps_and_to_what_is_possible() {
    check(|w| w.budget.thinking = Some(Tokens(9999)), 4096, 256, "the most that the model thinks");
    let total =
        |w: &mut PlanFixture| (w.budget.thinking, w.budget.total) = (Some(Tokens(300)), Some(Tokens(200)));
    check(total, 140, 56, "max_completion_tokens");
    let both = |w: &mut PlanFixture| {
        total(w);
        w.budget.solution = Some(Tokens(100));
    };
    check(both, 96, 100, "max_completion_tokens");
    check(
        |w| (w.budget.thinking, w.models[0].context) = (Some(Tokens(300)), Tokens(304)),
        144,
        56,
        "context",
    );
    check(
        |w| (w.budget.thinking, w.budget.cost) = (Some(Tokens(800)), Some(Money(130_000))),
        240,
        56,
        "cost_usd",
    );
}

#[test]
fn the_plan_thinks_as_long_as_it_pays() {
    let thinking = |worth: u64| world().with(|w| w.route.worth = Money(worth)).first().thinking;
    assert_eq!(thinking(0), Tokens::ZERO);
    assert!(thinking(100_000) > Tokens(50));
    assert!(thinking(1_000_000) > thinking(100_000));
    let plan = world().plan().unwrap();
    assert!(plan.why.starts_with("math, difficulty 0.31: reasoner thinks up to"), "{}", plan.why);
    assert!(plan.why.ends_with("chosen by value"), "{}", plan.why);
    let dear = world().with(|w| w.market.shadow_price = 30.0).plan().unwrap();
    let says = "chosen by value while a dollar counts 30.00, so that the budget lasts";
    assert!(dear.why.ends_with(says), "{}", dear.why);
}

#[test]
fn a_total_that_is_very_small_is_all_for_the_answer() {
    check(|w| w.budget.total = Some(Tokens(20)), 0, 16, "without thinking");
}

#[test]
fn a_deadline_lowers_thinking_and_refuses_what_cannot_be_done() {
    let slow = |w: &mut PlanFixture, seconds: u64| {
        let conditions =
            ModelConditions { queue: 0.5, queue_least: 0.5, prefill: 0.005, token: 0.01, healthy: true };
        w.market.models.insert("reasoner".into(), conditions);
        w.budget.thinking = Some(Tokens(300));
        w.budget.deadline = Some(Duration::from_secs(seconds));
    };
    check(|w| slow(w, 60), 300, 256, "stated");
    check(|w| slow(w, 3), 140, 256, "deadline");
    let stated = |w: &mut PlanFixture| {
        slow(w, 3);
        w.budget.solution = Some(Tokens(100));
    };
    check(stated, 140, 100, "deadline");
    check_refused(
        |w| slow(w, 1),
        &PlanRefusal::DeadlineUnreachable {
            needed: Duration::from_millis(1240),
            left: Duration::from_secs(1),
            member: Some("budget.deadline_ms"),
        },
    );
}

#[test]
fn what_is_left_lowers_effort_and_choice_but_refuses_a_stated_budget() {
    let worst = world().with(|w| w.budget.thinking = Some(Tokens(200))).first().worst;
    assert_eq!(worst.money, Money(10_000 + 400 * (200 + 4 + 256)));
    let poor = |w: &mut PlanFixture| w.allowance.overall.money = money_left(10_000 + 400 * 160);
    let poor_effort = |w: &mut PlanFixture| {
        poor(w);
        w.budget.reasoning_effort = effort_of(1.0, None);
    };
    check(poor_effort, 93, 63, "key money month");
    let few = |w: &mut PlanFixture| {
        (w.allowance.overall.thinking, w.budget.reasoning_effort) = (thinking_left(30), effort_of(1.0, None));
    };
    check(few, 30, 256, "key thinking month");
    check_refused(
        |w| {
            poor(w);
            w.budget.thinking = Some(Tokens(800));
        },
        &PlanRefusal::InsufficientQuota {
            limit: Box::new(key(Unit::Money)),
            needed: Amount::Money(Money(10_000 + 400 * (800 + 4 + 56))),
            left: Amount::Money(Money(74_000)),
            resets_at: Some(Timestamp(7)),
            exceeds_limit: false,
            member: "max_completion_tokens",
        },
    );
}

#[test]
fn a_limit_that_leaves_little_to_choose_from_is_said_to_decide() {
    let left = |tokens| move |w: &mut PlanFixture| w.allowance.overall.thinking = thinking_left(tokens);
    // One token gains nothing, and many would.
    check(left(1), 0, 256, "answers without thinking (10 %), limited by what key thinking month has left");
    // As many as pay are left.
    let ample = world().with(left(4000)).plan().unwrap();
    assert!(ample.best.thinking < Tokens(4000) && ample.why.ends_with("chosen by value"), "{}", ample.why);
}

#[test]
fn a_model_that_a_limit_leaves_out_is_named_with_the_limit() {
    let said = |change: fn(&mut PlanFixture), expected: &str| {
        let world = two().with(change);
        let plan = world.plan().unwrap();
        assert!(&*plan.best.model == "small" && plan.why.ends_with(expected), "{}", plan.why);
        assert_eq!(world.ask(quote).unwrap().why, plan.why);
    };
    let money = |w: &mut PlanFixture| w.allowance.overall.money = money_left(100_000);
    said(money, "; not large, since key money month has too little left");
    let cost = |w: &mut PlanFixture| w.budget.cost = Some(Money(100_000));
    said(cost, "; not large, since budget.cost_usd is too small for it");
}

#[test]
fn what_cannot_serve_is_told_apart() {
    check_refused(
        |w| w.models[0].context = Tokens(104),
        &PlanRefusal::ContextExceeded {
            needed: Tokens(105),
            context: Tokens(104),
            limited_by: None,
            member: "messages",
        },
    );
    let limited = PlanRefusal::ContextExceeded {
        needed: Tokens(105),
        context: Tokens(104),
        limited_by: Some("the cache"),
        member: "messages",
    };
    assert!(limited.to_string().contains("the context is 104 (the cache): shorten messages"), "{limited}");
    check_refused(
        |w| {
            w.models[0].context = Tokens(104);
            w.models[0].context_limited_by = Some("the cache");
        },
        &limited,
    );
    check_refused(
        |w| w.needs.capabilities.push(Capability::Images),
        &PlanRefusal::NotCapable { what: "images" },
    );
    let sick = ModelConditions { healthy: false, ..ModelConditions::default() };
    check_refused(|w| w.market.models = [("reasoner".into(), sick)].into(), &PlanRefusal::Unhealthy);
    check_refused(|w| w.models.clear(), &PlanRefusal::Unhealthy);
}

#[test]
fn a_budget_below_the_provider_s_least_is_no_thought() {
    let least = |w: &mut PlanFixture| {
        w.models[0].classes = vec![EnforcementClass::Native];
        w.models[0].thinking_min = Tokens(1024);
    };
    let stated = |tokens| {
        move |w: &mut PlanFixture| {
            least(w);
            w.budget.thinking = Some(Tokens(tokens));
        }
    };
    check(stated(1023), 0, 256, "less is no thought");
    check(stated(1024), 1024, 256, "stated");
    let effort = |share, word: &'static str| {
        move |w: &mut PlanFixture| {
            least(w);
            w.models[0].thinking_usual = Some(Tokens(80));
            w.budget.reasoning_effort = effort_of(share, Some(word));
        }
    };
    check(effort(0.5, "medium"), 1024, 256, "by reasoning_effort");
    check(effort(0.0, "none"), 0, 256, "without thinking");
    check_refused(
        |w| {
            stated(1023)(w);
            w.models[0].thinks_always = true;
        },
        &PlanRefusal::AlwaysThinks { needed: Tokens(1024), member: "budget.thinking_tokens" },
    );
}

#[test]
fn an_effort_model_is_sent_its_own_words() {
    let word = |change: fn(&mut PlanFixture)| {
        let effort = |w: &mut PlanFixture| w.models[0].classes = vec![EnforcementClass::Effort];
        world().with(effort).with(change).first().effort.unwrap()
    };
    assert_eq!(word(|w| w.budget.thinking = Some(Tokens(0))), "minimal");
    assert_eq!(word(|w| w.budget.thinking = Some(Tokens(500))), "low");
    assert_eq!(word(|w| w.budget.thinking = Some(Tokens(1000))), "high");
    let hard = |w: &mut PlanFixture| {
        w.demands[0] = demand(8.0, 0.4, 0.9);
        w.budget.thinking = Some(Tokens(1000));
    };
    assert_eq!(word(hard), "low", "of what is hard that is a part");
    assert_eq!(word(|w| w.budget.reasoning_effort = effort_of(0.3, Some("high"))), "high");
}

#[test]
fn an_effort_word_that_a_model_lacks_becomes_the_next_lower_one_of_its_own() {
    let word = |asked: &'static str| {
        let asked = |w: &mut PlanFixture| {
            w.models[0].classes = vec![EnforcementClass::Effort];
            w.budget.reasoning_effort = effort_of(0.3, Some(asked));
        };
        world().with(asked).first().effort.unwrap()
    };
    assert_eq!(word("medium"), "low");
    assert_eq!(word("xhigh"), "high", "above its highest word is its highest");
    assert_eq!(word("max"), "high");
}

#[test]
fn the_least_word_asks_a_model_that_lacks_it_for_no_more_than_the_next_one() {
    let words = |levels: &[(&str, u64)], asked: &'static str| {
        let level = |(word, usual): &(&str, u64)| EffortLevel { word: (*word).into(), usual: Tokens(*usual) };
        let first = world().with(|w| {
            w.models[0].classes = vec![EnforcementClass::Effort];
            w.models[0].efforts = levels.iter().map(level).collect();
            w.demands[0] = demand(8.0, 0.4, 0.9);
            w.budget.reasoning_effort = effort_of(0.1, Some(asked));
        });
        let first = first.first();
        (first.effort.unwrap(), first.thinking > Tokens::ZERO)
    };
    let always = [("low", 60), ("medium", 150), ("high", 300), ("max", 900)];
    assert_eq!(words(&always, "minimal"), ("low".into(), true));
    assert_eq!(words(&always, "xhigh"), ("high".into(), true), "however long its thought may be");
    let can_do_without = [("none", 0), ("low", 60), ("high", 300)];
    assert_eq!(
        words(&can_do_without, "minimal"),
        ("none".into(), false),
        "what does not think has no budget"
    );
}

#[test]
fn a_number_asks_for_no_word_that_means_more() {
    let word = |effort: f64| {
        let first = world().with(|w| {
            w.models[0].classes = vec![EnforcementClass::Effort];
            w.demands[0] = demand(7.0, 0.4, 0.9);
            w.budget.reasoning_effort = effort_of(effort, None);
        });
        first.first().effort.unwrap()
    };
    let words = [0.05, 0.2, 0.25, 0.5, 0.9, 2.0].map(word);
    assert_eq!(words, ["minimal", "low", "low", "low", "high", "high"]);
}

#[test]
fn a_model_that_does_not_think_answers_at_once() {
    check(
        |w| (w.models[0].thinking_max, w.budget.thinking) = (Tokens(0), Some(Tokens(50))),
        0,
        256,
        "without",
    );
}

#[test]
fn who_asks_a_model_for_thought_that_is_not_known_to_think_is_told() {
    let asked = |change: fn(&mut Budget)| {
        move |w: &mut PlanFixture| {
            w.models[0].thinking_max = Tokens::ZERO;
            change(&mut w.budget);
        }
    };
    let high = asked(|budget| budget.reasoning_effort = effort_of(0.9, Some("high")));
    check(high, 0, 256, "reasoning_effort has no effect since the model is not known to think");
    let stated = asked(|budget| budget.thinking = Some(Tokens(500)));
    check(stated, 0, 256, "budget.thinking_tokens has no effect since the model is not known to think");
    check(asked(|budget| budget.thinking = Some(Tokens(0))), 0, 256, "stated as budget.thinking_tokens");
}

#[test]
fn nothing_is_set_aside_for_the_end_of_a_thought_that_cannot_be() {
    let local = |w: &mut PlanFixture| {
        w.models[0].hand_off =
            HandOff { text: String::new(), overhead: Tokens(122), overhead_without_thought: Tokens(1) };
    };
    let offered = |change: &dyn Fn(&mut PlanFixture)| {
        let best = world().with(local).with(change).first();
        (best.thinking.0, best.solution.0, best.overhead.0)
    };
    let total = |total: u64| move |w: &mut PlanFixture| w.budget.total = Some(Tokens(total));
    assert_eq!(offered(&total(1)), (0, 1, 1), "the end of the text would take the place of the answer");
    assert_eq!(offered(&total(60)), (0, 60, 1), "a thought would leave no answer");
    let never = |w: &mut PlanFixture| {
        total(122)(w);
        w.models[0].thinking_max = Tokens::ZERO;
    };
    assert_eq!(offered(&never), (0, 122, 1));
    let stated = |w: &mut PlanFixture| {
        total(200)(w);
        w.budget.thinking = Some(Tokens(10));
    };
    assert_eq!(offered(&stated), (10, 200 - 122 - 10, 122));
}

#[test]
fn a_total_without_room_for_a_thought_and_its_end_is_one_limit_that_is_tried_once() {
    let check = |class: EnforcementClass, total: u64| {
        let always = |w: &mut PlanFixture| {
            (w.models[0].classes, w.models[0].thinks_always) = (vec![class], true);
            (w.models[0].thinking_min, w.budget.total) = (Tokens(1024), Some(Tokens(total)));
            w.models[0].efforts.clear();
        };
        let offer = world().with(always).first();
        assert_eq!((offer.class, offer.rescue, offer.effort), (EnforcementClass::Effort, false, None));
        assert_eq!(offer.thinking + offer.solution, Tokens(total), "{class:?}");
        assert_eq!(offer.worst.money, Money(10_000 + 400 * total), "{class:?}");
    };
    for total in [1, 4] {
        check(EnforcementClass::Inline, total);
        check(EnforcementClass::Native, total);
        check(EnforcementClass::Turn, total);
    }
    check(EnforcementClass::Native, 1_000);
}

#[test]
fn a_limit_below_the_least_that_a_provider_takes_is_set_aside_as_that() {
    let least = |w: &mut PlanFixture| {
        (w.models[0].classes, w.models[0].thinking_max) = (vec![EnforcementClass::Effort], Tokens::ZERO);
        (w.models[0].output_min, w.budget.total) = (Tokens(16), Some(Tokens(1)));
    };
    let offer = world().with(least).first();
    assert_eq!((offer.solution, offer.worst.money), (Tokens(1), Money(10_000 + 400 * 16)));
}

#[test]
fn what_closes_a_thought_elsewhere_is_read_and_takes_nothing_of_the_answer() {
    let offered = |class: EnforcementClass, thinking: u64, total: Option<u64>| {
        let remote = |w: &mut PlanFixture| {
            w.models[0].classes = vec![class, EnforcementClass::Turn];
            w.models[0].hand_off =
                HandOff { text: String::new(), overhead: Tokens(122), overhead_without_thought: Tokens(122) };
            w.budget.thinking = Some(Tokens(thinking));
            w.budget.solution = Some(Tokens(10));
            w.budget.total = total.map(Tokens);
        };
        world().with(remote).first()
    };
    let prompt = world().demands[0].prompt.0;
    let Prices { input, output } = world().models[0].tariff.unwrap().rates.list;
    for (class, resume) in
        [(EnforcementClass::Continue, Some(EnforcementClass::Continue)), (EnforcementClass::Native, None)]
    {
        let alone = offered(class, 0, None);
        let most = input.cost(Tokens(prompt + 122)) + output.cost(Tokens(10));
        assert_eq!((alone.worst.money, alone.resume), (most, resume), "{class:?}");
        assert_eq!(offered(class, 0, Some(1)).solution, Tokens(1), "{class:?}");
        let thought = offered(class, 1, None);
        assert!(thought.worst.money > most + input.cost(Tokens(prompt)) && thought.resume.is_some());
    }
}

#[test]
fn a_guessed_ability_is_told_until_enough_was_learned_of_the_model() {
    let why = |spread: f64| {
        let guessed = world().with(|w| {
            let guess = Some(AbilityGuess::Family("llama".into()));
            w.models[0] = Model { ability_guess: guess, ..w.models[0].clone() };
            w.models.truncate(1);
            w.demands[0].spread = spread;
        });
        guessed.plan().unwrap().why
    };
    assert!(why(0.2).contains("its ability guessed from other llama models"), "{}", why(0.2));
    assert!(!why(0.05).contains("guessed"), "{}", why(0.05));
}

#[test]
fn the_others_stand_by_as_fallbacks() {
    let plan = two().plan().unwrap();
    let names: Vec<&str> = offers(&plan).map(|offer| &*offer.model).collect();
    assert_eq!(names, ["large", "small"]);
    assert!(plan.why.contains("; next: small with "), "{}", plan.why);
}

#[test]
fn preference_turns_from_the_cheapest_good_enough_to_the_best() {
    let at = |preference: f64| {
        let preference = Some(Preference::try_from(preference).unwrap());
        two().with(|w| w.budget.preference = preference).first()
    };
    let (frugal, best) = (at(0.0), at(1.0));
    assert_eq!(&*frugal.model, "small");
    assert!((0.5..0.7).contains(&frugal.success.get()), "{frugal:?}");
    assert_eq!(&*best.model, "large");
    assert!(best.success.get() > 0.98, "{best:?}");
}

#[test]
fn a_preference_of_zero_is_no_dearer_than_none_and_half_is_the_same() {
    let at = |floor: f64, preference: Option<f64>| {
        let preference = preference.map(|preference| Preference::try_from(preference).unwrap());
        let route = |w: &mut PlanFixture| w.route.success_floor = Chance::new(floor);
        two().with(route).with(|w| w.budget.preference = preference).first()
    };
    for floor in [0.3, 0.5, 0.8, 0.95, 1.0] {
        let usual = at(floor, None);
        let half = at(floor, Some(0.5));
        assert_eq!(half.model, usual.model);
        assert!((half.success.get() - usual.success.get()).abs() < 0.01, "{floor}: {half:?}");
        let frugal = at(floor, Some(0.0)).cost.as_dollars();
        assert!(frugal <= 1.02 * usual.cost.as_dollars(), "{floor}: {frugal}");
    }
}

#[test]
fn who_asks_a_model_that_always_thinks_for_none_gets_its_least_effort() {
    let none = |w: &mut PlanFixture| {
        w.models[0].classes = vec![EnforcementClass::Effort];
        w.models[0].thinks_always = true;
        w.models[0].efforts.remove(0);
        w.budget.reasoning_effort = effort_of(0.0, Some("none"));
    };
    let plan = world().with(none).plan().unwrap();
    assert_eq!((plan.best.effort.as_deref(), plan.best.thinking), (Some("low"), Tokens(100)));
    let said = "answers with its least effort, \"low\"";
    assert!(
        plan.why.contains(said) && plan.why.contains("though reasoning_effort asks for no"),
        "{}",
        plan.why
    );
    let native = |w: &mut PlanFixture| {
        none(w);
        (w.models[0].classes, w.models[0].thinking_min) = (vec![EnforcementClass::Native], Tokens(128));
    };
    assert_eq!(world().with(native).first().thinking, Tokens(128));
    let stated = |w: &mut PlanFixture| {
        none(w);
        (w.budget.reasoning_effort, w.budget.thinking) = (None, Some(Tokens::ZERO));
    };
    let refused = world().with(stated).plan().unwrap_err().to_string();
    assert_eq!(refused, "this model always thinks: raise budget.thinking_tokens or ask another model");
}

#[test]
fn where_one_can_do_without_a_thought_who_asks_for_none_gets_that_one() {
    let asked = |effort| {
        let both = two().with(|w| {
            w.models[1].thinks_always = true;
            w.budget.reasoning_effort = effort_of(effort, Some(if effort > 0.0 { "low" } else { "none" }));
        });
        both.first().model
    };
    assert_eq!((&*asked(0.25), &*asked(0.0)), ("large", "small"));
}

#[test]
fn what_is_the_same_call_is_one_offer_and_is_not_said_to_be_without_a_thought() {
    let hidden = world().with(|w| {
        w.models[0].classes = vec![EnforcementClass::Effort];
        w.models[0].efforts[0].usual = Tokens(40);
        w.route.worth = Money(1);
    });
    let quoted = hidden.ask(quote).unwrap();
    let least = quoted.offers.iter().filter(|offer| offer.effort.as_deref() == Some("minimal"));
    assert_eq!(least.map(|offer| offer.thinking).min(), Some(Tokens(40)));
    let why = hidden.plan().unwrap().why;
    assert!(why.contains("answers with its least effort, \"minimal\""), "{why}");
}

#[test]
fn the_seconds_of_what_was_never_measured_are_guessed_and_count_for_nothing() {
    let unmeasured = world().first();
    assert!(unmeasured.seconds < 1e-12 && unmeasured.seconds_guess.is_some_and(|guess| guess > 0.8));
    let pace = ModelConditions { token: 0.01, ..ModelConditions::default() };
    let measured = world().with(|w| w.market.models = [("reasoner".into(), pace)].into()).first();
    assert!(measured.seconds > 0.0 && measured.seconds_guess.is_none(), "{measured:?}");
}

/// The small model and a large one whose thought is dear.
fn dear_thought() -> PlanFixture {
    two().with(|w| {
        w.route.worth = Money(20_000_000);
        w.demands = vec![demand(8.0, 0.3, 0.4), demand(8.0, 0.75, 0.9)];
        w.models.iter_mut().for_each(|model| model.context = Tokens(100_000));
        w.models[1].thinking_max = Tokens(60_000);
    })
}

#[test]
fn a_stated_thought_leads_to_no_weaker_model_than_none() {
    let unstated = dear_thought().first();
    assert_eq!(&*unstated.model, "large");
    for effort in [0.1, 0.25, 0.5, 1.0, 2.0] {
        let plan =
            dear_thought().with(|w| w.budget.reasoning_effort = effort_of(effort, None)).plan().unwrap();
        assert_eq!(&*plan.best.model, "large", "{effort}: {}", plan.why);
        assert!(plan.best.success >= unstated.success, "{effort}: {}", plan.why);
    }
    for thinking in [1, 100, 1000, 16_000] {
        let plan = dear_thought().with(|w| w.budget.thinking = Some(Tokens(thinking))).plan().unwrap();
        assert!(plan.best.success >= unstated.success, "{thinking}: {}", plan.why);
    }
    let high = dear_thought().with(|w| w.budget.reasoning_effort = effort_of(1.0, Some("high")));
    let why = high.plan().unwrap().why;
    let said = "which costs less and is weaker than what is chosen without reasoning_effort";
    assert!(why.contains("not small (") && why.contains(said), "{why}");
    assert_eq!(&*high.with(|w| w.budget.preference = Preference::try_from(0.0).ok()).first().model, "small");
}

#[test]
fn a_model_that_cannot_think_as_long_as_was_stated_says_so() {
    let short = |w: &mut PlanFixture| {
        (w.models[0].thinking_max, w.budget.reasoning_effort) = (Tokens(100), effort_of(1.0, Some("high")));
    };
    check(short, 100, 256, "the most that the model thinks, less than reasoning_effort asks for");
}
