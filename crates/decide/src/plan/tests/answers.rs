//! What an answer may take: an estimate never limits it.

use stint_types::catalog::{LimitedBy, MeasuredLengths};

use super::*;

/// A model with a large context, and a thought that pays however long it is.
fn spacious(class: EnforcementClass) -> PlanFixture {
    world().with(|w| {
        let model = &mut w.models[0];
        (model.classes, model.context, model.thinking_max) = (vec![class], Tokens(200_000), Tokens(60_000));
        (model.solution_max, model.output_max) = (None, Some(Tokens(64_000)));
        w.demands[0].thinking = LogNormal { mu: 9.0, sigma: 1.0 };
        w.route.worth = Money(1_000_000_000_000);
        w.models[0].tariff = Some(dollars(10));
    })
}

/// So many dollars for a million tokens of output, a fifth of it for a million of input.
fn dollars(output: u64) -> Tariff {
    Tariff::plain(Prices { input: price(output * 200_000_000), output: price(output * 1_000_000_000) })
}

fn unmeasured(world: &mut PlanFixture) {
    world.demands[0].measured = MeasuredLengths::default();
}

fn total(tokens: u64) -> impl Fn(&mut PlanFixture) {
    move |w: &mut PlanFixture| w.budget.total = Some(Tokens(tokens))
}

#[test]
fn a_stated_total_leaves_the_answer_a_quarter_beside_the_longest_planned_thought() {
    for class in [
        EnforcementClass::Continue,
        EnforcementClass::Turn,
        EnforcementClass::Native,
        EnforcementClass::Effort,
    ] {
        let best = spacious(class)
            .with(total(20_000))
            .with(unmeasured)
            .with(|w| w.route.uncapped = Chance::new(1.0));
        let offer = best
            .with(|w| w.explore = Some(Exploration { seed: 7, rule: DrawRule::Beliefs(Chance::new(0.0)) }))
            .first();
        assert!(offer.solution >= Tokens(20_000 / 4 - 4), "{class:?}: {offer:?}");
        assert_eq!(offer.thinking + offer.solution + offer.overhead, Tokens(20_000), "{class:?}");
        assert_eq!((offer.solution_by, offer.tells_limit), (LimitedBy::Caller, true), "{class:?}");
        assert!(offer.answer_takes_rest, "{class:?}");
    }
}

#[test]
fn where_a_models_answers_were_measured_nearly_every_one_of_them_fits_beside_a_planned_thought() {
    let offer = spacious(EnforcementClass::Native)
        .with(total(6000))
        .with(|w| {
            (w.demands[0].solution, w.budget.reasoning_effort) = (Tokens(500), effort_of(2.0, Some("max")));
        })
        .first();
    assert_eq!((offer.thinking, offer.solution), (Tokens(6000 - 4 - 2516), Tokens(2516)));
}

#[test]
fn a_stated_thought_gives_way_to_a_total_only_so_far_that_a_usual_answer_fits() {
    let stated = |w: &mut PlanFixture| w.budget.thinking = Some(Tokens(15_000));
    let offer = spacious(EnforcementClass::Native).with(unmeasured).with(total(20_000)).with(stated).first();
    assert_eq!((offer.thinking, offer.solution), (Tokens(15_000), Tokens(20_000 - 15_000 - 4)));
    let offer = spacious(EnforcementClass::Native).with(unmeasured).with(total(10_000)).with(stated).first();
    // An answer that was never measured is not trusted to be short.
    assert_eq!(offer.solution, Tokens(2 * 250 + 16));
}

/// A context of 512 tokens, of which a prompt and what closes the thought take 104.
fn narrow(thinking: u64) -> PlanFixture {
    world().with(unmeasured).with(|w| {
        (w.models[0].context, w.models[0].solution_max) = (Tokens(512), None);
        (w.demands[0].solution, w.budget.thinking) = (Tokens(300), Some(Tokens(thinking)));
    })
}

#[test]
fn a_guess_of_an_answer_takes_nothing_from_a_stated_thought_on_a_small_context() {
    let check = |world: PlanFixture, thinking: u64, solution: u64| {
        let offer = world.first();
        assert_eq!((offer.thinking, offer.solution), (Tokens(thinking), Tokens(solution)), "{offer:?}");
    };
    check(narrow(100), 100, 308);
    check(narrow(380), 380, 28);
    // An answer needs some tokens all the same.
    check(narrow(400), 408 - 25, 25);
    check(narrow(4000), 408 - 25, 25);
    // What is stated of the answer is no guess, nor is what was measured.
    check(narrow(380).with(|w| w.budget.solution = Some(Tokens(200))), 208, 200);
    let is_measured = MeasuredLengths { thinking: false, solution: true };
    let measured = narrow(380).with(|w| w.demands[0].measured = is_measured);
    assert!(measured.first().thinking < Tokens(200), "{:?}", measured.first());
}

#[test]
fn where_nothing_is_stated_the_answer_may_go_to_the_models_own_limit_and_no_upstream_is_told_one() {
    let check = |class: EnforcementClass, expected: u64| {
        let stated = |w: &mut PlanFixture| w.budget.thinking = Some(Tokens(1000));
        let offer = spacious(class).with(stated).first();
        assert_eq!(offer.solution, Tokens(expected), "{class:?}");
        assert_eq!((offer.solution_by, offer.tells_limit), (LimitedBy::Model, false), "{class:?}");
        assert_eq!(offer.opening, offer.solution, "{class:?}");
    };
    check(EnforcementClass::Native, 64_000 - 1000 - 4);
    check(EnforcementClass::Turn, 64_000 - 1000 - 4);
    check(EnforcementClass::Effort, 64_000 - 1000);
    check(EnforcementClass::Continue, 64_000);
}

#[test]
fn the_operators_limit_is_named_as_theirs() {
    let limited = |w: &mut PlanFixture| {
        (w.models[0].solution_max, w.budget.thinking) = (Some(Tokens(4096)), Some(Tokens(1000)));
    };
    let offer = spacious(EnforcementClass::Native).with(limited).first();
    assert_eq!((offer.solution, offer.solution_by), (Tokens(4096), LimitedBy::Operator));
    assert!(offer.tells_limit && !offer.answer_takes_rest);
}

#[test]
fn an_effort_word_lowers_no_answer() {
    let medium = |w: &mut PlanFixture| w.budget.reasoning_effort = effort_of(0.5, Some("high"));
    let offer = spacious(EnforcementClass::Effort).with(unmeasured).with(medium).with(total(8000)).first();
    assert_eq!(offer.thinking + offer.solution + offer.overhead, Tokens(8000));
    let offer = spacious(EnforcementClass::Effort).with(medium).first();
    assert_eq!((offer.effort.as_deref(), offer.tells_limit), (Some("high"), false));
}

#[test]
fn a_word_cuts_no_visible_thought_of_a_model_whose_thoughts_are_not_known() {
    let asked = |effort: f64, word: Option<&str>| {
        let depth = effort_of(effort, word);
        let strange =
            spacious(EnforcementClass::Native).with(unmeasured).with(|w| w.models[0].efforts.clear());
        strange
            .with(|w| (w.budget.reasoning_effort, w.models[0].thinking_max) = (depth, Tokens(20_000)))
            .plan()
            .unwrap()
    };
    let plan = asked(0.5, Some("medium"));
    assert_eq!((plan.best.thinking, plan.best.effort.as_deref()), (Tokens(20_000), Some("medium")));
    assert!(
        plan.why.contains("reasoning_effort cuts nothing since its usual thoughts are not known"),
        "{}",
        plan.why
    );
    let plan = asked(0.6, None);
    assert_eq!((plan.best.thinking, plan.best.effort), (Tokens(20_000), None));
    assert_eq!(asked(0.0, Some("none")).best.thinking, Tokens::ZERO);
    let known = spacious(EnforcementClass::Native).with(unmeasured).with(|w| {
        w.models[0].efforts.clear();
        w.models[0].thinking_usual = Some(Tokens(8000));
        w.budget.reasoning_effort = effort_of(0.25, Some("low"));
    });
    assert!(known.first().thinking < Tokens(10_000));
}

#[test]
fn a_model_that_always_thinks_serves_a_small_total() {
    let always = |w: &mut PlanFixture| {
        unmeasured(w);
        w.models[0].thinks_always = true;
    };
    let offer = spacious(EnforcementClass::Effort).with(always).with(total(300)).first();
    assert!(offer.thinking > Tokens::ZERO);
    assert_eq!(offer.thinking + offer.solution + offer.overhead, Tokens(300));
}

#[test]
fn where_a_hang_up_stops_the_bill_only_what_an_answer_hardly_exceeds_is_set_aside_at_first() {
    let local = |w: &mut PlanFixture| {
        w.models[0].stops_billing = true;
        w.allowance.overall.money = money_left(5_000_000_000);
        w.budget.thinking = Some(Tokens(1000));
    };
    let offer = spacious(EnforcementClass::Native).with(local).first();
    assert_eq!((offer.solution, offer.opening), (Tokens(64_000 - 1000 - 4), Tokens(5 * 20 + 16)));
    assert_eq!((offer.solution_by, offer.tells_limit), (LimitedBy::Model, false));
    let reserved = 2_000 * 100 + 10_000 * (1000 + 100 + 32 + 4 + 116);
    assert_eq!(offer.worst.money, Money(reserved));
}

#[test]
fn an_answer_that_may_come_in_one_piece_is_set_aside_whole_where_that_is_little_of_what_is_left() {
    let first = |class: EnforcementClass, left: u64, stated: u64, streams: bool| {
        let awaited = spacious(class).with(|w| {
            (w.models[0].stops_billing, w.streams) = (true, streams);
            (w.allowance.overall.money, w.budget.thinking) = (money_left(left), Some(Tokens::ZERO));
            w.budget.solution = Some(Tokens(stated));
        });
        awaited.first()
    };
    let opening = |class, left, stated, streams| first(class, left, stated, streams).opening;
    let (whole, likely, effort) = (Tokens(2000), Tokens(5 * 20 + 16), EnforcementClass::Effort);
    let enough = 64 * first(effort, u64::MAX, 2000, false).worst.money.0;
    assert_eq!(opening(effort, enough, 2000, false), whole);
    assert_eq!(opening(effort, enough - 1, 2000, false), likely, "more than its part of what is left");
    assert_eq!(opening(effort, 100 * enough, 2000, true), likely, "somebody reads along");
    assert_eq!(opening(effort, 100 * enough, 5000, false), Tokens(5000), "it hardly becomes that long");
    let long = spacious(effort).with(|w| {
        (w.models[0].stops_billing, w.demands[0].solution) = (true, Tokens(1000));
        (w.allowance.overall.money, w.budget.thinking) = (money_left(100 * enough), Some(Tokens::ZERO));
    });
    assert_eq!(long.first().opening, Tokens(5 * 1000 + 16), "nobody waits so long in silence");
    assert_eq!(
        opening(EnforcementClass::Native, 100 * enough, 2000, false),
        likely,
        "its thought may be cut"
    );
}

#[test]
fn elsewhere_an_answer_may_take_a_quarter_of_the_money_and_the_upstream_is_told() {
    let check = |left: u64, stated: Option<u64>, expected: u64, by: LimitedBy, says: Option<&str>| {
        let hosted = |w: &mut PlanFixture| {
            w.allowance.overall.money = money_left(left);
            (w.budget.total, w.budget.thinking) = (stated.map(Tokens), Some(Tokens::ZERO));
        };
        let plan = spacious(EnforcementClass::Native).with(hosted).plan().unwrap();
        let offer = &plan.best;
        assert_eq!((offer.solution, offer.solution_by), (Tokens(expected), by), "{left}: {}", plan.why);
        assert_eq!((offer.opening, offer.tells_limit), (offer.solution, true), "{left}");
        assert!(offer.worst.money <= Money(left));
        assert_eq!(
            plan.why.contains("limited by what key money month has left"),
            says.is_some(),
            "{}",
            plan.why
        );
        assert!(says.is_none_or(|says| plan.why.contains(says)), "{}", plan.why);
    };
    // A prompt of 104 tokens at $2 and an answer at $10 for a million: what is left of a quarter, but for the prompt.
    let prompt = 2_000 * 104;
    let says = Some("its answer of up to 24979 tokens limited by");
    check(1_000_000_000, None, (250_000_000 - prompt) / 10_000, LimitedBy::Money, says);
    check(1_000_000_000, Some(9000), 9000, LimitedBy::Caller, None);
    check(100_000_000_000, None, 64_000, LimitedBy::Model, None);
    let says = Some("its answer of up to 229 tokens limited by");
    check(10_000_000, Some(20_000), (2_500_000 - prompt) / 10_000, LimitedBy::Money, says);
    check(1_000_000, Some(20_000), (1_000_000 - prompt) / 10_000, LimitedBy::Money, Some("up to 79 tokens"));
}

#[test]
fn a_limit_that_leaves_an_answer_less_than_it_usually_takes_is_named() {
    let why = |total: u64| {
        let short = |w: &mut PlanFixture| {
            w.demands[0].solution = Tokens(500);
            (w.budget.total, w.budget.thinking) = (Some(Tokens(total)), Some(Tokens::ZERO));
        };
        spacious(EnforcementClass::Native).with(short).plan().unwrap().why
    };
    let says = "its answer of up to 200 tokens limited by max_completion_tokens";
    assert!(why(200).contains(says), "{}", why(200));
    assert!(!why(2000).contains("its answer"), "{}", why(2000));
    let own = |w: &mut PlanFixture| {
        w.demands[0].solution = Tokens(500);
        (w.budget.solution, w.budget.thinking) = (Some(Tokens(200)), Some(Tokens::ZERO));
    };
    let why = spacious(EnforcementClass::Native).with(own).plan().unwrap().why;
    assert!(why.contains("its answer of up to 200 tokens limited by budget.solution_tokens"), "{why}");
}

#[test]
fn what_the_caller_allows_for_one_request_may_all_be_spent_on_it() {
    let own = |w: &mut PlanFixture| {
        (w.budget.cost, w.budget.thinking) = (Some(Money(10_000_000)), Some(Tokens::ZERO));
    };
    let plan = spacious(EnforcementClass::Native).with(own).plan().unwrap();
    assert_eq!(plan.best.solution, Tokens((10_000_000 - 2_000 * 104) / 10_000));
    assert!(plan.why.contains("limited by budget.cost_usd"), "{}", plan.why);
}

#[test]
fn a_limit_on_thinking_bounds_the_whole_of_a_hidden_thoughts_call() {
    let limited = |w: &mut PlanFixture| w.allowance.overall.thinking = thinking_left(40_000);
    let offer = spacious(EnforcementClass::Effort)
        .with(limited)
        .with(|w| w.budget.reasoning_effort = effort_of(0.1, Some("low")))
        .first();
    assert!(offer.worst.thinking <= Tokens(40_000) && offer.tells_limit, "{offer:?}");
    assert_eq!(offer.solution_by, LimitedBy::Money);
    let shown = spacious(EnforcementClass::Native)
        .with(limited)
        .with(|w| w.budget.thinking = Some(Tokens(1000)))
        .first();
    assert_eq!((shown.solution_by, shown.tells_limit), (LimitedBy::Model, false));
}

#[test]
fn no_token_is_set_aside_beyond_what_a_limit_allows() {
    let exact = |w: &mut PlanFixture| {
        w.models[0].hand_off.overhead = Tokens::ZERO;
        (w.budget.solution, w.budget.thinking) = (Some(Tokens(100)), Some(Tokens::ZERO));
        w.allowance.overall.money = money_left(1_000_000_000);
    };
    for class in [EnforcementClass::Continue, EnforcementClass::Native, EnforcementClass::Turn] {
        let offer = spacious(class).with(exact).first();
        assert_eq!(offer.worst.money, Money(2_000 * 100 + 10_000 * 100), "{class:?}");
    }
}

#[test]
fn a_prompt_of_which_only_the_bytes_are_known_is_not_refused_for_them() {
    let long = |w: &mut PlanFixture| {
        (w.demands[0].prompt, w.demands[0].prompt_least) = (Tokens(250_000), Tokens(15_600));
    };
    let offer = spacious(EnforcementClass::Native).with(long).first();
    assert_eq!(offer.solution_by, LimitedBy::Model);
    let surely_longer = |w: &mut PlanFixture| w.demands[0].prompt_least = Tokens(200_000);
    let refused = spacious(EnforcementClass::Native).with(long).with(surely_longer).plan().unwrap_err();
    assert_eq!(refused.code(), "context_length_exceeded");
}

#[test]
fn an_answer_that_its_caller_limits_is_set_aside_as_far_as_that_or_refused() {
    let stated = |left: u64, stops_billing: bool| {
        spacious(EnforcementClass::Native).with(|w| {
            (w.budget.solution, w.budget.thinking) = (Some(Tokens(20_000)), Some(Tokens::ZERO));
            (w.allowance.overall.money, w.models[0].stops_billing) = (money_left(left), stops_billing);
        })
    };
    let whole = stated(1_000_000_000, false).first();
    assert_eq!((whole.solution, whole.opening), (Tokens(20_000), Tokens(20_000)));
    assert_eq!(stated(10_000_000, false).plan().unwrap_err().code(), "insufficient_quota");
    let growing = stated(10_000_000, true).first();
    assert_eq!((growing.solution, growing.opening), (Tokens(20_000), Tokens(116)));
}

#[test]
fn a_run_keeps_of_its_money_what_an_answer_hardly_exceeds_and_not_what_the_model_could_write() {
    let cost = |fair: u64, stops_billing| {
        let world = spacious(EnforcementClass::Native).with(|w| w.models[0].stops_billing = stops_billing);
        world.ask(|ask| answer_cost(ask, Money(fair))).unwrap()
    };
    // A prompt of 104 tokens at $2 for a million, and answers of 116 or, as usual, 56 tokens at $10.
    let of = |answer: u64| Money(2_000 * 104 + 10_000 * answer);
    assert_eq!(cost(u64::MAX, true), of(116));
    assert_eq!(cost(u64::MAX, false), of(116));
    assert_eq!(cost(1_000_000, false), Money(1_000_000));
    assert_eq!(cost(1000, false), of(56));
}

#[test]
fn what_money_alone_limits_may_go_on_in_further_calls_where_the_model_can() {
    let further = |class: EnforcementClass, goes_on: GoesOn, thinking: u64| {
        let best = spacious(class).with(|w| {
            (w.models[0].goes_on, w.budget.thinking) = (goes_on, Some(Tokens(thinking)));
            w.allowance.overall.money = money_left(1_000_000_000);
        });
        let offer = best.first();
        assert_eq!((offer.solution_by, offer.opening), (LimitedBy::Money, offer.solution), "{class:?}");
        offer.continuation.map(|further| (further.max > offer.solution, further.by))
    };
    let own = Some((true, LimitedBy::Model));
    assert_eq!(further(EnforcementClass::Continue, GoesOn::Resumed, 1000), own);
    assert_eq!(further(EnforcementClass::Continue, GoesOn::Never, 1000), None);
    assert_eq!(further(EnforcementClass::Turn, GoesOn::Resumed, 1000), None, "a turn is not resumed");
    assert_eq!(further(EnforcementClass::Native, GoesOn::Unthought, 1000), None, "it thinks");
    assert_eq!(further(EnforcementClass::Native, GoesOn::Unthought, 0), own);
}

/// Money bounds what a call to a model of unknown context may write, and what it is told stays what most models take.
#[test]
fn a_context_that_nobody_knows_limits_nothing_but_what_an_upstream_must_be_told() {
    let ask = |left: Option<u64>, stated: Option<u64>, stops: bool| {
        let unknown = |w: &mut PlanFixture| {
            let model = &mut w.models[0];
            (model.context, model.output_max, model.stops_billing) = (Model::CONTEXT_UNKNOWN, None, stops);
            if let Some(left) = left {
                w.allowance.overall.money = money_left(left);
            }
            (w.budget.total, w.budget.thinking) = (stated.map(Tokens), Some(Tokens::ZERO));
        };
        let offer = spacious(EnforcementClass::Native).with(unknown).first();
        (offer.solution, offer.solution_by, offer.tells_limit, offer.opening)
    };
    let (dollars, sixty) = (100_000_000_000, Tokens(60_000));
    assert_eq!(ask(None, Some(60_000), false), (sixty, LimitedBy::Caller, true, sixty));
    assert_eq!(ask(Some(dollars), Some(60_000), false), (sixty, LimitedBy::Caller, true, sixty));
    let told = Model::TOLD_MAX;
    assert_eq!(ask(Some(dollars), None, false), (told, LimitedBy::Money, true, told));
    let (most, by, tells, opening) = ask(Some(dollars), None, true);
    assert!(most > Tokens(1_000_000) && !tells, "{most}");
    assert_eq!((by, opening), (LimitedBy::Model, Tokens(116)));
    assert!(!ask(None, None, false).2);
}

#[test]
fn a_limit_far_below_what_is_asked_for_lowers_success_and_one_about_as_long_does_not() {
    let success = |limit: u64| {
        let world = world().with(|w| {
            (w.demands[0].solution, w.models[0].solution_max) = (Tokens(1500), None);
            (w.budget.solution, w.budget.thinking) = (Some(Tokens(limit)), Some(Tokens(1000)));
        });
        world.first().success.get()
    };
    assert!(success(16) < 0.05, "{}", success(16));
    assert!(success(16) < success(400) && success(400) < success(1500));
    assert!(
        success(1500) > 0.85 && (success(4000) - 0.95).abs() < 0.01,
        "{} {}",
        success(1500),
        success(4000)
    );
}
