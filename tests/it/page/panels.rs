//! Each panel shows the numbers that a known load made, and shows names as text.

use crate::harness::{Chromium, Manner, Upstream};

use super::load::{Desk, KEY, RUN, SECRET};

/// The text of a number of the page, by its name.
fn stat(name: &str) -> String {
    format!("[data-stat=\"{name}\"]")
}

/// How the page writes so many dollars.
fn dollars(browser: &mut Chromium, value: f64) -> String {
    let told =
        browser.eval(&format!("import('/page/format.js').then((format) => format.dollars({value:.12}))"));
    told.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_panel_shows_the_numbers_that_a_known_load_made() {
    let desk = Desk::new("");
    let known = desk.known_load().await;
    assert_eq!((known.requests, known.cut), (5, 3), "{known:?}");
    let mut browser = desk.browser("now");
    let money = dollars(&mut browser, known.dollars);
    browser.shows(&stat("requests total"), &known.requests.to_string());
    browser.shows(&stat("tokens total"), &(known.thinking + known.solution).to_string());
    browser.shows(&stat("money total"), &money);
    browser.shows("[data-target^=\"reasoner/\"]", "available");

    browser.press("#panels a[href=\"#thinking\"]");
    browser.shows(&stat("planned"), &known.planned.to_string());
    browser.shows(&stat("used"), &known.thinking.to_string());
    browser.shows(&stat("Thoughts cut"), "3");
    browser.shows(&stat("Thoughts closed"), "2");
    browser.shows(".curves", "over 5 requests, chosen for 5");
    browser.until("document.querySelectorAll('.curves .dot.chosen').length === 5");
    browser.until("document.querySelectorAll('.pair .dot.cut').length === 3");

    browser.press("#panels a[href=\"#money\"]");
    browser.shows("[data-account=\"acme/alice\"]", &format!("{money} of $20.00"));
    browser.shows("[data-spender=\"acme/alice\"]", "5 requests");
    browser.shows("[data-model=\"reasoner\"]", &money);

    browser.press("#panels a[href=\"#decisions\"]");
    browser.until("document.querySelectorAll('[data-decision]').length === 5");
    browser.shows(".decisions li:last-child", "thought 8 of 8, cut");
    browser.shows(".decisions li:last-child .why", "stated");
    browser.press(".decisions li:first-child summary");
    browser.shows(".decisions li:first-child tr.chosen", "reasoner, 200 tokens");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// AU-22, CF-14, OB-06: the run's name is HTML, and is shown as text.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_raised_and_ended_on_the_page_and_the_books_verify() {
    let mut desk = Desk::new("");
    desk.known_load().await;
    let mut browser = desk.browser("episodes");
    browser.shows(".run h3", RUN);
    browser.shows("[data-budget=\"turns\"]", "3 left of 5");
    browser.until("document.querySelectorAll('.run .step').length === 2");
    browser.press(".run summary");
    browser.types(".run input[id^=\"turns\"]", "4");
    browser.press(".run button[type=submit]");
    browser.shows("[data-budget=\"turns\"]", "7 left of 9");
    browser.press(".run button.grave");
    browser.press(".run .sure button");
    browser.shows(".run .badge", "ended");
    assert_ne!(browser.eval("document.title"), "owned", "a name is text");
    assert_eq!(browser.eval("document.querySelectorAll('main img').length"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
    desk.process.signal("TERM");
    assert!(desk.process.ended().success());
    let verified = desk.folder.stint("ledger").arg("verify").output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// AU-22, CF-14, OB-06: so is a model's name.
#[tokio::test(flavor = "multi_thread")]
async fn the_playground_shows_thought_cut_answer_and_budget_of_two_models_for_the_key_that_is_typed() {
    let upstream = Upstream::start();
    let desk = Desk::new(&format!(
        "[[backend]]\nbase_url = \"{}\"\n[[backend.model]]\nname = \"<b>m</b>\"\nprice_input = \"1\"\nprice_output = \"1\"\n\
         thinking_max = 0\n",
        upstream.base
    ));
    let mut browser = desk.browser("try");
    browser.until("document.querySelectorAll('[data-side=B] option').length > 1");
    browser.types("#question", &Manner::Words(7).words());
    browser.press(".go button");
    browser.shows("[data-side=A] .budget-line", "API key");
    browser.types("#key", KEY);
    let set = |element: &str, value: &str| {
        format!(
            "(() => {{ const one = document.querySelector({element}); one.value = {value}; \
             one.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
        )
    };
    browser.eval(&set("'[data-side=A] select'", "'<b>m</b>'"));
    browser.press(".go button");
    browser.shows("[data-side=A] .budget-line", "7 of answer");
    browser.shows("[data-side=A] .answer-text", "wor wor wor");
    browser.types("#question", "What is 12+34*2?");
    browser.eval(&set("'[data-side=A] select'", "'reasoner'"));
    browser.eval(&set("'[data-side=B] select'", "'reasoner'"));
    browser.eval(&set("'[data-side=B] input[type=range]'", "8"));
    let budget = browser.shows("[data-side=B] output", "tokens").replace(" tokens", "");
    browser.press(".go button");
    browser.shows("[data-side=B] [data-stat=budget]", &format!("{budget} of {budget} tokens of thought"));
    browser.shows("[data-side=B] .cut-line", &format!("cut after {budget} tokens"));
    browser.shows("[data-side=A] .cut-line", "closed by the model");
    browser.until("document.querySelector('[data-side=A] .thought-text').textContent.length > 8");
    browser.shows("[data-side=A] .answer-text", "80");
    browser.press("#panels a[href=\"#decisions\"]");
    browser.shows(".decisions", "<b>m</b>");
    assert_eq!(browser.eval("document.querySelectorAll('main b').length"), 0, "a name is text");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// AU-19: the page shows no content.
#[tokio::test(flavor = "multi_thread")]
async fn no_word_of_a_request_is_in_any_part_of_the_page() {
    let desk = Desk::new("");
    desk.known_load().await;
    for part in ["now", "history", "models", "thinking", "money", "episodes", "decisions"] {
        let text = desk.part(part).await.good().to_string();
        assert!(!text.contains(SECRET) && !text.contains("68=80"), "{part}: {text}");
    }
}
