//! Recomputing everything from all entries.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection};

use crate::ledger::{
    About, AccountId, Amounts, How, Record, Rollups, SEAL_MAX, Seal, Sealing, Span, Spent, Sums,
};
use crate::units::{Count, Money, Timestamp, Tokens};

use super::records::records;
use super::rows::{about, amounts, count};
use super::{seals, sums};

/// Sums over all time, by account and by what the requests were about.
type Balances = BTreeMap<(AccountId, About), Sums>;

/// A line of the rollups: how long its time is, what it is of, and what that comes to.
type Rollup = (i64, (Timestamp, AccountId, About), Sums);

/// How many differences a report names.
const NAMED_MAX: usize = 20;

/// What came of recomputing the books from all their entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many resolutions there are.
    pub resolutions: u64,
    /// How many reservations have none.
    pub open: u64,
    /// How many seals there are.
    pub seals: usize,
    /// How many of the resolutions they cover.
    pub sealed: u64,
    /// What was spent over all time.
    pub spent: Money,
    /// The first differences, each in words; none in books that are right.
    pub differences: Vec<String>,
    /// How many there are in all.
    pub found: usize,
}

/// What must not be, and how to find it; `?` is what is told of each.
const NEVER: [(&str, &str); 8] = [
    (
        "the reservation ? has a negative amount",
        "SELECT lower(hex(id)) FROM reservations \
         WHERE min(money, thinking, tool_calls, coalesce(price_input, 0), coalesce(price_output, 0)) < 0",
    ),
    (
        "an extension of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM extensions WHERE min(money, thinking, tool_calls) < 0",
    ),
    (
        "a metering of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM meterings WHERE min(money, thinking, tool_calls) < 0",
    ),
    (
        "the resolution of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM resolutions \
         WHERE min(money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, \
                   prompt, overhead, solution, other) < 0",
    ),
    (
        "? is resolved more than once",
        "SELECT lower(hex(reservation)) FROM resolutions NOT INDEXED GROUP BY reservation HAVING count(*) > 1",
    ),
    (
        "? has neither a resolution nor a place among the open reservations",
        "SELECT lower(hex(id)) FROM reservations r \
         WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = r.id) \
           AND NOT EXISTS (SELECT 1 FROM open_reservations WHERE reservation = r.id)",
    ),
    (
        "? is among the open reservations and is resolved",
        "SELECT lower(hex(reservation)) FROM open_reservations o \
         WHERE EXISTS (SELECT 1 FROM resolutions WHERE reservation = o.reservation)",
    ),
    (
        "? is among the open reservations and is none",
        "SELECT lower(hex(reservation)) FROM open_reservations o \
         WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE id = o.reservation)",
    ),
];

/// Recomputes all of it, in one snapshot.
pub(super) async fn verify(connection: &mut SqliteConnection) -> Result<Report, sqlx::Error> {
    let mut report = Report::default();
    let mut snapshot = connection.begin().await?;
    file(&mut snapshot, &mut report).await?;
    for (told, sql) in NEVER {
        for row in sqlx::query(sql).fetch_all(&mut *snapshot).await? {
            report.differs(told.replace('?', row.try_get(0)?));
        }
    }
    match entries(&mut snapshot, &mut report).await {
        Ok(balances) => stand(&balances, &sums::balances(&mut snapshot).await?, &mut report),
        Err(error @ (sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. })) => {
            report.differs(format!("a row cannot be read: {error}"));
        }
        Err(error) => return Err(error),
    }
    let open = "SELECT count(*) FROM open_reservations";
    report.open = count(sqlx::query_scalar(open).fetch_one(&mut *snapshot).await?);
    Ok(report)
}

impl Report {
    /// True where nothing differs.
    pub fn is_right(&self) -> bool {
        self.found == 0
    }

    fn differs(&mut self, difference: String) {
        self.found += 1;
        if self.differences.len() < NAMED_MAX {
            self.differences.push(difference);
        }
    }

    fn check<T: PartialEq + Debug>(&mut self, what: &str, of: &dyn Display, is: &T, should: &T) {
        if is != should {
            self.differs(format!("{what} of {of}: {is:?}, and it should be {should:?}"));
        }
    }
}

/// What to call a resolution, put into words only where one differs.
struct Name<'a>(&'a Record);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resolution {} ({})", self.0.number, self.0.resolved.id)
    }
}

/// What the database itself finds.
async fn file(snapshot: &mut SqliteConnection, report: &mut Report) -> Result<(), sqlx::Error> {
    for row in sqlx::query("PRAGMA integrity_check(20)").fetch_all(&mut *snapshot).await? {
        match row.try_get::<&str, _>(0)? {
            "ok" => {}
            broken => report.differs(format!("the file: {broken}")),
        }
    }
    for row in sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut *snapshot).await? {
        let (table, parent): (&str, &str) = (row.try_get(0)?, row.try_get(2)?);
        report.differs(format!("a row of {table} refers to a row of {parent} that is not there"));
    }
    Ok(())
}

/// Walks all resolutions, seal by seal and on to the last; gives back what they come to.
async fn entries(snapshot: &mut SqliteConnection, report: &mut Report) -> Result<Balances, sqlx::Error> {
    let (mut balances, mut previous) = (Balances::new(), None::<Seal>);
    for seal in seals::all(&mut *snapshot).await? {
        let name = format!("seal {}", seal.number);
        let number = previous.as_ref().map_or(0, |seal| seal.number) + 1;
        report.check("the number", &name, &seal.number, &number);
        let again = walk(snapshot, Sealing::after(previous.as_ref()), seal.through, report).await?;
        match again.finish(seal.at) {
            None => report.differs(format!("{name} covers nothing")),
            Some((again, rollups)) => {
                compare(snapshot, &name, &seal, (&again, &rollups), report).await?;
                add(&mut balances, &rollups);
            }
        }
        (report.seals, report.sealed) = (report.seals + 1, report.resolutions);
        previous = Some(seal);
    }
    // What is not sealed yet, as if it were.
    let mut last = previous;
    loop {
        let sealing = walk(snapshot, Sealing::after(last.as_ref()), i64::MAX, report).await?;
        let Some((seal, rollups)) = sealing.finish(Timestamp(0)) else { return Ok(balances) };
        add(&mut balances, &rollups);
        last = Some(seal);
    }
}

/// Goes on to that number, or as far as one seal reaches.
async fn walk(
    snapshot: &mut SqliteConnection,
    mut sealing: Sealing,
    through: i64,
    report: &mut Report,
) -> Result<Sealing, sqlx::Error> {
    while sealing.room() > 0 {
        let part = records(snapshot, sealing.through(), through, sealing.room().min(SEAL_MAX)).await?;
        if part.is_empty() {
            break;
        }
        for record in &part {
            one(record, report);
            sealing.add(record);
        }
    }
    Ok(sealing)
}

/// A resolution against what led to it.
fn one(record: &Record, report: &mut Report) {
    let Record { resolved, dispatched, .. } = record;
    report.resolutions += 1;
    report.spent += resolved.spent.money;
    let name = Name(record);
    let Some(dispatched) = dispatched else { return report.differs(format!("{name} has no reservation")) };
    report.check("the account", &name, &resolved.account, &dispatched.account);
    report.check("the admission", &name, &resolved.admitted, &dispatched.admitted);
    let spent = Amounts { requests: Count::ZERO, ..resolved.spent };
    report.check("the overrun", &name, &resolved.overrun, &spent.saturating_sub(record.held()));
    if resolved.how == How::Voided {
        report.check("the voided charge", &name, &spent, &Amounts::ZERO);
    }
}

async fn compare(
    snapshot: &mut SqliteConnection,
    name: &str,
    seal: &Seal,
    (again, rollups): (&Seal, &Rollups),
    report: &mut Report,
) -> Result<(), sqlx::Error> {
    report.check("the last resolution", &name, &seal.through, &again.through);
    report.check("the number of resolutions", &name, &seal.resolutions, &again.resolutions);
    report.check("the hash", &name, &seal.hex(), &again.hex());
    let sql = "SELECT * FROM rollups WHERE seal = ? ORDER BY line";
    let stored = sqlx::query(sql).bind(seal.number).fetch_all(&mut *snapshot).await?;
    let stored = stored.iter().map(rollup).collect::<Result<Vec<_>, _>>()?;
    let should = rollups.iter().map(|((span, start, account, about), sums)| {
        (span.length(), (*start, account.clone(), about.clone()), *sums)
    });
    same(&format!("a rollup of {name}"), stored, should, report);
    Ok(())
}

/// Two lists, in one order.
fn same<T: PartialEq + Debug>(what: &str, is: Vec<T>, should: impl Iterator<Item = T>, report: &mut Report) {
    let (mut is, mut should) = (is.into_iter(), should);
    loop {
        match (is.next(), should.next()) {
            (None, None) => return,
            (Some(is), Some(should)) if is == should => {}
            (is, should) => {
                // What follows may only be shifted.
                return report.differs(format!("{what}: {is:?}, and its rows come to {should:?}"));
            }
        }
    }
}

fn add(balances: &mut Balances, rollups: &Rollups) {
    for ((_, _, account, about), sums) in rollups.iter().filter(|((span, ..), _)| *span == Span::All) {
        *balances.entry((account.clone(), about.clone())).or_default() += *sums;
    }
}

/// The balances that a start reads.
fn stand(balances: &Balances, stored: &[Spent], report: &mut Report) {
    let stored = stored.iter().map(|one| {
        let sums = Sums { spent: one.spent, overrun: one.overrun, settled: one.settled, ..Sums::default() };
        ((one.account.clone(), one.about.clone()), sums)
    });
    let should = balances.iter().map(|(key, sums)| {
        let Sums { spent, overrun, settled, .. } = *sums;
        (key.clone(), Sums { spent, overrun, settled, ..Sums::default() })
    });
    same("a balance", stored.collect(), should, report);
}

fn rollup(row: &SqliteRow) -> Result<Rollup, sqlx::Error> {
    let number = |column| row.try_get::<i64, _>(column).map(count);
    let sums = Sums {
        spent: Amounts { requests: Count(number("requests")?), ..amounts(row)? },
        overrun: Money(number("overrun_money")?),
        settled: number("settled")?,
        prompt: Tokens(number("prompt")?),
        overhead: Tokens(number("overhead")?),
        solution: Tokens(number("solution")?),
        other: Tokens(number("other")?),
    };
    let account = AccountId::new(row.try_get::<&str, _>("account")?);
    Ok((row.try_get("span")?, (Timestamp(row.try_get("start")?), account, about(row)?), sums))
}
