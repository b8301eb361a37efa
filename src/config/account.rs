//! `[[account]]`, and the limits of accounts and keys.

use std::collections::HashSet;

use stint_types::catalog::Catalog;
use stint_types::tenant::{AccountTerms, LimitSelector, Percent, TenantLimit};
use stint_types::units::{AccountId, Amount, Count, Money, Tokens, Unit, Window, Zone, nearest_within};

use super::misspelling;
use super::reader::{Section, suggest};

const WINDOWS: [(&str, Window); 6] = [
    ("minute", Window::Minute),
    ("hour", Window::Hour),
    ("day", Window::Day),
    ("week", Window::Week),
    ("month", Window::Month),
    ("total", Window::Total),
];

/// The terms of all accounts, those of keys included.
#[derive(Debug)]
pub(super) struct DeclaredAccounts<'c> {
    terms: Vec<AccountTerms>,
    /// There may be thousands.
    names: HashSet<AccountId>,
    /// How many of the terms, from the first on, are those of an `[[account]]`.
    accounts: usize,
    /// What limits on models may name.
    catalog: &'c Catalog,
}

impl<'c> DeclaredAccounts<'c> {
    /// Every `[[account]]`.
    pub(super) fn read(root: &Section<'_>, catalog: &'c Catalog) -> DeclaredAccounts<'c> {
        let mut accounts =
            DeclaredAccounts { terms: Vec::new(), names: HashSet::new(), accounts: 0, catalog };
        for section in root.sections("account") {
            let name =
                section.require::<String>("name", "write its path, like \"acme\" or \"acme/research\"");
            let terms = terms(&section, catalog);
            if let Some(account) = name.and_then(|name| path(&section, "name", &name)) {
                accounts.add(&section, AccountTerms { account, ..terms });
            }
        }
        accounts.accounts = accounts.terms.len();
        accounts
    }

    /// The account of a `[[key]]`, below the one that it names.
    pub(super) fn add_key(&mut self, section: &Section<'_>) -> Option<AccountId> {
        let name = section.require::<String>("name", "name its owner; spending is counted under that name");
        let parent = section.get::<String>("account");
        let terms = terms(section, self.catalog);
        let parent = match parent {
            Some(parent) => Some(path(section, "account", &parent)?),
            None => None,
        };
        if let Some(parent) = &parent {
            self.warn_misspelt(section, parent);
        }
        let account = path(section, "name", &name?)?;
        let account = match parent {
            Some(parent) => path(section, "name", parent.child(account.as_str()).as_str())?,
            None => account,
        };
        self.add(section, AccountTerms { account: account.clone(), ..terms });
        Some(account)
    }

    /// Nobody need declare an account. One that is nearly declared would be without the limits that its writer has in mind.
    fn warn_misspelt(&self, section: &Section<'_>, account: &AccountId) {
        if self.names.contains(account) {
            return;
        }
        let account = account.as_str();
        let declared = self.terms.iter().take(self.accounts).map(|terms| terms.account.as_str());
        let near = declared.filter(|other| misspelling::is_slip(account, other));
        if let Some(near) = nearest_within(account, near, account.len()) {
            let what =
                format!("there is no [[account]] \"{account}\": no limits hold for it but those above it");
            section.warn("account", what, format!("did you mean \"{near}\"?"));
        }
    }

    fn add(&mut self, section: &Section<'_>, terms: AccountTerms) {
        if !self.names.insert(terms.account.clone()) {
            let what = format!("\"{}\" stands here twice", terms.account);
            section.reject("name", what, "give each account and each key a path of its own");
        }
        self.terms.push(terms);
    }

    pub(super) fn into_terms(self) -> Vec<AccountTerms> {
        self.terms
    }
}

pub(super) fn path(section: &Section<'_>, key: &str, path: &str) -> Option<AccountId> {
    let parsed = path.parse::<AccountId>();
    if let Err(error) = &parsed {
        let remedy = "write it like \"alice\", or \"acme/research\" for a tree";
        section.reject(key, error.to_string(), remedy);
    }
    parsed.ok()
}

/// What an account or a key may spend; its name is filled in by the caller.
fn terms(section: &Section<'_>, catalog: &Catalog) -> AccountTerms {
    let zone = section.get::<String>("time_zone").map(|name| name.parse::<Zone>());
    if let Some(Err(error)) = &zone {
        section.reject("time_zone", error.to_string(), "days and months begin by its calendar");
    }
    AccountTerms {
        account: AccountId::new(""),
        limits: limits(section, catalog),
        zone: zone.and_then(Result::ok).unwrap_or_default(),
        warn_at: warn_at(section),
    }
}

/// When a limit is announced.
pub(super) fn warn_at(section: &Section<'_>) -> Percent {
    let warn_at = section.get::<u64>("warn_at").map(Percent::try_from);
    if let Some(Err(error)) = &warn_at {
        section.reject("warn_at", error.to_string(), "80 without it");
    }
    warn_at.and_then(Result::ok).unwrap_or_default()
}

pub(super) fn limits(section: &Section<'_>, catalog: &Catalog) -> Vec<TenantLimit> {
    let mut limits: Vec<TenantLimit> = Vec::new();
    for one in section.sections("limits") {
        let Some(limit) = limit(&one, catalog) else { continue };
        let same = |other: &TenantLimit| {
            (other.max.unit(), other.window, &other.scope) == (limit.max.unit(), limit.window, &limit.scope)
        };
        if limits.iter().any(same) {
            let what = format!("a second limit of {} per {}", limit.max.unit().as_str(), limit.window);
            one.reject_section(what, "keep one of them");
        }
        limits.push(limit);
    }
    limits
}

fn limit(one: &Section<'_>, catalog: &Catalog) -> Option<TenantLimit> {
    let window = one.word("per", &WINDOWS);
    let scope = scope(one, catalog);
    let amounts = [
        one.get::<Money>("money").map(Amount::Money),
        one.get::<Tokens>("thinking").map(Amount::Thinking),
        one.get::<u64>("requests").map(|count| Amount::Requests(Count(count))),
        one.get::<u64>("tool_calls").map(|count| Amount::ToolCalls(Count(count))),
        one.get::<u64>("concurrency").map(|count| Amount::Concurrency(Count(count))),
    ];
    let named = Unit::ALL.into_iter().filter(|unit| one.has(unit.as_str())).count();
    if named != 1 {
        let remedy = "write one of money = \"20\", thinking = 100000, requests = 60, tool_calls = 500 or \
                      concurrency = 8 into each";
        one.reject_section("not one limit", remedy);
    }
    let max = amounts.into_iter().flatten().next();
    if max == Some(Amount::Concurrency(Count(0))) {
        let remedy = "write at least 1, or take the limit out; `requests = 0` lets nothing through";
        one.reject("concurrency", "0 would refuse every request", remedy);
    }
    match (one.has("per"), one.has(Unit::Concurrency.as_str())) {
        (true, true) => {
            let remedy = "leave it out: requests at once are not counted over time";
            one.reject("per", "without meaning for concurrency", remedy);
        }
        (false, false) => {
            one.reject("per", "missing", "write \"day\", \"month\", \"total\" or another window");
        }
        (false, true) => return max.map(|max| TenantLimit::new(Window::Total, max).with_selector(scope)),
        (true, false) => {}
    }
    Some(TenantLimit::new(window?, max?).with_selector(scope))
}

fn scope(one: &Section<'_>, catalog: &Catalog) -> LimitSelector {
    let model = one.get::<String>("model");
    if let Some(name) = &model {
        check_model(one, name, catalog);
    }
    let model = model.map(|name| LimitSelector::Model(name.into()));
    let tag = one.get::<String>("tag").map(|name| LimitSelector::Tag(name.into()));
    let each = one.word("each", &[("user", LimitSelector::EachUser)]);
    if [model.is_some(), tag.is_some(), each.is_some()].into_iter().filter(|named| *named).count() > 1 {
        let remedy = "write a limit for each: one on the model, one on the tag, one on each user";
        one.reject_section("a limit on more than one of model, tag and each", remedy);
    }
    model.or(tag).or(each).unwrap_or_default()
}

/// A limit on a model that is not there would limit nothing.
fn check_model(one: &Section<'_>, name: &str, catalog: &Catalog) {
    if catalog.models.contains_key(name) {
        return;
    }
    let all: Vec<&str> = catalog.models.keys().map(AsRef::as_ref).collect();
    let remedy = if catalog.routes.contains_key(name) {
        "it is a route: limit the models that it leads to".to_owned()
    } else {
        suggest(name, all.iter().copied(), || format!("these are there: {}", all.join(", ")))
    };
    one.reject("model", format!("there is no model \"{name}\""), remedy);
}
