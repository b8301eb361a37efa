//! The part *requests*: those that run now, and how far each has got in its budgets. Nothing of what is asked is shown.

use serde_json::{Value, json};

use crate::gateway::{Gateway, LiveAttemptView, LiveRequestView};

/// So many of them at most, those that have run the longest first.
pub(super) fn part(gateway: &Gateway, most: usize) -> Value {
    let (shown, count) = gateway.live_requests(most);
    json!({ "requests": shown.iter().map(page).collect::<Vec<_>>(), "requests_count": count })
}

fn page(request: &LiveRequestView) -> Value {
    let LiveRequestView { id, account, route, seconds, attempt } = request;
    json!({
        "id": id,
        "account": account.as_str(),
        "route": route,
        "seconds": seconds,
        "attempt": attempt.as_ref().map(running),
    })
}

/// Budgets are those of one answer, so all that are written side by side may take so many times as much.
fn running(attempt: &LiveAttemptView) -> Value {
    let LiveAttemptView { model, reserved, answers, budgets, used } = attempt;
    json!({
        "model": model,
        "answers": answers,
        "reserved_usd": reserved.as_dollars(),
        "thinking": { "budget": budgets.0, "used": used.0 },
        "solution": { "budget": budgets.1, "used": used.1 },
    })
}
