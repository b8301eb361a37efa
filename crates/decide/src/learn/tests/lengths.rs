//! How long answers are expected to be on work that is hardly known.

use super::{Chance, Demand, OutcomeSample, TaskClass, ThinkingStopReason, Tokens, lesson, prior, taught};

fn demand(class: TaskClass, prompt: u64) -> Demand {
    let mut demand = Demand { class, ..prior() };
    demand.models.values_mut().for_each(|model| model.prompt = Tokens(prompt));
    demand
}

/// An answer so long, where 100 tokens were predicted.
fn answered(class: TaskClass, prompt: u64, solution: u64) -> OutcomeSample {
    let predicted = demand(class, prompt).models["one"].clone();
    OutcomeSample { class, predicted, solution: Tokens(solution), ..lesson("one", 1.0) }
}

/// Mathematics with short prompts only: answers are as long as predicted on average, and longer for the longer ones.
fn mathematics() -> Vec<OutcomeSample> {
    vec![[answered(TaskClass::Math, 17, 76), answered(TaskClass::Math, 59, 124)]; 200].concat()
}

/// What is expected of a chat with such a prompt.
fn expected(lessons: &[OutcomeSample], prompt: u64) -> u64 {
    let mut demand = demand(TaskClass::Chat, prompt);
    taught(lessons).adjust(&mut demand);
    demand.models["one"].solution.0
}

#[test]
fn work_never_seen_is_expected_as_long_as_other_work_with_such_requests() {
    let expected = |prompt| expected(&mathematics(), prompt);
    assert!((95..106).contains(&expected(32)), "{}", expected(32));
    assert!(
        (110..130).contains(&expected(59)),
        "what other work says of requests goes for it: {}",
        expected(59)
    );
}

#[test]
fn one_answer_to_another_kind_of_request_moves_little() {
    let mut lessons = mathematics();
    lessons.push(answered(TaskClass::Chat, 300, 188));
    let expected = expected(&lessons, 32);
    assert!((93..110).contains(&expected), "{expected}");
}

/// A thought of `model` so many times as long as predicted, on a request with such a word.
fn thought(model: &str, times: f64, word: u16) -> OutcomeSample {
    let plain = lesson("one", 1.0);
    let mut request = plain.request.clone();
    request.words = vec![word];
    let thinking = Tokens::round(plain.predicted.thinking.median() * times);
    OutcomeSample { model: model.into(), thinking, request, success: None, ..plain }
}

/// What is believed of a model with that name.
fn of_model(lessons: &[OutcomeSample], name: &str, word: u16) -> super::ModelDemand {
    let mut demand = prior();
    demand.request.words = vec![word];
    demand.models = [(name.into(), demand.models["one"].clone())].into();
    taught(lessons).adjust(&mut demand);
    demand.models[name].clone()
}

#[test]
fn a_model_that_nobody_asked_begins_where_its_family_stands() {
    let lessons = [vec![thought("qwen3-8b", 3.0, 3); 40], vec![thought("gpt-5", 1.0, 3); 40]].concat();
    let usual = prior().models["one"].thinking.mu;
    let longer = |name: &str| of_model(&lessons, name, 3).thinking.mu - usual;
    let (relative, stranger, own) = (longer("qwen3-32b"), longer("claude-x"), longer("gpt-5"));
    assert!(relative > 0.4 && stranger < relative - 0.2 && own < 0.2, "{relative} {stranger} {own}");
}

#[test]
fn a_family_that_fails_is_not_trusted_in_its_next_model_and_others_are() {
    let failed = |name: &str| OutcomeSample {
        model: name.into(),
        success: Some(Chance::new(0.0)),
        ..lesson("one", 0.0)
    };
    let lessons = [vec![failed("qwen3-8b"); 60], vec![failed("qwen3-14b"); 60]].concat();
    let lessons: Vec<OutcomeSample> = lessons
        .into_iter()
        .map(|mut lesson| {
            lesson.predicted.spread = 0.25;
            lesson
        })
        .collect();
    let done = |name: &str| {
        let mut demand = prior();
        demand.models =
            [(name.into(), super::ModelDemand { spread: 0.25, ..demand.models["one"].clone() })].into();
        taught(&lessons).adjust(&mut demand);
        demand.models[name].done.get()
    };
    let (relative, stranger) = (done("qwen3-32b"), done("claude-x"));
    assert!(relative < stranger - 0.05, "{relative} {stranger}");
}

#[test]
fn which_requests_are_thought_about_longer_is_learned_for_each_model() {
    let lessons = vec![[thought("one", 3.0, 3), thought("one", 0.4, 900)]; 40].concat();
    let mu = |word| of_model(&lessons, "one", word).thinking.mu;
    assert!(mu(3) > mu(900) + 1.0, "{} {}", mu(3), mu(900));
}

#[test]
fn one_text_that_is_asked_again_and_again_says_little_of_others_like_it() {
    let asked = |count: f32, times: f64| {
        let mut lesson = thought("one", times, 3);
        lesson.request.counts[0] = count;
        lesson
    };
    // One long thought on a request with a high count, forty times; forty short ones on others, each once.
    let many: Vec<OutcomeSample> = (0_u8..40).map(|at| asked(f32::from(at) / 100.0, 0.8)).collect();
    let slope = |lessons: Vec<OutcomeSample>| {
        let mu = |count: f32| {
            let mut demand = prior();
            demand.request.words = Vec::new();
            demand.request.counts[0] = count;
            taught(&lessons).adjust(&mut demand);
            demand.models["one"].thinking.mu
        };
        mu(2.0) - mu(0.0)
    };
    let repeated = slope([many.clone(), vec![asked(2.0, 4.0); 40]].concat());
    let different = (0_u8..40).map(|at| asked(2.0 + f32::from(at) / 1_000.0, 4.0)).collect();
    let different = slope([many, different].concat());
    assert!(repeated < different / 2.0, "{repeated} {different}");
}

#[test]
fn one_thought_in_a_hundred_lies_beyond_what_is_said_of_it() {
    let lesson = |at: usize| thought("one", if at.is_multiple_of(25) { 12.0 } else { 1.0 }, 3);
    let lessons: Vec<OutcomeSample> = (0..1_000).map(lesson).collect();
    let now = of_model(&lessons, "one", 3);
    let longest = 12.0 * prior().models["one"].thinking.median();
    assert!(now.thinking_p99() > longest * 0.95, "{} of {longest}", now.thinking_p99());
    assert!(now.tails.thought > 1.0, "{:?}", now.tails);
}

#[test]
fn thoughts_that_our_own_caps_cut_do_not_draw_the_percentiles_in() {
    let cut = |at: usize| {
        let whole = thought("one", [0.4, 0.7, 1.0, 1.4, 2.5][at % 5], 3);
        let most = Tokens::round(whole.predicted.thinking.median() * 1.1);
        let ended = if whole.thinking > most { ThinkingStopReason::Cut } else { whole.ended };
        OutcomeSample { thinking: whole.thinking.min(most), ended, ..whole }
    };
    let now = of_model(&(0..1_000).map(cut).collect::<Vec<_>>(), "one", 3);
    assert!(now.thinking_p99() > 2.5 * prior().models["one"].thinking.median(), "{now:?}");
}
