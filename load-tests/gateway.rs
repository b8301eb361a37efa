//! How much the gateway adds: requests per second and latencies through the whole of it (HTTP, plan, ledger on
//! disk, request task) over a model that answers at once, beside a bare route on the same server in the same run.
//!
//!     cargo bench --bench gateway
//!
//! Machines differ and are shared; compare the ratio, not the numbers.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use stint::config;
use stint::gateway::{EpisodeManager, Gateway, GatewayParts, Learning};
use stint::http::{self, ApiState, Server};
use stint_backend::Backend;
use stint_backend::fleet::{self, Fleet, Target};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_decide::estimate;
use stint_ledger::Ledger;
use stint_sessions::agent::conversations::ConversationService;
use stint_sessions::agent::stored::ResponseService;
use stint_sessions::idempotency::Idempotency;
use stint_storage::Database;
use stint_types::catalog::{self, Catalog, EnforcementClass, GoesOn, HandOff, Model, Prices, Route, Tariff};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, KeyLookup, Tenant};
use stint_types::units::{Money, Price, RequestId, Timestamp, Tokens};

/// Requests of one measurement.
const REQUESTS: usize = 4000;
/// Callers at once.
const CALLERS: [usize; 3] = [1, 16, 64];

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"What is 12+34*2?"}],"budget":{"thinking_tokens":8}}"#;

type Failed = Box<dyn Error + Send + Sync>;

/// Whether each request has an idempotency key of its own.
#[derive(Clone, Copy)]
enum Keyed {
    No,
    Yes,
}

fn main() -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ledger.db").to_string_lossy().into_owned();
    let settings = config::load(None, &|name| (name == "STINT_LEDGER").then(|| path.clone()))?;
    let tasks = Tasks::default();
    let bare = Router::new().route("/v1/chat/completions", post(async |body: String| body));
    let bare = serve(&settings.http, &tasks, bare)?;
    let whole = serve(&settings.http, &tasks, whole(&settings, &tasks).await?)?;
    say(
        "callers   bare route            gateway               share   p50      p99      each with an idempotency key",
    );
    for callers in CALLERS {
        // The first round warms connections and caches; the second counts.
        run(&bare, callers, Keyed::No).await?;
        let (plain, _) = run(&bare, callers, Keyed::No).await?;
        run(&whole, callers, Keyed::No).await?;
        let (rate, times) = run(&whole, callers, Keyed::No).await?;
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        let (keyed, _) = run(&whole, callers, Keyed::Yes).await?;
        say(&format!(
            "{callers:>7}   {plain:>8.0} requests/s   {rate:>8.0} requests/s   {:>5.2}   {p50:>6.1?}   {p99:>6.1?}   {keyed:>8.0} requests/s",
            rate / plain
        ));
    }
    tasks.stop();
    tasks.drain(Duration::from_secs(5)).await;
    Ok(())
}

/// The gateway's router over a scripted model and a ledger on disk.
async fn whole(settings: &config::Settings, tasks: &Tasks) -> Result<Router, Failed> {
    let metrics = Arc::new(Metrics::new()?);
    let database = Database::open(&settings.storage).await?;
    let journal = database.journal();
    let (answers, remembered) = (database.idempotency(), settings.idempotency.clone());
    let idempotency = Idempotency::open(tasks, answers, remembered, Timestamp::now()).await?;
    let responses = ResponseService::open(tasks, database.responses(), settings.responses.clone());
    let conversations =
        ConversationService::open(tasks, database.conversations(), settings.responses.clone());
    let keys = KeyLookup::open();
    let terms = [AccountTerms::unlimited(Tenant::anonymous().account)];
    let ledger =
        Ledger::open(tasks, journal, Arc::new(()), settings.ledger, &terms, Timestamp::now()).await?;
    let model = model();
    let script: Arc<dyn Backend> =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(4).answers("80")));
    let targets = vec![Target { name: "script".into(), backend: script, tokenizer_id: None }];
    let resilience = fleet::Settings { concurrency: None, ..fleet::Settings::default() };
    let fleet = Fleet::new(model.name.clone(), targets, metrics.clone(), resilience, 7);
    let auto =
        Route { worth: Money(10_000_000), cost_per_second: Money::ZERO, ..Route::with_defaults("auto") };
    let gateway = Gateway::new(GatewayParts {
        settings: settings.gateway.clone(),
        tasks: tasks.clone(),
        metrics: metrics.clone(),
        ledger,
        fleets: BTreeMap::from([(model.name.clone(), fleet)]),
        catalog: Catalog {
            routes: BTreeMap::from([(auto.name.clone(), auto)]),
            models: BTreeMap::from([(model.name.clone(), Arc::new(model))]),
        },
        calibration: estimate::shipped()?,
        learning: Learning::off(),
        episodes: EpisodeManager::open(tasks, database.episodes(), metrics.clone(), settings.agents.clone()),
    });
    let (settings, refresh) = (settings.http.clone(), Box::new(|| ()));
    let service = ApiState {
        settings,
        tokens: None,
        guardrails: stint::guardrail::Guardrails::default(),
        keys,
        gateway,
        idempotency,
        responses,
        conversations,
        metrics,
        tracer: None,
        refresh,
    };
    Ok(http::api(&Arc::new(service)))
}

fn model() -> Model {
    let price = Price { per_million_tokens: Money(1_000_000) };
    Model {
        name: "m".into(),
        tariff: Some(Tariff::plain(Prices { input: price, output: price })),
        context: Tokens(4096),
        context_limited_by: None,
        classes: vec![EnforcementClass::Inline],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        never_thinks: false,
        thinking_ruled_out: None,
        thinking_max: Tokens(1024),
        thinking_usual: None,
        solution_max: Some(Tokens(64)),
        output_max: None,
        output_min: Tokens(1),
        hand_off: HandOff {
            text: "\n</think>\n\n".into(),
            overhead: Tokens(5),
            overhead_without_thought: Tokens(5),
        },
        services: vec![catalog::Service::Chat],
        capabilities: Vec::new(),
        efforts: Vec::new(),
        members: catalog::MemberRules::default(),
        reference: None,
        ability_guess: None,
        specialty: None,
        resumes_tools: false,
        conversation: catalog::ConversationRules::default(),
        goes_on: GoesOn::Never,
        stops_billing: true,
    }
}

fn serve(settings: &http::Settings, tasks: &Tasks, router: Router) -> Result<String, Failed> {
    let bound = http::bind(([127, 0, 0, 1], 0).into())?;
    let url = format!("http://{}/v1/chat/completions", bound.address());
    let server = Server::new(settings.clone(), Arc::new(Metrics::new()?), tasks.clone());
    tasks.spawn(server.serve(bound, router));
    Ok(url)
}

/// Requests per second, and every request's time, sorted.
async fn run(url: &str, callers: usize, keyed: Keyed) -> Result<(f64, Vec<Duration>), Failed> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let (left, begun) = (Arc::new(AtomicUsize::new(REQUESTS)), Instant::now());
    let callers = (0..callers).map(|_| call(client.clone(), url.to_owned(), left.clone(), keyed));
    let times = futures_util::future::try_join_all(callers).await?;
    let took = begun.elapsed().as_secs_f64();
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let rate = times.len() as f64 / took;
    Ok((rate, times))
}

async fn call(
    client: reqwest::Client,
    url: String,
    left: Arc<AtomicUsize>,
    keyed: Keyed,
) -> Result<Vec<Duration>, Failed> {
    let mut times = Vec::new();
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let begun = Instant::now();
        let request = client.post(&url).header("content-type", "application/json").body(BODY);
        let request = match keyed {
            Keyed::No => request,
            Keyed::Yes => request.header("idempotency-key", RequestId::new().to_string()),
        };
        let response = request.send().await?.error_for_status()?;
        response.bytes().await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

#[expect(clippy::print_stdout, reason = "what a benchmark is for")]
fn say(line: &str) {
    println!("{line}");
}
