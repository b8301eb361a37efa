//! Resolutions with all that led to them, read in their order.

use std::collections::HashMap;
use std::io;

use crate::sql::{FromColumn, SqlConnection, SqlRow, Statement, decode_error, from_column, sql};
use stint_ledger::{
    AbandonPolicy, Amounts, DispatchEntry, ExtensionEntry, MeterEntry, ModelSpend, RequestScope,
    ResolutionEntry, ResolutionKind, ResolutionRecord, SettlementDetail,
};
use stint_types::catalog::Prices;
use stint_types::units::{AccountId, Count, EpisodeId, Money, Price, RequestId, Timestamp, Tokens};

use super::model_spend::ModelSpendRow;
use super::seals::newest_resolution;
use super::tool_counts;

/// How many are read at a time.
const READ_MAX: usize = 2_000;

const RESOLUTIONS: &str = "\
    SELECT s.number, s.reservation, s.account, s.model, s.end_user, s.tag, s.admitted_at, s.resolved_at, s.how, \
           s.money, s.thinking, s.tool_calls, s.overrun_money, s.overrun_thinking, s.overrun_tool_calls, \
           s.prompt, s.overhead, s.solution, s.other, s.outcome, s.episode, s.tools, s.tools_cost, s.turns, \
           r.account, r.model, r.end_user, r.tag, r.money, r.thinking, r.tool_calls, r.price_input, r.price_output, \
           r.if_abandoned, r.admitted_at, r.expires_at, r.episode, r.tools, r.tools_cost, r.turns \
    FROM resolutions s LEFT JOIN reservations r ON r.id = s.reservation \
    WHERE s.number > $1 AND s.number <= $2 ORDER BY s.number LIMIT $3";

/// The next records after one number, up to another; none, when there are no more. At most so many.
pub(crate) async fn read_records(
    after: i64,
    through: i64,
    most: usize,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<ResolutionRecord>, sqlx::Error> {
    let find = Statement::new(RESOLUTIONS).bind(after).bind(through).bind(most.min(READ_MAX));
    let rows = connection.fetch_all(find).await?;
    let mut records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    let Some(last) = records.last().map(|record| record.number) else { return Ok(records) };
    let extensions = read_joined(EXTENSIONS, after, last, connection).await?;
    let meterings = read_joined(METERINGS, after, last, connection).await?;
    let parts = read_joined(PARTS, after, last, connection).await?;
    if extensions.is_empty() && meterings.is_empty() && parts.is_empty() {
        return Ok(records);
    }
    let places = records.iter().enumerate().map(|(place, record)| (record.resolved.id, place));
    let places: HashMap<RequestId, usize> = places.collect();
    for row in &extensions {
        let entry = extension(row)?;
        if let Some(&place) = places.get(&entry.id) {
            records[place].extended.push(entry);
        }
    }
    for row in &meterings {
        let entry = metering(row)?;
        if let Some(&place) = places.get(&entry.id) {
            records[place].metered.push(entry);
        }
    }
    for row in &parts {
        let ModelSpendRow { id, model, spend } = model_spend(row)?;
        if let Some(&place) = places.get(&id) {
            records[place].resolved.detail.parts.add(&model, spend);
        }
    }
    Ok(records)
}

/// Shows every resolution with all that led to it, in their order.
pub(crate) async fn each_record(
    connection: &mut dyn SqlConnection,
    mut show: impl FnMut(&ResolutionRecord) -> io::Result<()>,
) -> Result<(), sqlx::Error> {
    let (newest, mut shown) = (newest_resolution(connection).await?, 0);
    loop {
        let part = read_records(shown, newest, usize::MAX, connection).await?;
        let Some(last) = part.last() else { return Ok(()) };
        shown = last.number;
        for record in &part {
            show(record)?;
        }
    }
}

/// A table with rows of its own for a resolution.
struct JoinedTable {
    name: &'static str,
    columns: &'static str,
    order: &'static str,
}

const EXTENSIONS: JoinedTable = JoinedTable {
    name: "extensions",
    columns: "t.reservation, t.step, t.model, t.money, t.thinking, t.tool_calls",
    order: " ORDER BY s.number, t.step",
};

const METERINGS: JoinedTable = JoinedTable {
    name: "meterings",
    columns: "t.reservation, t.step, t.money, t.thinking, t.tool_calls",
    order: " ORDER BY s.number, t.step",
};

const PARTS: JoinedTable = JoinedTable {
    name: "resolution_parts",
    columns: "t.reservation, t.model, t.money, t.thinking, t.prompt, t.overhead, t.solution, t.other",
    order: "",
};

/// Its rows for the resolutions after one number, up to another.
async fn read_joined(
    table: JoinedTable,
    after: i64,
    last: i64,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<SqlRow>, sqlx::Error> {
    let JoinedTable { name, columns, order } = table;
    let sql = sql(
        "SELECT {} FROM resolutions s {} {} t ON t.reservation = s.reservation \
         WHERE s.number > $1 AND s.number <= $2{}",
        &[&columns, &connection.dialect().join_from_left(), &name, &order],
    );
    connection.fetch_all(Statement::new(sql).bind(after).bind(last)).await
}

/// Columns by their order. A name would be looked up for each value of each row.
struct Columns<'r> {
    row: &'r SqlRow,
    next: usize,
}

impl<'r> Columns<'r> {
    fn of(row: &'r SqlRow) -> Columns<'r> {
        Columns { row, next: 0 }
    }

    fn take<T: FromColumn<'r>>(&mut self) -> Result<T, sqlx::Error> {
        self.next += 1;
        self.row.get(self.next - 1)
    }

    fn number(&mut self) -> Result<u64, sqlx::Error> {
        self.take().map(from_column)
    }

    fn money(&mut self) -> Result<Money, sqlx::Error> {
        self.number().map(Money)
    }

    fn tokens(&mut self) -> Result<Tokens, sqlx::Error> {
        self.number().map(Tokens)
    }

    fn time(&mut self) -> Result<Timestamp, sqlx::Error> {
        self.take().map(Timestamp)
    }

    fn step(&mut self) -> Result<u32, sqlx::Error> {
        u32::try_from(self.take::<i64>()?).map_err(decode_error)
    }

    fn id(&mut self) -> Result<RequestId, sqlx::Error> {
        self.take::<&[u8]>()?.try_into().map(RequestId::from_bytes).map_err(decode_error)
    }

    fn scope(&mut self) -> Result<RequestScope, sqlx::Error> {
        let mut name = || self.take::<Option<&str>>().map(|name| name.map(Into::into));
        Ok(RequestScope { model: name()?, user: name()?, tag: name()?, ..RequestScope::default() })
    }

    fn price(&mut self) -> Result<Option<Price>, sqlx::Error> {
        let per_million = self.take::<Option<i64>>()?;
        let price = |value| Price { per_million_tokens: Money(from_column(value)) };
        Ok(per_million.map(price))
    }

    fn amounts(&mut self, requests: Count) -> Result<Amounts, sqlx::Error> {
        let (money, thinking, tool_calls) = (self.money()?, self.tokens()?, Count(self.number()?));
        Ok(Amounts { money, thinking, requests, tool_calls })
    }

    fn episode(&mut self) -> Result<Option<EpisodeId>, sqlx::Error> {
        self.take::<Option<&str>>()?.map(str::parse).transpose().map_err(decode_error)
    }
}

fn record(row: &SqlRow) -> Result<ResolutionRecord, sqlx::Error> {
    let mut columns = Columns::of(row);
    let number = columns.take()?;
    let id = columns.id()?;
    let account = AccountId::new(columns.take::<&str>()?);
    let mut about = columns.scope()?;
    let (admitted, at) = (columns.time()?, columns.time()?);
    let how = columns.take::<&str>()?;
    let how = ResolutionKind::parse(how)
        .ok_or_else(|| decode_error(format!("{how:?} is no way to resolve {id}")))?;
    let spent = columns.amounts(if how == ResolutionKind::Voided { Count::ZERO } else { Count::ONE })?;
    let overrun = columns.amounts(Count::ZERO)?;
    let mut detail = SettlementDetail {
        prompt: columns.tokens()?,
        overhead: columns.tokens()?,
        solution: columns.tokens()?,
        other: columns.tokens()?,
        outcome: columns.take::<String>()?.into(),
        ..SettlementDetail::default()
    };
    about.episode = columns.episode()?;
    detail.tools = tool_counts::from_json(spent.tool_calls, columns.take()?)?;
    detail.tools_cost = columns.money()?;
    about.beside_turns = columns.number()? == 0;
    let dispatched = dispatch(id, &mut columns)?;
    let resolved = ResolutionEntry { id, account, about, admitted, at, how, spent, overrun, detail };
    Ok(ResolutionRecord { number, resolved, dispatched, extended: Vec::new(), metered: Vec::new() })
}

fn dispatch(id: RequestId, columns: &mut Columns<'_>) -> Result<Option<DispatchEntry>, sqlx::Error> {
    let Some(account) = columns.take::<Option<&str>>()? else { return Ok(None) };
    let account = AccountId::new(account);
    let mut about = columns.scope()?;
    let held = columns.amounts(Count::ONE)?;
    let (input, output) = (columns.price()?, columns.price()?);
    let if_abandoned = AbandonPolicy::parse(columns.take()?);
    let (admitted, expires) = (columns.time()?, columns.time()?);
    about.episode = columns.episode()?;
    let tools = tool_counts::from_json(held.tool_calls, columns.take()?)?;
    let tools_cost = columns.money()?;
    about.beside_turns = columns.number()? == 0;
    Ok(Some(DispatchEntry {
        id,
        account,
        about,
        held,
        tools,
        tools_cost,
        prices: input.zip(output).map(|(input, output)| Prices { input, output }),
        if_abandoned,
        rate: None,
        metered: None,
        metered_at: None,
        admitted,
        expires,
    }))
}

fn extension(row: &SqlRow) -> Result<ExtensionEntry, sqlx::Error> {
    let mut columns = Columns::of(row);
    let (id, step) = (columns.id()?, columns.step()?);
    let model = columns.take::<Option<&str>>()?.map(Into::into);
    Ok(ExtensionEntry { id, step, model, more: columns.amounts(Count::ZERO)? })
}

fn metering(row: &SqlRow) -> Result<MeterEntry, sqlx::Error> {
    let mut columns = Columns::of(row);
    let (id, step) = (columns.id()?, columns.step()?);
    Ok(MeterEntry { id, step, spent: columns.amounts(Count::ZERO)?, at: None })
}

fn model_spend(row: &SqlRow) -> Result<ModelSpendRow, sqlx::Error> {
    let mut columns = Columns::of(row);
    let (id, model) = (columns.id()?, columns.take::<&str>()?.into());
    let spend = ModelSpend {
        money: columns.money()?,
        thinking: columns.tokens()?,
        prompt: columns.tokens()?,
        overhead: columns.tokens()?,
        solution: columns.tokens()?,
        other: columns.tokens()?,
    };
    Ok(ModelSpendRow { id, model, spend })
}
