//! What the ledger takes: the admission check alone, and durable dispatch and settle on disk beside the disk's own
//! `fdatasync` in the same run.
//!
//!     cargo bench --bench ledger
//!
//! Machines differ and are shared; compare the ratios, not the numbers.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stint_ledger::{
    AbandonPolicy, AccountId, Ledger, LedgerState, Observer, RequestScope, ReservationRequest, Settings,
    SettlementDetail,
};
use stint_storage::{Database, Settings as Storage, SqliteSettings, Synchronous};
use stint_types::catalog::WorstCase;
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, LimitSelector, TenantLimit};
use stint_types::units::{Amount, Count, Money, RequestId, Timestamp, Tokens, Window};

/// How long one measurement takes.
const LENGTH: Duration = Duration::from_secs(3);
/// Callers at once.
const CALLERS: [usize; 3] = [1, 64, 256];

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    say(&format!("admission check, four accounts with eight limits: {:.2?}", admission()?));
    say(
        "\nsynchronous  callers   dispatch+settle   entries a commit   commit p50/p99         fdatasync p50/p99",
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        for callers in CALLERS {
            runtime.block_on(durable(synchronous, callers))?;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a measurement's own words")]
fn say(text: &str) {
    println!("{text}");
}

/// An organisation, a team, a key and an episode, with limits of several kinds.
fn terms() -> Vec<AccountTerms> {
    let money = |window| TenantLimit::new(window, Amount::Money(Money(u64::MAX / 2)));
    let limits =
        |name: &str, limits| AccountTerms { limits, ..AccountTerms::unlimited(AccountId::new(name)) };
    let calls = TenantLimit::new(Window::Minute, Amount::Requests(Count(u64::MAX / 2)));
    let at_once = TenantLimit::new(Window::Total, Amount::Concurrency(Count(u64::MAX / 2)));
    let thinking = TenantLimit::new(Window::Day, Amount::Thinking(Tokens(u64::MAX / 2)));
    vec![
        limits("org", vec![money(Window::Month), at_once]),
        limits("org/team", vec![money(Window::Day), calls.clone().with_selector(LimitSelector::EachUser)]),
        limits("org/team/key", vec![money(Window::Total), thinking.clone(), calls]),
        limits("org/team/key/episode", vec![money(Window::Total)]),
    ]
}

fn claim(now: Timestamp) -> ReservationRequest {
    ReservationRequest {
        account: AccountId::new("org/team/key/episode"),
        id: RequestId::new(),
        about: RequestScope { model: Some("m".into()), user: Some("u".into()), ..RequestScope::default() },
        worst: WorstCase { money: Money(10), thinking: Tokens(10) },
        step: None,
        prices: None,
        if_abandoned: AbandonPolicy::PostWhole,
        rate: None,
        now,
        expires: now + Duration::from_secs(60),
    }
}

/// What one reservation takes in the account machine, five hundred being open.
fn admission() -> Result<Duration, Failed> {
    const ROUNDS: u32 = 400;
    const AT_ONCE: u32 = 500;
    let mut accounts = LedgerState::default();
    accounts.declare(&terms());
    let (now, mut took) = (Timestamp::now(), Duration::ZERO);
    for _ in 0..ROUNDS {
        let claims: Vec<ReservationRequest> = (0..AT_ONCE).map(|_| claim(now)).collect();
        let ids: Vec<RequestId> = claims.iter().map(|claim| claim.id).collect();
        let began = Instant::now();
        for claim in claims {
            accounts.reserve(claim)?;
        }
        took += began.elapsed();
        for id in ids {
            accounts.void(id, now);
        }
    }
    Ok(took / (ROUNDS * AT_ONCE))
}

/// How long each commit took.
#[derive(Default)]
struct Commits(Mutex<Vec<Duration>>);

impl Observer for Commits {
    fn committed(&self, _: usize, took: Duration) {
        if let Ok(mut commits) = self.0.lock() {
            commits.push(took);
        }
    }
}

async fn durable(synchronous: Synchronous, callers: usize) -> Result<(), Failed> {
    let folder = tempfile::tempdir_in(".")?;
    let syncs = syncs(&folder.path().join("probe"))?;
    let storage = Storage::Sqlite(SqliteSettings { path: folder.path().join("ledger.db"), synchronous });
    let (tasks, requests, commits) = (Tasks::default(), Tasks::default(), Arc::new(Commits::default()));
    let (journal, now) = (Database::open(&storage).await?.journal(), Timestamp::now());
    let ledger = Ledger::open(&tasks, journal, commits.clone(), Settings::default(), &terms(), now).await?;
    let began = Instant::now();
    for _ in 0..callers {
        let ledger = ledger.clone();
        requests.spawn(async move {
            while began.elapsed() < LENGTH {
                if let Err(error) = once(&ledger).await {
                    say(&error.to_string());
                    return;
                }
            }
        });
    }
    requests.drain(LENGTH * 10).await;
    let (took, stats) = (began.elapsed(), ledger.stats());
    let settled = ledger.totals().iter().map(|totals| totals.settled).max().unwrap_or(0);
    let commits = commits.0.lock().map_or_else(|_| Vec::new(), |commits| commits.clone());
    say(&format!(
        "{:<11}  {callers:>7}   {:>13}/s   {:>16}   {}   {}",
        format!("{synchronous:?}"),
        u128::from(settled) * 1000 / took.as_millis().max(1),
        stats.entries / stats.commits.max(1),
        spread(commits),
        spread(syncs),
    ));
    tasks.stop();
    Ok(())
}

async fn once(ledger: &Ledger) -> Result<(), Failed> {
    let mut reservation = ledger.reserve(claim(Timestamp::now()))?;
    reservation.dispatch().await?;
    let detail = SettlementDetail { outcome: "stop".into(), ..SettlementDetail::default() };
    reservation.settle(Money(3), Tokens(1), detail).wait_durable(LENGTH).await;
    Ok(())
}

/// How long this disk takes to have a page.
fn syncs(path: &Path) -> Result<Vec<Duration>, Failed> {
    let (file, page) = (File::create(path)?, [7; 4096]);
    let mut times = Vec::new();
    for at in 0..200 {
        let began = Instant::now();
        file.write_all_at(&page, at * 4096)?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    format!("{:>8.1?} / {:>8.1?}", at(50), at(99))
}
