//! Resolutions with all that led to them, read in their order and in parts, in statements that both databases take.

/// The functions that read them, for one database. `$join` is the word that keeps its planner from beginning with the
/// table that is joined, where it needs one.
macro_rules! record_statements {
    ($database:ty, $connection:ty, $row:ty, $join:literal) => {
        use std::collections::HashMap;
        use std::sync::Arc;

        use sqlx::Row;

        use crate::catalog::Prices;
        use crate::ledger::{
            RequestScope, AccountId, Amounts, DispatchEntry, ExtensionEntry, ResolutionKind, AbandonPolicy, MeterEntry, ModelSpend, ResolutionRecord, ResolutionEntry,
            SettlementDetail,
        };
        use crate::storage::calls;
        use crate::units::{Count, EpisodeId, Money, Price, RequestId, Timestamp, Tokens};

        /// How many are read at a time.
        const PART: usize = 2_000;

        const RESOLUTIONS: &str = "\
            SELECT s.number, s.reservation, s.account, s.model, s.end_user, s.tag, s.admitted_at, s.resolved_at, s.how, \
                   s.money, s.thinking, s.tool_calls, s.overrun_money, s.overrun_thinking, s.overrun_tool_calls, \
                   s.prompt, s.overhead, s.solution, s.other, s.outcome, s.episode, s.tools, s.tools_cost, s.turns, \
                   r.account, r.model, r.end_user, r.tag, r.money, r.thinking, r.tool_calls, r.price_input, r.price_output, \
                   r.if_abandoned, r.admitted_at, r.expires_at, r.episode, r.tools, r.tools_cost, r.turns \
            FROM resolutions s LEFT JOIN reservations r ON r.id = s.reservation \
            WHERE s.number > $1 AND s.number <= $2 ORDER BY s.number LIMIT $3";

        const EXTENSIONS: &str = concat!(
            "SELECT e.reservation, e.step, e.model, e.money, e.thinking, e.tool_calls FROM resolutions s ",
            $join,
            " extensions e ON e.reservation = s.reservation \
             WHERE s.number > $1 AND s.number <= $2 ORDER BY s.number, e.step"
        );

        const METERINGS: &str = concat!(
            "SELECT m.reservation, m.step, m.money, m.thinking, m.tool_calls FROM resolutions s ",
            $join,
            " meterings m ON m.reservation = s.reservation \
             WHERE s.number > $1 AND s.number <= $2 ORDER BY s.number, m.step"
        );

        const PARTS: &str = concat!(
            "SELECT p.reservation, p.model, p.money, p.thinking, p.prompt, p.overhead, p.solution, p.other FROM resolutions s ",
            $join,
            " resolution_parts p ON p.reservation = s.reservation \
             WHERE s.number > $1 AND s.number <= $2"
        );

        /// The next records after one number, up to another; none, when there are no more. At most so many.
        pub(super) async fn records(
            connection: &mut $connection,
            after: i64,
            through: i64,
            most: usize,
        ) -> Result<Vec<ResolutionRecord>, sqlx::Error> {
            let limit = i64::try_from(most.min(PART)).unwrap_or(i64::MAX);
            let rows = sqlx::query(RESOLUTIONS).bind(after).bind(through).bind(limit);
            let rows = rows.fetch_all(&mut *connection).await?;
            let mut records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
            let Some(last) = records.last().map(|record| record.number) else { return Ok(records) };
            let extended = sqlx::query(EXTENSIONS).bind(after).bind(last).fetch_all(&mut *connection).await?;
            let metered = sqlx::query(METERINGS).bind(after).bind(last).fetch_all(&mut *connection).await?;
            let parts = sqlx::query(PARTS).bind(after).bind(last).fetch_all(&mut *connection).await?;
            if extended.is_empty() && metered.is_empty() && parts.is_empty() {
                return Ok(records);
            }
            let places: HashMap<RequestId, usize> =
                records.iter().enumerate().map(|(place, record)| (record.resolved.id, place)).collect();
            for row in &extended {
                let step = extension(row)?;
                if let Some(&place) = places.get(&step.id) {
                    records[place].extended.push(step);
                }
            }
            for row in &metered {
                let step = metering(row)?;
                if let Some(&place) = places.get(&step.id) {
                    records[place].metered.push(step);
                }
            }
            for row in &parts {
                let (id, model, part) = part(row)?;
                if let Some(&place) = places.get(&id) {
                    records[place].resolved.detail.parts.add(&model, part);
                }
            }
            Ok(records)
        }

        /// Columns by their order: names are looked up by each value of each row.
        struct Columns<'r> {
            row: &'r $row,
            next: usize,
        }

        impl<'r> Columns<'r> {
            fn of(row: &'r $row) -> Columns<'r> {
                Columns { row, next: 0 }
            }

            fn take<T: sqlx::Decode<'r, $database> + sqlx::Type<$database>>(&mut self) -> Result<T, sqlx::Error> {
                self.next += 1;
                self.row.try_get(self.next - 1)
            }

            fn number(&mut self) -> Result<u64, sqlx::Error> {
                self.take().map(count)
            }

            fn step(&mut self) -> Result<u32, sqlx::Error> {
                u32::try_from(self.take::<i64>()?).map_err(|error| sqlx::Error::Decode(Box::new(error)))
            }

            fn id(&mut self) -> Result<RequestId, sqlx::Error> {
                let bytes = <[u8; 16]>::try_from(self.take::<&[u8]>()?);
                bytes.map(RequestId::from_bytes).map_err(|error| sqlx::Error::Decode(Box::new(error)))
            }

            fn about(&mut self) -> Result<RequestScope, sqlx::Error> {
                let mut name = || self.take::<Option<&str>>().map(|name| name.map(Into::into));
                Ok(RequestScope { model: name()?, user: name()?, tag: name()?, ..RequestScope::default() })
            }

            fn episode(&mut self) -> Result<Option<EpisodeId>, sqlx::Error> {
                let name = self.take::<Option<&str>>()?.map(str::parse).transpose();
                name.map_err(|error| sqlx::Error::Decode(Box::new(error)))
            }

            fn amounts(&mut self, requests: Count) -> Result<Amounts, sqlx::Error> {
                let money = Money(self.number()?);
                let (thinking, tool_calls) = (Tokens(self.number()?), Count(self.number()?));
                Ok(Amounts { money, thinking, requests, tool_calls })
            }
        }

        fn record(row: &$row) -> Result<ResolutionRecord, sqlx::Error> {
            let mut columns = Columns::of(row);
            let number = columns.take()?;
            let id = columns.id()?;
            let (account, mut about) = (AccountId::new(columns.take::<&str>()?), columns.about()?);
            let (admitted, at) = (Timestamp(columns.take()?), Timestamp(columns.take()?));
            let how = columns.take::<&str>()?;
            let how = ResolutionKind::parse(how)
                .ok_or_else(|| sqlx::Error::Decode(format!("{how:?} is no way to resolve {id}").into()))?;
            let spent = columns.amounts(if how == ResolutionKind::Voided { Count::ZERO } else { Count::ONE })?;
            let overrun = columns.amounts(Count::ZERO)?;
            let mut detail = SettlementDetail {
                prompt: Tokens(columns.number()?),
                overhead: Tokens(columns.number()?),
                solution: Tokens(columns.number()?),
                other: Tokens(columns.number()?),
                outcome: columns.take::<String>()?.into(),
                ..SettlementDetail::default()
            };
            about.episode = columns.episode()?;
            detail.tools = calls::read(spent.tool_calls, columns.take()?)?;
            detail.tools_cost = Money(columns.number()?);
            about.beside_turns = columns.number()? == 0;
            let dispatched = dispatched(id, &mut columns)?;
            let resolved = ResolutionEntry { id, account, about, admitted, at, how, spent, overrun, detail };
            Ok(ResolutionRecord { number, resolved, dispatched, extended: Vec::new(), metered: Vec::new() })
        }

        fn dispatched(id: RequestId, columns: &mut Columns<'_>) -> Result<Option<DispatchEntry>, sqlx::Error> {
            let Some(account) = columns.take::<Option<&str>>()? else { return Ok(None) };
            let (account, mut about) = (AccountId::new(account), columns.about()?);
            let held = columns.amounts(Count::ONE)?;
            let (input, output): (Option<i64>, Option<i64>) = (columns.take()?, columns.take()?);
            let prices =
                input.zip(output).map(|(input, output)| Prices { input: price(input), output: price(output) });
            let if_abandoned = AbandonPolicy::parse(columns.take()?);
            let (admitted, expires) = (Timestamp(columns.take()?), Timestamp(columns.take()?));
            about.episode = columns.episode()?;
            let (tools, tools_cost) =
                (calls::read(held.tool_calls, columns.take()?)?, Money(columns.number()?));
            about.beside_turns = columns.number()? == 0;
            Ok(Some(DispatchEntry { id, account, about, held, tools, tools_cost, prices, if_abandoned, rate: None, metered: None, metered_at: None, admitted, expires }))
        }

        fn extension(row: &$row) -> Result<ExtensionEntry, sqlx::Error> {
            let mut columns = Columns::of(row);
            let (id, step) = (columns.id()?, columns.step()?);
            let model = columns.take::<Option<&str>>()?.map(Into::into);
            Ok(ExtensionEntry { id, step, model, more: columns.amounts(Count::ZERO)? })
        }

        fn metering(row: &$row) -> Result<MeterEntry, sqlx::Error> {
            let mut columns = Columns::of(row);
            let (id, step) = (columns.id()?, columns.step()?);
            Ok(MeterEntry { id, step, spent: columns.amounts(Count::ZERO)?, at: None })
        }

        fn part(row: &$row) -> Result<(RequestId, Arc<str>, ModelSpend), sqlx::Error> {
            let mut columns = Columns::of(row);
            let (id, model) = (columns.id()?, columns.take::<&str>()?.into());
            let money = Money(columns.number()?);
            let mut tokens = || columns.number().map(Tokens);
            let (thinking, prompt, overhead) = (tokens()?, tokens()?, tokens()?);
            let (solution, other) = (tokens()?, tokens()?);
            Ok((id, model, ModelSpend { money, thinking, prompt, overhead, solution, other }))
        }

        fn price(per_million: i64) -> Price {
            Price { per_million_tokens: Money(count(per_million)) }
        }

        /// The tables hold nothing below zero.
        fn count(value: i64) -> u64 {
            u64::try_from(value).unwrap_or(0)
        }
    };
}

pub(in crate::storage) use record_statements;
