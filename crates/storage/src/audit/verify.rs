//! Recomputing everything from all entries.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::journal::{RollupKey, balances, read_records, read_rollups, read_seals};
use crate::sql::{SqlConnection, Statement};
use stint_ledger::{
    AccountId, AccountSpend, Amounts, RequestScope, ResolutionKind, ResolutionRecord, RollupSpan, Rollups,
    SEAL_MAX, Seal, SealBuilder, UsageSums,
};
use stint_types::units::{Count, Money, Timestamp};

use super::changes::verify_changes;
use super::describe::Describe;

/// Sums over all time, by account and by what the requests were about.
type SumsByScope = BTreeMap<(AccountId, RequestScope), UsageSums>;

/// How many differences a report names.
const NAMED_MAX: usize = 20;

/// The result of recomputing the books from all their entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// How many resolutions there are.
    pub resolutions: u64,
    /// How many reservations have none.
    pub open: u64,
    /// How many seals there are.
    pub seals: usize,
    /// How many of the resolutions they cover.
    pub sealed: u64,
    /// How many changes of admins are in the audit log as they were written.
    pub changes: u64,
    /// What was spent over all time.
    pub spent: Money,
    /// The first differences, each in words; none in books that are right.
    pub differences: Vec<String>,
    /// How many there are in all.
    pub found: usize,
}

/// What must not be, in words, and a statement that finds it. `?` in the words stands for what is found.
pub(crate) type Invariant = (&'static str, &'static str);

/// Recomputes everything, in a transaction whose every statement sees the same moment. `flaws` were found before. `open`
/// counts the reservations that are not resolved.
pub(crate) async fn verify(
    flaws: Vec<String>,
    invariants: &[Invariant],
    open: &'static str,
    connection: &mut dyn SqlConnection,
) -> Result<VerifyReport, sqlx::Error> {
    let mut report = VerifyReport::default();
    for flaw in flaws {
        report.add_difference(flaw);
    }
    for (words, sql) in invariants {
        for row in connection.fetch_all(Statement::new(*sql)).await? {
            report.add_difference(words.replace('?', row.get(0)?));
        }
    }
    match verify_entries(&mut report, connection).await {
        Ok(sums) => {
            compare_balances(&sums, &balances(connection).await?, &mut report);
            verify_changes(&mut report, connection).await?;
        }
        Err(error @ (sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. })) => {
            report.add_difference(format!("a row cannot be read: {error}"));
        }
        Err(error) => return Err(error),
    }
    report.open = connection.fetch_one(Statement::new(open)).await?.number(0)?;
    Ok(report)
}

impl VerifyReport {
    /// True if nothing differs.
    pub fn is_right(&self) -> bool {
        self.found == 0
    }

    pub(super) fn add_difference(&mut self, difference: String) {
        self.found += 1;
        if self.differences.len() < NAMED_MAX {
            self.differences.push(difference);
        }
    }

    fn check<T: PartialEq + Describe>(&mut self, what: &str, of: &dyn Display, is: &T, should: &T) {
        if is != should {
            self.add_difference(format!(
                "{what} of {of}: {}, and it should be {}",
                is.describe(),
                should.describe()
            ));
        }
    }
}

/// What to call a resolution, put into words only where one differs.
struct RecordName<'a>(&'a ResolutionRecord);

impl Display for RecordName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resolution {} ({})", self.0.number, self.0.resolved.id)
    }
}

/// Walks all resolutions, seal by seal and on to the last; gives back what they come to.
async fn verify_entries(
    report: &mut VerifyReport,
    connection: &mut dyn SqlConnection,
) -> Result<SumsByScope, sqlx::Error> {
    let (mut balances, mut previous) = (SumsByScope::new(), None::<Seal>);
    for seal in read_seals(connection).await? {
        let name = format!("seal {}", seal.number);
        let number = previous.as_ref().map_or(0, |seal| seal.number) + 1;
        report.check("the number", &name, &seal.number, &number);
        let again = walk(SealBuilder::after(previous.as_ref()), seal.through, report, connection).await?;
        match again.finish(seal.at) {
            None => report.add_difference(format!("{name} covers nothing")),
            Some((again, rollups)) => {
                compare_seals(&name, &seal, &again, report);
                let stored = read_rollups(seal.number, connection).await?;
                let should = rollups.iter().map(|(key, sums)| (RollupKey::of(key), *sums));
                compare_lists(&format!("a rollup of {name}"), stored, should, report);
                add_rollups(&mut balances, &rollups);
            }
        }
        (report.seals, report.sealed) = (report.seals + 1, report.resolutions);
        previous = Some(seal);
    }
    // What is not sealed yet, as if it were.
    let mut last = previous;
    loop {
        let sealing = walk(SealBuilder::after(last.as_ref()), i64::MAX, report, connection).await?;
        let Some((seal, rollups)) = sealing.finish(Timestamp(0)) else { return Ok(balances) };
        add_rollups(&mut balances, &rollups);
        last = Some(seal);
    }
}

/// Adds resolutions up to that number to a seal, or as many as one seal covers.
async fn walk(
    mut sealing: SealBuilder,
    through: i64,
    report: &mut VerifyReport,
    connection: &mut dyn SqlConnection,
) -> Result<SealBuilder, sqlx::Error> {
    while sealing.remaining() > 0 {
        let most = sealing.remaining().min(SEAL_MAX);
        let part = read_records(sealing.through(), through, most, connection).await?;
        if part.is_empty() {
            break;
        }
        for record in &part {
            check_record(record, report);
            sealing.add(record);
        }
    }
    Ok(sealing)
}

/// A resolution against what led to it.
fn check_record(record: &ResolutionRecord, report: &mut VerifyReport) {
    let ResolutionRecord { resolved, dispatched, .. } = record;
    report.resolutions += 1;
    report.spent += resolved.spent.money;
    let name = RecordName(record);
    let Some(dispatched) = dispatched else {
        return report.add_difference(format!("{name} has no reservation"));
    };
    report.check("the account", &name, &resolved.account, &dispatched.account);
    report.check("the run", &name, &resolved.about.episode, &dispatched.about.episode);
    if resolved.about.beside_turns != dispatched.about.beside_turns {
        report
            .add_difference(format!("{name} is a turn of its run by one of its rows, and none by the other"));
    }
    let each = resolved.detail.tools.each.values().fold(Count::ZERO, |sum, count| sum + *count);
    if each > resolved.spent.tool_calls || resolved.detail.tools_cost > resolved.spent.money {
        report.add_difference(format!("the tool calls of {name} are more than all that it was charged"));
    }
    let (parts, whole) = (&resolved.detail.parts, resolved.total_spend());
    let is_own = resolved.about.model.as_ref().is_some_and(|model| parts.has(model));
    if is_own || parts.sum().min(whole) != parts.sum() {
        report.add_difference(format!("the parts of {name} are more than other models can have taken of it"));
    }
    report.check("the admission", &name, &resolved.admitted, &dispatched.admitted);
    let spent = Amounts { requests: Count::ZERO, ..resolved.spent };
    report.check("the overrun", &name, &resolved.overrun, &overrun(record, spent));
    if resolved.how == ResolutionKind::Voided {
        report.check("the voided charge", &name, &spent, &Amounts::ZERO);
    }
}

/// What the overrun must be. Calls of tools that nothing limits are not set aside, and are none; older rows have them all the
/// same.
fn overrun(record: &ResolutionRecord, spent: Amounts) -> Amounts {
    let most = spent.saturating_sub(record.held());
    match record.resolved.overrun.tool_calls {
        Count::ZERO => Amounts { tool_calls: Count::ZERO, ..most },
        _ => most,
    }
}

fn compare_seals(name: &str, seal: &Seal, again: &Seal, report: &mut VerifyReport) {
    report.check("the last resolution", &name, &seal.through, &again.through);
    report.check("the number of resolutions", &name, &seal.resolutions, &again.resolutions);
    report.check("the hash", &name, &seal.hex(), &again.hex());
}

/// Two lists, in one order.
fn compare_lists<K: PartialEq + Describe, V: PartialEq + Describe>(
    what: &str,
    is: Vec<(K, V)>,
    should: impl Iterator<Item = (K, V)>,
    report: &mut VerifyReport,
) {
    let (mut is, mut should) = (is.into_iter(), should);
    loop {
        match (is.next(), should.next()) {
            (None, None) => return,
            (Some(is), Some(should)) if is == should => {}
            (found, should) => {
                // What follows may only be shifted.
                let follows = |key: &K| is.as_slice().iter().any(|(other, _)| other == key);
                return report.add_difference(difference(what, found, should, follows));
            }
        }
    }
}

/// What differs first in two lists: what something comes to, or that only one of them has it.
fn difference<K: PartialEq + Describe, V: Describe>(
    what: &str,
    is: Option<(K, V)>,
    should: Option<(K, V)>,
    follows: impl Fn(&K) -> bool,
) -> String {
    match (is, should) {
        (Some((key, is)), Some((should_key, should))) if key == should_key => {
            format!("{what}: {} has {}, and should have {}", key.describe(), is.describe(), should.describe())
        }
        (is, Some((key, should))) if is.is_none() || !follows(&key) => {
            format!("{what}: {} is not there, and should have {}", key.describe(), should.describe())
        }
        (Some((key, is)), _) => {
            format!("{what}: {} has {}, and no row is of it", key.describe(), is.describe())
        }
        (None, _) => what.to_owned(),
    }
}

fn add_rollups(balances: &mut SumsByScope, rollups: &Rollups) {
    let whole = |span: &RollupSpan, part_of: &Option<_>| *span == RollupSpan::All && part_of.is_none();
    for ((_, _, account, about, _), sums) in rollups.iter().filter(|((span, .., of), _)| whole(span, of)) {
        *balances.entry((account.clone(), about.clone())).or_default() += *sums;
    }
}

/// The balances that a start reads.
fn compare_balances(balances: &SumsByScope, stored: &[AccountSpend], report: &mut VerifyReport) {
    let stored = stored.iter().map(|one| {
        let sums = UsageSums {
            spent: one.spent,
            overrun: one.overrun,
            settled: one.settled,
            ..UsageSums::default()
        };
        ((one.account.clone(), one.about.clone()), sums)
    });
    let should = balances.iter().map(|(key, sums)| {
        let UsageSums { spent, overrun, settled, .. } = *sums;
        (key.clone(), UsageSums { spent, overrun, settled, ..UsageSums::default() })
    });
    compare_lists("a balance", stored.collect(), should, report);
}
