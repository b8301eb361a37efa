//! A whole gateway in this process: real HTTP, real ledger, scripted models.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use serde_json::Value;
use stint::config;
use stint::gateway::{self, EpisodeManager, Gateway, GatewayParts, LearnSettings, Learning};
use stint::guardrail::Guardrails;
use stint::http::{self, ApiState, Server};
use stint_backend::Backend;
use stint_backend::fleet::{self, Fleet, Target};
use stint_backend::scripted::ScriptedBackend;
use stint_ledger::{AccountId, AccountTotals, Journal, Ledger, MemoryJournal, QuotaCoordinator};
use stint_sessions::agent::conversations::{ConversationService, ConversationStore, MemoryConversations};
use stint_sessions::agent::stored::{self, MemoryResponses, ResponseService, ResponseStore};
use stint_sessions::agent::{self, EpisodeStore, MemoryEpisodes};
use stint_sessions::history::HistoryStore;
use stint_sessions::idempotency::{self, Idempotency, MemoryIdempotencyStore};
use stint_storage::Database;
use stint_types::catalog::{
    self, AbilityLevel, Calibration, Capability, Catalog, ClassLevels, EffortLevel, EnforcementClass, GoesOn,
    HandOff, Model, ModelAbility, Prices, Route, Tariff,
};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, KeyLookup, Tenant, TenantLimit, hash_key};
use stint_types::units::{Amount, Chance, Money, Price, Timestamp, Tokens, Window};

use super::Answer;
use super::patience::{PATIENCE, STOP_MAX, until_sync, within};

/// A model that costs a nano-dollar a token read and four a token written.
pub(crate) fn model(name: &str, class: EnforcementClass) -> Model {
    let price = |nanos: u64| Price { per_million_tokens: Money(nanos * 1_000_000) };
    let level = |word: &str, usual| EffortLevel { word: word.into(), usual: Tokens(usual) };
    let efforts = match class {
        EnforcementClass::Effort => vec![level("minimal", 10), level("low", 50), level("high", 500)],
        _ => Vec::new(),
    };
    Model {
        name: name.into(),
        tariff: Some(Tariff::plain(Prices { input: price(1), output: price(4) })),
        context: Tokens(4096),
        context_limited_by: None,
        classes: vec![class],
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
        services: vec![catalog::Service::Chat, catalog::Service::Completions, catalog::Service::Embeddings],
        capabilities: match class {
            EnforcementClass::Effort => vec![Capability::Tools, Capability::Schema],
            _ => Vec::new(),
        },
        efforts,
        members: catalog::MemberRules::default(),
        resumes_tools: false,
        conversation: catalog::ConversationRules::default(),
        goes_on: GoesOn::Never,
        stops_billing: class != EnforcementClass::Effort,
        reference: None,
        ability_guess: None,
        specialty: None,
    }
}

/// Someone who may call, and what that someone may spend.
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    pub(crate) terms: AccountTerms,
}

/// A tenant whose key is `sk-` and its name, with so many nano-dollars in all.
pub(crate) fn tenant(name: &str, nanos: u64) -> Caller {
    let limits = vec![TenantLimit::new(Window::Total, Amount::Money(Money(nanos)))];
    let account = AccountId::new(name);
    let key = hash_key(&format!("sk-{name}"));
    let terms = AccountTerms { limits, ..AccountTerms::unlimited(account.clone()) };
    Caller { tenant: Tenant::new(account, key), terms }
}

impl Caller {
    /// The same with so many nano-dollars a day beside.
    pub(crate) fn per_day(mut self, nanos: u64) -> Caller {
        self.terms.limits.push(TenantLimit::new(Window::Day, Amount::Money(Money(nanos))));
        self
    }
}

/// A model and its targets, which are called `0`, `1` and so on.
pub(crate) struct Served {
    pub(crate) model: Model,
    pub(crate) targets: Vec<Arc<dyn Backend>>,
    pub(crate) resilience: fleet::Settings,
    /// Who counts the prompts of each; the same one where nothing is said.
    pub(crate) readers: Vec<&'static str>,
}

impl Served {
    /// With the settings that hold where nothing is said.
    pub(crate) fn by(model: Model, targets: Vec<Arc<dyn Backend>>) -> Served {
        Served { model, targets, resilience: fleet::Settings::default(), readers: Vec::new() }
    }

    fn fleet(self, metrics: &Arc<Metrics>) -> (Arc<str>, Arc<Fleet>) {
        let target = |(place, backend): (usize, Arc<dyn Backend>)| {
            let reader = self.readers.get(place).copied().unwrap_or("one");
            Target { name: place.to_string().into(), backend, tokenizer_id: Some(reader.into()) }
        };
        let targets = self.targets.into_iter().enumerate().map(target).collect();
        let name = self.model.name;
        let fleet = Fleet::new(name.clone(), targets, metrics.clone(), self.resilience, 7);
        fleet.zero_metrics();
        (name, fleet)
    }
}

/// Where stories are kept, and how is learned from them.
type Learns = (Arc<dyn HistoryStore>, LearnSettings);

/// Where the accounts, the runs of agents and the responses are.
pub(crate) struct Stored {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) coordinator: Option<Arc<dyn QuotaCoordinator>>,
    pub(crate) episodes: Arc<dyn EpisodeStore>,
    /// How runs are held.
    pub(crate) agents: agent::Settings,
    pub(crate) responses: Arc<dyn ResponseStore>,
    pub(crate) conversations: Arc<dyn ConversationStore>,
    /// How responses are kept.
    pub(crate) kept: stored::Settings,
    /// How the ledger works.
    pub(crate) pace: stint_ledger::Settings,
    /// How long money is waited for that others hold.
    pub(crate) wait_max: Duration,
}

impl Stored {
    /// In that journal, and nothing else that lasts.
    pub(crate) fn alone(journal: Arc<dyn Journal>) -> Stored {
        let (episodes, responses) =
            (Arc::new(MemoryEpisodes::default()), Arc::new(MemoryResponses::default()));
        let conversations = Arc::new(MemoryConversations::default());
        let (agents, kept) = (agent::Settings::default(), stored::Settings::default());
        let (pace, wait_max) = (stint_ledger::Settings::default(), Duration::from_secs(30));
        Stored {
            journal,
            coordinator: None,
            episodes,
            agents,
            responses,
            conversations,
            kept,
            pace,
            wait_max,
        }
    }

    /// All in one database.
    pub(crate) fn of(database: &Database) -> Stored {
        let (coordinator, episodes, responses) =
            (database.coordinator(), database.episodes(), database.responses());
        let conversations = database.conversations();
        Stored { coordinator, episodes, responses, conversations, ..Stored::alone(database.journal()) }
    }

    async fn ledger(&self, tasks: &Tasks, observer: Arc<Quiet>, terms: &[AccountTerms]) -> Ledger {
        let settings = self.pace;
        match &self.coordinator {
            Some(coordinator) => Ledger::share(tasks, coordinator.clone(), observer, settings, terms).await,
            None => {
                let journal = self.journal.clone();
                Ledger::open(tasks, journal, observer, settings, terms, Timestamp::now()).await
            }
        }
        .unwrap()
    }
}

/// The gateway and what stands around it.
pub(crate) struct World {
    pub(crate) base: String,
    pub(crate) ledger: Ledger,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) answers: Arc<MemoryIdempotencyStore>,
    pub(crate) client: reqwest::Client,
    pub(crate) gateway: Gateway,
    /// What the server serves, for callers of its futures.
    pub(crate) api: Router,
    tasks: Tasks,
}

/// What is known of models that can do little without a thought, even where what is asked is easy: most tests are about the
/// thought, and ask something short. One that hardly thinks, or is dear, can do more
/// without.
fn needing_thoughts(served: &[Served]) -> Calibration {
    let level = |share| ClassLevels::same(AbilityLevel::from_share(share, 0.2));
    let ability = |model: &Model| {
        let output = model.tariff.as_ref().map_or(0.0, |tariff| tariff.rates.list.output.dollars_per_token());
        let can_without = model.thinking_max <= Tokens(16) || output > 5e-8;
        ModelAbility { thinking: Some(level(0.35)), plain: level(if can_without { 0.15 } else { 0.02 }) }
    };
    let abilities = served.iter().map(|served| (served.model.name.clone(), ability(&served.model))).collect();
    Calibration { abilities, ..stint_decide::estimate::shipped().unwrap() }
}

impl World {
    /// Serves these models to these tenants; to everybody where there are none.
    pub(crate) async fn new(models: Vec<(Model, Arc<ScriptedBackend>)>, callers: Vec<Caller>) -> World {
        let models = models.into_iter().map(|(model, script)| (model, script as Arc<dyn Backend>)).collect();
        World::with(models, callers, |_| ()).await
    }

    /// The same with any backends, and with settings of the wire as `adjust` leaves them.
    pub(crate) async fn with(
        models: Vec<(Model, Arc<dyn Backend>)>,
        callers: Vec<Caller>,
        adjust: impl FnOnce(&mut http::Settings),
    ) -> World {
        World::on(Arc::new(MemoryJournal::default()), models, callers, adjust).await
    }

    /// The same with any journal.
    pub(crate) async fn on(
        journal: Arc<dyn Journal>,
        models: Vec<(Model, Arc<dyn Backend>)>,
        callers: Vec<Caller>,
        adjust: impl FnOnce(&mut http::Settings),
    ) -> World {
        World::remembering(journal, models, callers, idempotency::Settings::default(), adjust).await
    }

    /// The same with settings of what is remembered.
    pub(crate) async fn remembering(
        journal: Arc<dyn Journal>,
        models: Vec<(Model, Arc<dyn Backend>)>,
        callers: Vec<Caller>,
        remembered: idempotency::Settings,
        adjust: impl FnOnce(&mut http::Settings),
    ) -> World {
        let served = models.into_iter().map(|(model, backend)| Served::by(model, vec![backend])).collect();
        let stored = Stored::alone(journal);
        World::of(stored, served, callers, remembered, (vec![auto()], None), adjust).await
    }

    /// Models with their targets, and nothing else out of the ordinary.
    pub(crate) async fn fleets(served: Vec<Served>, callers: Vec<Caller>) -> World {
        let stored = Stored::alone(Arc::new(MemoryJournal::default()));
        World::of(stored, served, callers, idempotency::Settings::default(), (vec![auto()], None), |_| ())
            .await
    }

    /// Models that are learned about, with stories kept there, and a route among them.
    pub(crate) async fn learning<B: Backend + 'static>(
        route: Route,
        models: Vec<(Model, Arc<B>)>,
        callers: Vec<Caller>,
        stories: Arc<dyn HistoryStore>,
        settings: LearnSettings,
    ) -> World {
        let served =
            models.into_iter().map(|(model, backend)| Served::by(model, vec![backend as _])).collect();
        let remembered = idempotency::Settings::default();
        let stored = Stored::alone(Arc::new(MemoryJournal::default()));
        let routes = (vec![route], Some((stories, settings)));
        World::of(stored, served, callers, remembered, routes, |_| ()).await
    }

    /// Models, with responses kept there.
    pub(crate) async fn keeping(
        models: Vec<(Model, Arc<ScriptedBackend>)>,
        callers: Vec<Caller>,
        store: Arc<dyn ResponseStore>,
        kept: stored::Settings,
    ) -> World {
        let served = models.into_iter().map(|(model, script)| Served::by(model, vec![script])).collect();
        let stored = Stored { responses: store, kept, ..Stored::alone(Arc::new(MemoryJournal::default())) };
        let remembered = idempotency::Settings::default();
        World::of(stored, served, callers, remembered, (vec![auto()], None), |_| ()).await
    }

    /// Models, and routes among them; `auto` must be one.
    pub(crate) async fn routed(
        models: Vec<(Model, Arc<ScriptedBackend>)>,
        callers: Vec<Caller>,
        routes: Vec<Route>,
    ) -> World {
        let served = models.into_iter().map(|(model, script)| Served::by(model, vec![script])).collect();
        let remembered = idempotency::Settings::default();
        let stored = Stored::alone(Arc::new(MemoryJournal::default()));
        World::of(stored, served, callers, remembered, (routes, None), |_| ()).await
    }

    /// Models that serve agents, with all of it in one database.
    pub(crate) async fn agents(
        served: Vec<Served>,
        callers: Vec<Caller>,
        routes: Vec<Route>,
        stored: Stored,
    ) -> World {
        let remembered = idempotency::Settings::default();
        World::of(stored, served, callers, remembered, (routes, None), |_| ()).await
    }

    async fn of(
        stored: Stored,
        served: Vec<Served>,
        callers: Vec<Caller>,
        remembered: idempotency::Settings,
        (routes, learns): (Vec<Route>, Option<Learns>),
        adjust: impl FnOnce(&mut http::Settings),
    ) -> World {
        let settings = config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()))
            .expect("the defaults are right");
        let (tasks, metrics) = (Tasks::default(), Arc::new(Metrics::new().unwrap()));
        let terms = terms_of(&callers);
        let keys = KeyLookup::new(callers.into_iter().map(|caller| caller.tenant).collect()).unwrap();
        let observer = Arc::new(Quiet);
        let ledger = stored.ledger(&tasks, observer, &terms).await;
        let agents = EpisodeManager::open(&tasks, stored.episodes, metrics.clone(), stored.agents);
        let learning = match learns {
            Some((stories, settings)) => {
                let known = keys.clone();
                let learning = Learning::open(&tasks, stories, metrics.clone(), settings).await;
                learning.with_single_key_check(move || known.has_one_account())
            }
            None => Learning::off(),
        };
        let calibration = needing_thoughts(&served);
        let gateway = Gateway::new(GatewayParts {
            settings: gateway::Settings { wait_max: stored.wait_max, ..settings.gateway },
            tasks: tasks.clone(),
            metrics: metrics.clone(),
            ledger: ledger.clone(),
            catalog: catalog(&served, routes),
            fleets: served.into_iter().map(|served| served.fleet(&metrics)).collect(),
            calibration,
            learning,
            episodes: agents,
        });
        let answers = Arc::new(MemoryIdempotencyStore::default());
        let idempotency =
            Idempotency::open(&tasks, answers.clone(), remembered, Timestamp::now()).await.unwrap();
        let listen = ([127, 0, 0, 1], 0).into();
        let mut http = http::Settings { listen, ..settings.http };
        adjust(&mut http);
        let (settings, shared, inside) = (http.clone(), metrics.clone(), gateway.clone());
        let conversations = ConversationService::open(&tasks, stored.conversations, stored.kept.clone());
        let responses = ResponseService::open(&tasks, stored.responses, stored.kept);
        let service = ApiState {
            settings,
            keys,
            tokens: None,
            guardrails: Guardrails::default(),
            gateway,
            idempotency,
            responses,
            conversations,
            metrics: shared,
            tracer: None,
            refresh: Box::new(|| ()),
        };
        let bound = http::bind(listen).unwrap();
        let base = format!("http://{}", bound.address());
        let server = Server::new(http, metrics.clone(), tasks.clone());
        let api = http::api(&Arc::new(service));
        tasks.spawn(server.serve(bound, api.clone()));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        World { base, ledger, metrics, answers, client, gateway: inside, api, tasks }
    }

    /// One model, open to everybody.
    pub(crate) async fn open(model: Model, script: &Arc<ScriptedBackend>) -> World {
        World::new(vec![(model, script.clone())], Vec::new()).await
    }

    /// Posts a chat completion.
    pub(crate) async fn ask(&self, key: &str, body: &Value) -> Answer {
        self.ask_with(key, body, &[]).await
    }

    /// The same with more headers.
    pub(crate) async fn ask_with(&self, key: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let request = self.client.post(format!("{}/v1/chat/completions", self.base));
        let request = request.header("authorization", format!("Bearer {key}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
    }

    /// Posts to a path.
    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.post_with(path, key, body, &[]).await
    }

    /// The same with more headers.
    pub(crate) async fn post_with(
        &self,
        path: &str,
        key: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("authorization", format!("Bearer {key}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
    }

    /// Gets a page.
    pub(crate) async fn get(&self, key: &str, path: &str) -> Answer {
        let request = self.client.get(format!("{}{path}", self.base));
        Answer::of(request.header("authorization", format!("Bearer {key}"))).await
    }

    /// What Prometheus reads.
    pub(crate) fn metrics_page(&self) -> String {
        self.metrics.render()
    }

    /// How a tenant's account stands.
    pub(crate) fn account(&self, name: &str) -> AccountTotals {
        let account = AccountId::new(name);
        self.ledger.totals().into_iter().find(|totals| totals.account == account).expect("a known account")
    }

    /// How many requests wait for a place.
    pub(crate) fn waiting(&self, model: &str) -> i64 {
        self.gateway.refresh_fleet_metrics();
        self.metrics.backends.queue_depth.with_label_values(&[model]).get()
    }

    /// How many calls are under way on a target.
    pub(crate) fn in_flight(&self, model: &str, target: &str) -> i64 {
        self.gateway.refresh_fleet_metrics();
        self.metrics.backends.in_flight.with_label_values(&[model, target]).get()
    }

    /// 1 where a target may be asked, as the metrics say.
    pub(crate) fn state(&self, model: &str, target: &str) -> i64 {
        self.gateway.refresh_fleet_metrics();
        self.metrics.backends.state.with_label_values(&[model, target]).get()
    }

    /// Waits until so many requests for a model are in flight or were refused.
    pub(crate) async fn decided(&self, model: &str, count: u64) {
        let refused = self.metrics.requests.total.with_label_values(&[model, "none", "refused"]);
        let decided = || u64::try_from(self.ledger.open_reservations()).unwrap() + refused.get();
        until_sync("all are decided", || decided() >= count).await;
    }

    /// Waits until nothing is reserved any more.
    pub(crate) async fn settled(&self) {
        until_sync("everything is settled", || self.ledger.open_reservations() == 0).await;
    }

    /// Shuts down; says whether all ended in time.
    pub(crate) async fn stop(&self) -> bool {
        self.tasks.stop();
        within(STOP_MAX, self.tasks.drain(STOP_MAX + PATIENCE)).await.is_ok_and(|ended| ended)
    }
}

struct Quiet;

impl stint_ledger::Observer for Quiet {}

/// The route `auto` of these tests: an answer is worth a cent, time nothing.
pub(crate) fn auto() -> Route {
    Route {
        success_floor: Chance::new(0.5),
        worth: Money(10_000_000),
        cost_per_second: Money(0),
        ..Route::with_defaults("auto")
    }
}

fn catalog(served: &[Served], routes: Vec<Route>) -> Catalog {
    let models: BTreeMap<_, _> =
        served.iter().map(|Served { model, .. }| (model.name.clone(), Arc::new(model.clone()))).collect();
    Catalog {
        models,
        routes: std::iter::once(auto()).chain(routes).map(|route| (route.name.clone(), route)).collect(),
    }
}

/// What each caller may spend; without callers, what anybody may.
fn terms_of(callers: &[Caller]) -> Vec<AccountTerms> {
    if callers.is_empty() {
        return vec![AccountTerms::unlimited(Tenant::anonymous().account)];
    }
    callers.iter().map(|caller| caller.terms.clone()).collect()
}
