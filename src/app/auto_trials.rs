//! Says that `auto` tries models that look worse, where it does.

use stint_types::catalog::Catalog;

/// What is said of it at the start, and by `stint check`.
pub(super) fn notice(catalog: &Catalog) -> Option<String> {
    let bounds = catalog.routes.get("auto")?.trials.filter(|_| catalog.models.len() > 1)?;
    let percent = |share: f64| share * 100.0;
    Some(format!(
        "auto tries other models now and then, so that `stint replay` can judge them: with at most {} % of its requests and {} % \
         of what it spends, never in an agent's steps; auto_explores = false in [plan] turns that off",
        percent(bounds.requests.get()),
        percent(bounds.spend.get())
    ))
}
