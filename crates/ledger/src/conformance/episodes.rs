//! Conformance tests: what a journal stores of episodes and their tool calls.

use crate::{
    AccountId, Amounts, DispatchEntry, EpisodeUsage, Journal, JournalEntry, RequestScope, ResolutionKind,
};
use stint_types::chat::ToolCounts;
use stint_types::units::{Count, EpisodeId, Money, Tokens};

use super::fixtures::{amounts, append, balance, dispatched, resolved};

pub(super) async fn a_step_comes_back_with_its_run_and_its_tool_calls(journal: &dyn Journal) {
    let run = |name: &str| -> EpisodeId { name.parse().unwrap() };
    let tools = |search, browse| {
        let mut tools = ToolCounts::default();
        tools.add(&"search".into(), Count(search));
        tools.add(&"br\"owse".into(), Count(browse));
        tools
    };
    let row = |name, calls: &ToolCounts| {
        let row = dispatched("runs", 1_000, Amounts { tool_calls: calls.all, ..amounts(50, 6) });
        let about = RequestScope { episode: Some(run(name)), ..row.about };
        DispatchEntry { about, tools: calls.clone(), tools_cost: Money(20), ..row }
    };
    let end = |row: &DispatchEntry, how, money, calls: &ToolCounts| {
        let mut ended = resolved(row, how, Amounts { tool_calls: calls.all, ..amounts(money, 1) });
        (ended.detail.tools, ended.detail.tools_cost) = (calls.clone(), Money(money.min(5)));
        JournalEntry::Resolved(ended)
    };
    let rows = ["one", "one", "one", "two"].map(|name| row(name, &tools(3, 4)));
    append(journal, &rows.clone().map(JournalEntry::Dispatched)).await;
    assert_eq!(journal.unresolved().await.unwrap(), rows);
    let none = ToolCounts::default();
    append(
        journal,
        &[
            end(&rows[0], ResolutionKind::Settled, 30, &tools(1, 0)),
            end(&rows[1], ResolutionKind::Voided, 0, &none),
        ],
    )
    .await;
    let used = async |name| journal.episode_usage(&AccountId::new("runs"), &run(name)).await.unwrap();
    let one = used("one").await;
    assert_eq!((one.cost, one.thinking, one.turns), (Money(30), Tokens(2), Count(1)));
    assert_eq!((one.tools.all, one.tools.of("search")), (Count(1), Count(1)));
    append(
        journal,
        &[
            end(&rows[2], ResolutionKind::Expired, 50, &tools(3, 4)),
            end(&rows[3], ResolutionKind::Settled, 1, &tools(0, 2)),
        ],
    )
    .await;
    let (one, two) = (used("one").await, used("two").await);
    assert_eq!((one.cost, one.turns, one.tools), (Money(80), Count(2), tools(4, 4)));
    assert_eq!((two.cost, two.tools.of("br\"owse"), two.tools.all), (Money(1), Count(2), Count(2)));
    assert_eq!(used("three").await, EpisodeUsage::default());
    let mut vectors = row("two", &none);
    vectors.about.beside_turns = true;
    append(journal, &[JournalEntry::Dispatched(vectors.clone())]).await;
    assert_eq!(journal.unresolved().await.unwrap(), [vectors.clone()]);
    append(journal, &[end(&vectors, ResolutionKind::Settled, 9, &none)]).await;
    assert_eq!((used("two").await.cost, used("two").await.turns), (Money(10), Count(1)), "no turn of it");
    let sums = balance(journal, "runs").await;
    assert_eq!(sums.len(), 1, "sums do not tell runs apart");
    assert_eq!((sums[0].spent.tool_calls, sums[0].about.episode.as_ref()), (Count(10), None));
}
