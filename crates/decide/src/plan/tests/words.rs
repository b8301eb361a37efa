//! Words of effort: a higher one leads to no weaker choice.

use stint_types::catalog::{EFFORT_SHARES, EFFORT_WORDS};

use super::*;

/// Two models: of each the logarithm of its usual thought, its success without one and with one, and its price for a token of output
/// in nano-dollars.
fn two_thinkers(models: [(f64, f64, f64, u64); 2], worth: u64) -> PlanFixture {
    two().with(|w| {
        w.route.worth = Money(worth);
        w.demands = models.map(|(mu, blind, done, _)| demand(mu, blind, done)).into();
        for (own, (.., output)) in w.models.iter_mut().zip(models) {
            let prices = Prices { input: price(output * 200_000), output: price(output * 1_000_000) };
            own.tariff = Some(Tariff::plain(prices));
            (own.classes, own.efforts) = (vec![EnforcementClass::Inline], Vec::new());
            (own.context, own.thinking_max) = (Tokens(100_000), Tokens(60_000));
        }
    })
}

#[test]
fn a_higher_word_leads_to_no_weaker_choice() {
    let pairs = [
        [(3.5, 0.04, 0.82, 160), (7.3, 0.66, 0.96, 610)],
        [(7.5, 0.68, 0.99, 17_000), (3.4, 0.1, 0.9, 3_200)],
        [(4.0, 0.35, 0.84, 1_100), (6.4, 0.7, 0.77, 25_000)],
        [(7.3, 0.4, 0.84, 12_000), (6.2, 0.23, 0.41, 800)],
    ];
    for models in pairs {
        for worth in (0..10_u32).map(|doubling| 250_000_u64 << doubling) {
            let reached = EFFORT_WORDS.into_iter().zip(EFFORT_SHARES).map(|(word, share)| {
                let stated = |w: &mut PlanFixture| w.budget.reasoning_effort = effort_of(share, Some(word));
                two_thinkers(models, worth).with(stated).first().success.get()
            });
            let reached: Vec<f64> = reached.collect();
            assert!(reached.is_sorted(), "{models:?} at {worth}: {reached:?}");
        }
    }
}

#[test]
fn a_number_leads_to_no_weaker_choice_than_a_word_for_less() {
    let models = [(3.5, 0.04, 0.82, 160), (7.3, 0.66, 0.96, 610)];
    let at = |effort: f64, word: Option<&str>| {
        let stated = |w: &mut PlanFixture| w.budget.reasoning_effort = effort_of(effort, word);
        two_thinkers(models, 500_000).with(stated).plan().unwrap()
    };
    let (low, number) = (at(0.25, Some("low")), at(0.3, None));
    assert!(number.best.success >= low.best.success, "{} after {}", number.why, low.why);
    let said = "weaker than what is chosen without reasoning_effort or with less of it";
    assert!(number.why.contains(said), "{}", number.why);
}
