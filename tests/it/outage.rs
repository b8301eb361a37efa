//! Several gateways on one database under load, while the database stops and while gateways are killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::cluster::Cluster;
use crate::harness::patience::{until, within};
use crate::harness::{Folder, Manner, Process, Upstream};

/// How long a lease lasts.
const LEASE: Duration = Duration::from_secs(2);

/// Each answer's status and what it says that it cost, by its `user`.
type Told = Arc<Mutex<BTreeMap<String, (u16, Option<String>)>>>;

fn folder(upstream: &Upstream) -> Folder {
    let hash = stint_types::tenant::hash_key("sk-test");
    Folder::new(&format!(
        "[engine]\nembedded = false\n[ledger]\nurl_env = \"DATABASE_URL\"\nlease = \"2s\"\n[[backend]]\nbase_url = '{}'\n\
         [[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '4'\nsolution_max = 64\n\
         [[key]]\nname = 'test'\nhash = '{hash}'\nlimits = [{{ money = '5', per = 'month' }}]\n",
        upstream.base
    ))
}

fn serve(folder: &Folder, url: &str) -> Process {
    let mut command = folder.stint("serve");
    command.env_remove("STINT_LEDGER").env("DATABASE_URL", url);
    folder.serve_by(command)
}

fn body(user: &str, tokens: u64) -> Value {
    json!({
        "model": "m", "user": user,
        "messages": [{ "role": "user", "content": Manner::Tokens(tokens).words() }],
        "budget": { "solution_tokens": tokens.max(64) },
    })
}

/// Asks one gateway; nothing, where it does not answer at all.
async fn ask(client: &reqwest::Client, base: &str, user: &str, tokens: u64) -> Option<(u16, Value)> {
    let request = client.post(format!("{base}/v1/chat/completions")).bearer_auth("sk-test");
    let request = request.header("content-type", "application/json").body(body(user, tokens).to_string());
    let answer = request.timeout(Duration::from_secs(20)).send().await.ok()?;
    let status = answer.status().as_u16();
    Some((status, serde_json::from_str(&answer.text().await.ok()?).ok()?))
}

fn cost(answer: &Value) -> Option<String> {
    answer["budget"]["cost_usd"].as_str().map(str::to_owned)
}

/// Asks until it is over; every request has a name of its own.
async fn load(process: &Process, name: String, told: Told, is_over: &AtomicBool) {
    for number in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let user = format!("{name}-{number}");
        let answer = ask(&process.client, &process.base, &user, 3).await;
        let told_now = answer.map_or((0, None), |(status, answer)| (status, cost(&answer)));
        told.lock().unwrap().insert(user, told_now);
        sleep(Duration::from_millis(20)).await;
    }
}

async fn status(process: &Process, path: &str) -> u16 {
    process.get("sk-test", path).await.status
}

/// How many reservations are open.
const OPEN: &str = "SELECT count(*) FROM reservations v WHERE NOT EXISTS \
                    (SELECT 1 FROM resolutions r WHERE r.reservation = v.id)";

/// What the database says of each request that was charged: how often, and how much.
fn charged(cluster: &Cluster, url: &str) -> BTreeMap<String, (u64, u64)> {
    assert_eq!(cluster.ask(url, OPEN), "0", "nothing stays reserved");
    let over = "SELECT count(*) FROM purses p WHERE granted <> (SELECT sum(money) FROM resolutions)";
    assert_eq!(cluster.ask(url, over), "0", "nothing stays handed out");
    let rows = cluster
        .ask(url, "SELECT end_user, count(*), sum(money) FROM resolutions WHERE how <> 'voided' GROUP BY 1");
    let row = |line: &str| {
        let mut columns = line.split('|');
        let mut next = || columns.next().unwrap().to_owned();
        (next(), (next().parse().unwrap(), next().parse().unwrap()))
    };
    rows.lines().map(row).collect()
}

/// Every cost that an answer told is in the books, and whatever went upstream is there, once.
fn agree(upstream: &Upstream, told: &Told, charged: &BTreeMap<String, (u64, u64)>) {
    for (user, (status, cost)) in &*told.lock().unwrap() {
        if *status == 200 {
            let booked = charged.get(user).unwrap_or_else(|| panic!("{user} is not in the books"));
            let told = cost.as_deref().map(|cost| cost.parse::<stint_types::units::Money>().unwrap());
            assert!(
                booked.0 == 1 && told.is_none_or(|told| told.0 == booked.1),
                "{user} was told {cost:?}: {booked:?}"
            );
        }
    }
    for (user, times) in upstream.attempts() {
        assert_eq!((charged.get(&user).map(|one| one.0), times), (Some(1), 1), "{user} was sent upstream");
    }
}

/// Both leave in good order, and all that they used is written down.
fn leave(all: Vec<Process>) {
    for mut process in all {
        process.signal("TERM");
        assert!(process.ended().success(), "a clean end");
    }
}

/// CR-09, OV-10, OB-04: the database stops in the middle of everything. What holds a lease finishes; then keys with a budget are
/// refused at once, until the database is back and everything goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_down_nothing_is_spent_and_afterwards_everything_goes_on() {
    let (cluster, upstream) = (Cluster::start(false), Upstream::start());
    let (url, folder) = (cluster.database(), folder(&upstream));
    let all = vec![serve(&folder, &url), serve(&folder, &url)];
    let (told, is_over) = (Told::default(), AtomicBool::new(false));
    let callers = (0..6).map(|at| load(&all[at % 2], format!("c{at}"), told.clone(), &is_over));
    let served = || told.lock().unwrap().values().filter(|(status, _)| *status == 200).count();
    let outage = async {
        sleep(Duration::from_millis(1_500)).await;
        until("many are served", async || served() > 25).await;
        // One that runs when the database goes.
        let running = ask(&all[0].client, &all[0].base, "running", 600);
        let stop = async {
            until("it is written", async || upstream.written().contains_key("running")).await;
            cluster.crash();
        };
        let (running, ()) = tokio::join!(running, stop);
        let (code, answer) = running.expect("an answer");
        assert_eq!(code, 200, "what runs is finished: {answer}");
        told.lock().unwrap().insert("running".into(), (code, cost(&answer)));
        sleep(LEASE + Duration::from_secs(1)).await;
        for process in &all {
            for number in 0..3 {
                let user = format!("refused-{number}");
                let refused =
                    within(Duration::from_secs(1), ask(&process.client, &process.base, &user, 3)).await;
                let (code, answer) = refused.expect("at once").expect("an answer");
                assert_eq!(code, 503, "{answer}");
            }
            assert_eq!((status(process, "/readyz").await, status(process, "/healthz").await), (503, 200));
        }
        cluster.recover();
        let began = Instant::now();
        for process in &all {
            until("it goes on", async || status(process, "/readyz").await == 200).await;
            let again = ask(&process.client, &process.base, &format!("again-{}", process.base), 3).await;
            assert_eq!(again.expect("an answer").0, 200);
        }
        eprintln!("served again {:?} after the database is", began.elapsed());
        sleep(Duration::from_secs(1)).await;
        until("as many as before", async || served() > 50).await;
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(join_all(callers), outage);
    leave(all);
    let charged = charged(&cluster, &url);
    agree(&upstream, &told, &charged);
    let asked = told.lock().unwrap().len();
    eprintln!("{asked} asked, {} served, {} charged", served(), charged.len());
}

/// A gateway that is stopped beyond its lease while it serves: another one posts what it had sent. When it goes on, its callers
/// get their answers, and no cost: what it counted is not what the books have.
#[tokio::test(flavor = "multi_thread")]
async fn who_lost_its_lease_tells_no_cost_that_the_books_do_not_have() {
    let (cluster, upstream) = (Cluster::start(false), Upstream::start());
    let (url, folder) = (cluster.database(), folder(&upstream));
    let (one, two) = (serve(&folder, &url), serve(&folder, &url));
    let question = |user: &str, stream: bool| {
        json!({
            "model": "m", "user": user, "stream": stream,
            "messages": [{ "role": "user", "content": Manner::Slowly(60).words() }],
        })
    };
    let (whole, streamed) = (question("whole", false), question("streamed", true));
    let stopped = async {
        let are_written =
            async || ["whole", "streamed"].iter().all(|user| upstream.written().contains_key(*user));
        until("both are written", are_written).await;
        one.signal("STOP");
        let count = "SELECT count(*) FROM resolutions";
        until("the other has posted them", async || cluster.ask(&url, count) == "2").await;
        one.signal("CONT");
    };
    let (whole, streamed, ()) =
        tokio::join!(one.ask("sk-test", &whole), one.ask("sk-test", &streamed), stopped);
    let answer = whole.good();
    assert_eq!(answer["usage"]["completion_tokens"], 60, "{answer}");
    let chunks = streamed.chunks();
    let last = chunks.all.iter().find(|chunk| chunk.get("budget").is_some()).expect("a budget at the end");
    for budget in [&answer["budget"], &last["budget"]] {
        assert_eq!(budget.get("cost_usd"), Some(&Value::Null), "{budget}");
        assert!(budget["why"].as_str().unwrap().contains("its cost is not known"), "{budget}");
        let page = format!("/v1/requests/{}", budget["id"].as_str().unwrap());
        // Its record is written a little later.
        until("its record is there", async || status(&two, &page).await == 200).await;
        let story = two.get("sk-test", &page).await.good();
        assert_eq!(story["outcome"].get("cost_usd"), Some(&Value::Null), "{story}");
    }
    assert_eq!(whole.headers.get("x-cost-usd"), None);
    let logged = one.logged_times("outcome=\"answered\"", 2).await;
    assert!(logged.len() == 2 && logged.iter().all(|line| !line.contains("cost_usd")), "{logged:?}");
    until("it goes on", async || status(&one, "/readyz").await == 200).await;
    let (_, next) = ask(&one.client, &one.base, "next", 3).await.expect("an answer");
    let told = Told::default();
    told.lock().unwrap().insert("next".into(), (200, cost(&next)));
    assert!(cost(&next).is_some(), "{next}");
    leave(vec![one, two]);
    agree(&upstream, &told, &charged(&cluster, &url));
}

/// CR-16: three gateways, each killed every few seconds; callers go on to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn while_gateways_are_killed_in_turn_callers_are_served_and_the_books_are_right() {
    let (cluster, upstream) = (Cluster::start(false), Upstream::start());
    let (url, folder) = (cluster.database(), folder(&upstream));
    let all: Vec<Mutex<Option<Process>>> = (0..3).map(|_| Mutex::new(Some(serve(&folder, &url)))).collect();
    let bases = || -> Vec<Option<String>> {
        let base = |one: &Mutex<Option<Process>>| one.lock().unwrap().as_ref().map(|one| one.base.clone());
        all.iter().map(base).collect()
    };
    let (told, is_over, served) = (Told::default(), AtomicBool::new(false), AtomicU64::new(0));
    let (client, asked) = (reqwest::Client::builder().no_proxy().build().unwrap(), AtomicU64::new(0));
    let caller = async |name: usize| {
        for number in 0.. {
            if is_over.load(Ordering::SeqCst) {
                return;
            }
            asked.fetch_add(1, Ordering::SeqCst);
            for attempt in 0..3 {
                let Some(base) = &bases()[(name + number + attempt) % 3] else { continue };
                let user = format!("c{name}-{number}-{attempt}");
                let answer = ask(&client, base, &user, 3).await;
                let told_now = answer.map_or((0, None), |(status, answer)| (status, cost(&answer)));
                let is_good = told_now.0 == 200;
                told.lock().unwrap().insert(user, told_now);
                if is_good {
                    served.fetch_add(1, Ordering::SeqCst);
                    break;
                }
            }
            sleep(Duration::from_millis(30)).await;
        }
    };
    let storm = async {
        let began = Instant::now();
        for round in 0.. {
            if began.elapsed() > Duration::from_secs(18) {
                break;
            }
            sleep(Duration::from_millis(1_200)).await;
            let mut killed = all[round % 3].lock().unwrap().take().unwrap();
            killed.signal("KILL");
            killed.ended();
            let again = tokio::task::block_in_place(|| serve(&folder, &url));
            *all[round % 3].lock().unwrap() = Some(again);
        }
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(join_all((0..6).map(caller)), storm);
    leave(all.into_iter().filter_map(|one| one.into_inner().unwrap()).collect());
    // The replica that was killed last is reclaimed by the next one, a lease after that one started.
    let last = serve(&folder, &url);
    sleep(LEASE * 2).await;
    until("nothing stays reserved", async || cluster.ask(&url, OPEN) == "0").await;
    leave(vec![last]);
    let charged = charged(&cluster, &url);
    agree(&upstream, &told, &charged);
    let (asked, served) = (asked.into_inner(), served.into_inner());
    eprintln!(
        "{asked} asked, {served} served, {} attempts, {} charged",
        told.lock().unwrap().len(),
        charged.len()
    );
    assert!(served * 100 >= asked * 80, "{served} of {asked} were served");
}
