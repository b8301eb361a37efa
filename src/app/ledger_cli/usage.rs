//! `stint usage`: its arguments, and its table.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

use crate::app::output::align_columns;
use crate::config::Settings;
use stint_ledger::{AccountId, GroupBy, GroupUsage, UsageQuery, UsageSums};
use stint_storage::{Archive, StorageError};
use stint_types::units::Timestamp;

use super::LedgerCommandError;

/// Of whom, when, and by what.
#[derive(Debug, Args)]
pub(in crate::app) struct UsageOptions {
    /// Only this account and those below it. Default: all.
    #[arg(long, value_name = "PATH")]
    account: Option<AccountId>,
    /// How to group it. By account, the keys of one account are one row.
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
    Account,
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
                key: by(UsageDimension::Key) || by(UsageDimension::Account),
                model: by(UsageDimension::Model),
            },
            after: None,
            limit: usize::MAX,
        }
    }
}

/// The rows with their sum, columns as wide as they must be.
pub(super) fn table(options: &UsageOptions, usages: &[GroupUsage]) -> String {
    let shows = |dimension| options.by.contains(&dimension);
    let columns = [
        ("day", shows(UsageDimension::Day)),
        ("account", shows(UsageDimension::Account)),
        ("key", shows(UsageDimension::Key)),
        ("model", shows(UsageDimension::Model)),
    ];
    let shown = |cells: [String; 4]| -> Vec<String> {
        cells.into_iter().zip(columns).filter(|(_, (_, is_shown))| *is_shown).map(|(cell, _)| cell).collect()
    };
    let head = shown(columns.map(|(name, _)| name.to_owned()));
    let texts = head.len();
    // The keys of one account are one row where keys are not shown.
    let mut groups: BTreeMap<Vec<String>, UsageSums> = BTreeMap::new();
    let mut total = UsageSums::default();
    for GroupUsage { group, sums } in usages {
        total += *sums;
        let day = group.day.to_string();
        let cells = [
            day[..day.len().min(10)].to_owned(),
            account_above(&group.key).to_owned(),
            group.key.to_string(),
            group.model.to_string(),
        ];
        *groups.entry(shown(cells)).or_default() += *sums;
    }
    let numbers = ["requests", "spent USD", "prompt", "thinking", "solution", "other"].map(str::to_owned);
    let mut rows = vec![[head, numbers.to_vec()].concat()];
    let row =
        |(cells, sums): (Vec<String>, UsageSums)| cells.into_iter().chain(counts(&sums)).collect::<Vec<_>>();
    rows.extend(groups.into_iter().map(row));
    let mut last = vec![String::new(); texts];
    last.iter_mut().take(1).for_each(|cell| "all".clone_into(cell));
    last.extend(counts(&total));
    rows.push(last);
    align_columns(&rows, texts)
}

/// The account that a key belongs to, by the key's path; a dash where it belongs to none.
fn account_above(key: &str) -> &str {
    key.rsplit_once('/').map_or("-", |(account, _)| account)
}

fn counts(sums: &UsageSums) -> [String; 6] {
    [
        sums.spent.requests.0.to_string(),
        sums.spent.money.to_string(),
        sums.prompt.to_string(),
        sums.spent.thinking.to_string(),
        sums.solution.to_string(),
        (sums.overhead + sums.other).to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use stint_ledger::UsageGroup;
    use stint_types::units::Money;

    use super::*;

    #[test]
    fn the_keys_of_an_account_are_one_row() {
        let used = |key: &str, nanos: u64| {
            let mut sums = UsageSums::default();
            sums.spent.money = Money(nanos * 1_000_000_000);
            let (key, model) = (key.into(), "m".into());
            GroupUsage { group: UsageGroup { day: Timestamp(0), key, model }, sums }
        };
        let usages =
            [used("acme/ops/bob", 1), used("acme/research/alice", 2), used("acme/research/carol", 3)];
        let told = |by: Vec<UsageDimension>| {
            let options = UsageOptions { account: None, by, from: None, to: None };
            let text = table(&options, &[&usages[..], &[used("zoe", 4)]].concat());
            let rows = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            rows.map(|row| row.trim_end_matches(" 0").to_owned()).collect::<Vec<_>>()
        };
        let account = told(vec![UsageDimension::Account]);
        assert_eq!(account, ["- 0 4", "acme/ops 0 1", "acme/research 0 5", "all 0 10"]);
        let both = told(vec![UsageDimension::Account, UsageDimension::Key]);
        assert_eq!(both[2], "acme/research acme/research/alice 0 2");
        assert_eq!(both.len(), 5);
    }
}
