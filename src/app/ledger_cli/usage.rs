//! `stint usage`: its arguments, and its table.

use clap::{Args, ValueEnum};

use crate::app::output::align_columns;
use crate::config::Settings;
use stint_ledger::{AccountId, GroupBy, GroupUsage, UsageQuery};
use stint_storage::{Archive, StorageError};
use stint_types::units::Timestamp;

use super::LedgerCommandError;

/// Of whom, when, and by what.
#[derive(Debug, Args)]
pub(in crate::app) struct UsageOptions {
    /// Only this account and those below it. Default: all.
    #[arg(long, value_name = "PATH")]
    account: Option<AccountId>,
    /// How to group it.
    #[arg(long, value_delimiter = ',', default_value = "model")]
    by: Vec<UsageDimension>,
    /// Requests admitted at this moment or later: a day, which begins in UTC, or a time.
    #[arg(long)]
    from: Option<Timestamp>,
    /// Requests admitted before this moment.
    #[arg(long)]
    to: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UsageDimension {
    Model,
    Key,
    Day,
}

/// Whether there is something between two moments.
///
/// # Errors
/// When there is not.
pub(super) fn check_times(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), LedgerCommandError> {
    match from.zip(to) {
        Some((from, to)) if to <= from => Err(LedgerCommandError::Times { from, to }),
        _ => Ok(()),
    }
}

/// Whether an account is one that could have used something: it or one below it did once, or has terms or a key.
///
/// # Errors
/// When the books cannot be read.
pub(super) async fn is_known(
    account: &AccountId,
    declared: &Settings,
    archive: &mut Archive,
) -> Result<bool, StorageError> {
    let terms = declared.terms.iter().map(|terms| &terms.account);
    let tenants = declared.tenants.iter().map(|tenant| &tenant.account);
    let mut trees = declared.issuers.iter().map(|issuer| &issuer.tree);
    let is_declared = terms.chain(tenants).any(|known| account.contains(known))
        || trees.any(|tree| tree.contains(account) || account.contains(tree));
    if is_declared || archive.has_account(account).await? {
        return Ok(true);
    }
    let ever = UsageQuery {
        account: Some(account.clone()),
        from: Timestamp(i64::MIN),
        to: Timestamp(i64::MAX),
        by: GroupBy { day: false, key: false, model: true },
        after: None,
        limit: 1,
    };
    Ok(!archive.usage(&ever).await?.is_empty())
}

impl UsageOptions {
    pub(super) fn account(&self) -> Option<&AccountId> {
        self.account.as_ref()
    }

    pub(super) fn from(&self) -> Option<Timestamp> {
        self.from
    }

    pub(super) fn to(&self) -> Option<Timestamp> {
        self.to
    }

    pub(super) fn query(&self) -> UsageQuery {
        let by = |by| self.by.contains(&by);
        UsageQuery {
            account: self.account.clone(),
            from: self.from.unwrap_or(Timestamp(i64::MIN)),
            to: self.to.unwrap_or(Timestamp(i64::MAX)),
            by: GroupBy {
                day: by(UsageDimension::Day),
                key: by(UsageDimension::Key),
                model: by(UsageDimension::Model),
            },
            after: None,
            limit: usize::MAX,
        }
    }
}

/// The rows with their sum, columns as wide as they must be.
pub(super) fn table(options: &UsageOptions, usages: &[GroupUsage]) -> String {
    let by = options.query().by;
    let names = [("day", by.day), ("key", by.key), ("model", by.model)];
    let head: Vec<String> =
        names.iter().filter(|(_, shown)| *shown).map(|(name, _)| (*name).to_owned()).collect();
    let texts = head.len();
    let numbers = ["requests", "spent USD", "prompt", "thinking", "solution", "other"].map(str::to_owned);
    let mut rows = vec![[head, numbers.to_vec()].concat()];
    let mut total = stint_ledger::UsageSums::default();
    for usage in usages {
        total += usage.sums;
        let day = usage.group.day.to_string();
        let cells =
            [day[..day.len().min(10)].to_owned(), usage.group.key.to_string(), usage.group.model.to_string()];
        let shown = cells.into_iter().zip(names).filter(|(_, (_, shown))| *shown).map(|(cell, _)| cell);
        rows.push(shown.chain(counts(&usage.sums)).collect());
    }
    let mut last = vec![String::new(); texts];
    last.iter_mut().take(1).for_each(|cell| "all".clone_into(cell));
    last.extend(counts(&total));
    rows.push(last);
    align_columns(&rows, texts)
}

fn counts(sums: &stint_ledger::UsageSums) -> [String; 6] {
    [
        sums.spent.requests.0.to_string(),
        sums.spent.money.to_string(),
        sums.prompt.to_string(),
        sums.spent.thinking.to_string(),
        sums.solution.to_string(),
        (sums.overhead + sums.other).to_string(),
    ]
}
