//! What is chosen from which worth to which.

use super::*;

#[test]
fn more_worth_buys_more_and_ranges_follow_one_another() {
    let ranges = two().ask(sweep).unwrap();
    let models: Vec<&str> = ranges.iter().map(|range| &*range.model).collect();
    assert!(models[0] == "small" && models[models.len() - 1] == "large", "{models:?}");
    for pair in ranges.windows(2) {
        let (end, start) = (pair[0].worth.end().as_dollars(), pair[1].worth.start().as_dollars());
        assert!(end < start && start < end * 1.01, "{end} {start}");
        assert!(!pair[0].is_like(&pair[1]));
    }
}

#[test]
fn each_range_is_what_is_planned_at_any_worth_in_it() {
    for range in two().ask(sweep).unwrap() {
        for worth in [*range.worth.start(), *range.worth.end()] {
            let offer = two().with(|w| w.route.worth = worth).first();
            assert_eq!(offer.model, range.model);
            assert!(
                range.thinking.contains(&offer.thinking) && range.cost.contains(&offer.cost),
                "{range:?}"
            );
        }
    }
}

#[test]
fn what_is_refused_is_refused_at_every_worth() {
    let broke = two().with(|w| w.budget.cost = Some(Money(1)));
    assert_eq!(broke.ask(sweep).unwrap_err(), broke.plan().unwrap_err());
}
