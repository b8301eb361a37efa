//! `stint probe MODEL`: finds out by a few cheap calls what an upstream really does with budgets.
//!
//! Parameters are silently dropped by engines and providers alike, so nothing is believed that was not seen: every class
//! of enforcement that the model's backend can speak is tried on questions about which the model thinks longer than the
//! budget, and what was spent is counted as for a caller.

mod attempt;
mod findings;
mod judge;
mod probe_ledger;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::config::{self, ModelConfig, ModelSource, Settings};
use stint_backend::remote::openai::EffortMember;
use stint_backend::{Backend, Failure, Fault};
use stint_types::catalog::{EFFORT_WORDS, EnforcementClass, Model, Service};
use stint_types::units::{Money, Timestamp, Tokens};

use super::backends::single_backend;
use super::error::ModelError;
use super::output::{VerbResult, print_line};

use attempt::{ProbeAttempt, ProbeOutcome, run_attempt};
use findings::ProbeFindings;
use judge::{ClassVerdict, EffortResult, EffortScale};
use probe_ledger::ProbeLedger;

/// What every reasoning model knows to think about, and none knows by heart.
const QUESTIONS: [&str; 2] = ["58*7-96+41*3=", "(47+38)*6-129="];

/// The budget that is tried, unless the provider takes none as small.
const BUDGET: Tokens = Tokens(24);

/// What a thought may take that is left alone, and an answer.
const UNBUDGETED_MAX: Tokens = Tokens(2048);
const SOLUTION_MAX: Tokens = Tokens(256);

/// Whom to probe.
#[derive(Debug, Args)]
pub(super) struct ProbeOptions {
    /// The model, by the name that callers use.
    model: String,
    /// Only print what was found out, and write nothing into the catalogue.
    #[arg(long)]
    dry_run: bool,
}

/// Why a model could not be probed.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("there is no model {0:?} in the configuration; it has {1}")]
    UnknownModel(String, String),
    #[error("{0} is not asked for answers (serves = {1}), so there is no thought to find out about")]
    NoAnswers(Arc<str>, String),
    #[error("the model cannot be served")]
    Model(#[from] ModelError),
    #[error("the upstream answered no question at all: is its address right, and its key?\n  because: {}", failure_details(.0))]
    NoResponse(Failure),
    #[error(transparent)]
    Findings(#[from] findings::FindingsError),
}

pub(super) fn probe(file: Option<&Path>, options: &ProbeOptions) -> VerbResult {
    let settings = config::load(file, &config::environment)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(&settings, options))?;
    Ok(ExitCode::SUCCESS)
}

async fn run(settings: &Settings, options: &ProbeOptions) -> Result<(), ProbeError> {
    let known = || settings.catalog.models.keys().map(|name| &**name).collect::<Vec<_>>().join(", ");
    let unknown = || ProbeError::UnknownModel(options.model.clone(), known());
    let model = settings.catalog.models.get(options.model.as_str()).ok_or_else(unknown)?;
    let mut served = settings.backends.iter().flat_map(|backend| &backend.models);
    let served = served.find(|served| served.name == model.name).ok_or_else(unknown)?;
    if !model.services.contains(&Service::Chat) {
        let words: Vec<&str> = model.services.iter().map(|service| service.as_str()).collect();
        return Err(ProbeError::NoAnswers(model.name.clone(), words.join(", ")));
    }
    let (backend, model) = single_backend(&settings.engine, served, model)?;
    let (verdicts, booking) = (BTreeSet::new(), ProbeLedger::open(settings).await);
    let mut probe =
        UpstreamProber { backend, model, ledger: booking, spent: Money::ZERO, calls: 0, verdicts };
    let learned = probe.probe_all(served).await;
    let booked = probe.ledger.close().await;
    let learned = learned?;
    let cost = probe.model.tariff.map_or(String::new(), |_| format!(", {} dollars", probe.spent));
    print_line("");
    for verdict in &probe.verdicts {
        print_line(&format!("{}: {}", verdict.label(), verdict.meaning()));
    }
    print_line(&format!("\n{} answers{cost}{booked}", probe.calls));
    match (&settings.learned, served.kind) {
        (_, None) => print_line("nothing was written: everything is known of the embedded model"),
        (Some(path), Some(_)) if !options.dry_run => {
            learned.write(path, Timestamp::now())?;
            print_line(&format!("written to {}; it holds from the next start or reload on", path.display()));
        }
        _ => print_line("nothing was written"),
    }
    Ok(())
}

/// A model under examination.
struct UpstreamProber {
    backend: Arc<dyn Backend>,
    model: Arc<Model>,
    ledger: ProbeLedger,
    spent: Money,
    calls: usize,
    /// The verdicts that were given.
    verdicts: BTreeSet<ClassVerdict>,
}

/// An answer to one of its questions takes no more than one part in so many of the context.
const ANSWER_PART: u64 = 4;

impl UpstreamProber {
    async fn probe_all(&mut self, served: &ModelConfig) -> Result<ProbeFindings, ProbeError> {
        print_line(&format!("{:<10} {:>7} {:>9} {:>8}  verdict", "class", "budget", "thought", "answer"));
        let (alone, shows) = self.probe_unbudgeted(&served.possible_classes).await?;
        let mut classes = Vec::new();
        for class in
            served.possible_classes.iter().copied().filter(|class| *class != EnforcementClass::Effort)
        {
            if class == EnforcementClass::Turn && !shows {
                self.print_row(class.as_str(), "-", "-", "-", "not tried: it shows no thought");
            } else if self.probe_class(class, alone).await.is_kept(self.model.classes.contains(&class)) {
                classes.push(class);
            }
        }
        let without = self.probe_without_thinking(&classes).await;
        let measured = self.probe_effort(served).await;
        let scale = judge::effort_scale(&measured);
        if let Some(words) = scale.remark() {
            print_line(words);
        }
        // Without words that do something, one limit for both is the last resort.
        let bounded = served.possible_classes.contains(&EnforcementClass::Effort);
        if bounded && (classes.is_empty() || !matches!(scale, EffortScale::Flat)) {
            classes.push(EnforcementClass::Effort);
        }
        Ok(ProbeFindings {
            thinking_max: self.thinking_max(alone, &measured),
            upstream: served.upstream.clone(),
            kind: served.kind.unwrap_or_default().to_owned(),
            host: served.host.clone(),
            thinking: config::thinking_word(&served.source),
            classes,
            thinks_always: without.or(judge::thinks_always(&measured)),
            efforts: scale.into_levels(),
        })
    }

    /// What each effort word does, where there are words to say it by.
    async fn probe_effort(&mut self, served: &ModelConfig) -> Vec<(String, EffortResult)> {
        if !served.possible_classes.contains(&EnforcementClass::Effort) {
            return Vec::new();
        }
        if !takes_effort_words(&served.source) {
            self.print_row("effort", "-", "-", "-", "not tried: this upstream has no words for it");
            return Vec::new();
        }
        self.measure_efforts().await
    }

    /// What it thinks when it is left alone, by the first class that answers, and whether it shows that.
    async fn probe_unbudgeted(
        &mut self,
        possible: &[EnforcementClass],
    ) -> Result<(Option<Tokens>, bool), ProbeError> {
        let thinking = self.unbudgeted_thinking();
        let mut last = None;
        for &class in possible {
            match self.ask_questions(class, thinking, None).await {
                Ok(outcomes) => {
                    let used = judge::median(outcomes.iter().map(|outcome| outcome.spent.thinking_total()));
                    let shows = outcomes.iter().any(|outcome| outcome.shows_thought);
                    let shown = match (shows, used) {
                        (true, _) => "left alone",
                        (false, None | Some(Tokens::ZERO)) => {
                            "left alone, it does not think; if it never does, say thinking_max = 0"
                        }
                        (false, Some(_)) => "left alone; its thoughts are hidden",
                    };
                    self.print_outcomes(class.as_str(), thinking, &outcomes, shown);
                    return Ok((used, shows));
                }
                Err(failure) => last = Some(failure),
            }
        }
        last.map_or(Ok((None, false)), |failure| Err(ProbeError::NoResponse(failure)))
    }

    async fn probe_class(&mut self, class: EnforcementClass, alone: Option<Tokens>) -> ClassVerdict {
        let budget = BUDGET.max(self.model.thinking_min).min(self.unbudgeted_thinking());
        match self.ask_questions(class, budget, None).await {
            Ok(outcomes) => {
                let verdict = judge::judge_class(class, budget, &outcomes, alone);
                self.print_outcomes(class.as_str(), budget, &outcomes, verdict.label());
                self.verdicts.insert(verdict);
                verdict
            }
            Err(failure) => {
                self.print_failure(class.as_str(), &failure);
                let verdict = ClassVerdict::of(&failure);
                self.verdicts.insert(verdict);
                verdict
            }
        }
    }

    /// What a thought may take that is left alone.
    fn unbudgeted_thinking(&self) -> Tokens {
        match self.model.thinking_max {
            Tokens::ZERO => self.available_thinking(),
            most => most.min(self.available_thinking()),
        }
    }

    /// The same as far as the context holds it beside the question and its answer.
    fn available_thinking(&self) -> Tokens {
        let prompt = |question| self.backend.prompt_tokens(&attempt::request(&self.model, question));
        let prompt = QUESTIONS.map(prompt).into_iter().max().unwrap_or_default();
        let beside = prompt + self.model.hand_off.overhead + self.solution();
        UNBUDGETED_MAX.min(self.model.context.saturating_sub(beside))
    }

    fn solution(&self) -> Tokens {
        let part = Tokens((self.model.context.0 / ANSWER_PART).max(1));
        self.model.solution_max.unwrap_or(SOLUTION_MAX).min(SOLUTION_MAX).min(part)
    }

    /// Room for its thoughts, where nobody knew that it has any.
    fn thinking_max(&self, alone: Option<Tokens>, words: &[(String, EffortResult)]) -> Option<Tokens> {
        let seen =
            words.iter().filter_map(|(_, effort)| effort.usual()).chain(alone).max().unwrap_or_default();
        let unknown = self.model.thinking_max == Tokens::ZERO && seen > Tokens::ZERO;
        unknown.then(|| UNBUDGETED_MAX.max(seen * 2))
    }

    /// Whether it thinks though it is asked not to; unknown where no class can say so.
    async fn probe_without_thinking(&mut self, classes: &[EnforcementClass]) -> Option<bool> {
        let class = *classes.first()?;
        let outcomes = self.ask_questions(class, Tokens::ZERO, None).await.ok()?;
        let thinks = outcomes.iter().any(|outcome| outcome.spent.thinking_total() > Tokens::ZERO);
        let verdict = if thinks { "thinks all the same" } else { "does not think" };
        self.print_outcomes(class.as_str(), Tokens::ZERO, &outcomes, verdict);
        Some(thinks)
    }

    /// What it thinks at each effort word.
    async fn measure_efforts(&mut self) -> Vec<(String, EffortResult)> {
        let known: Vec<String> = self.model.efforts.iter().map(|level| level.word.clone()).collect();
        let words = if known.is_empty() { EFFORT_WORDS.map(str::to_owned).to_vec() } else { known };
        let mut measured = Vec::new();
        for word in words {
            let effort = match self
                .ask_questions(EnforcementClass::Effort, self.available_thinking(), Some(&word))
                .await
            {
                Ok(outcomes) => {
                    self.print_outcomes(&word, self.available_thinking(), &outcomes, "taken");
                    let used = judge::median(outcomes.iter().map(|outcome| outcome.spent.thinking_total()));
                    EffortResult::Taken(used.unwrap_or_default())
                }
                Err(failure) => {
                    self.print_failure(&word, &failure);
                    EffortResult::of(&failure)
                }
            };
            measured.push((word, effort));
        }
        measured
    }

    /// Every question under one attempt; the failure of the first that fails.
    async fn ask_questions(
        &mut self,
        class: EnforcementClass,
        thinking: Tokens,
        effort: Option<&str>,
    ) -> Result<Vec<ProbeOutcome>, Failure> {
        let attempt =
            ProbeAttempt { class, thinking, solution: self.solution(), effort: effort.map(str::to_owned) };
        let mut outcomes = Vec::new();
        for question in QUESTIONS {
            let prompt = self.backend.prompt_tokens(&attempt::request(&self.model, question));
            let written =
                EnforcementClass::native_max(thinking) + attempt.solution + self.model.hand_off.overhead;
            let reservation = self
                .ledger
                .dispatch(&self.model, prompt, written)
                .await
                .map_err(|error| ledger_failure(&error))?;
            let begun = self.ledger.now();
            let (outcome, spent) = run_attempt(&self.backend, &self.model, &attempt, question).await;
            let tariff = self.model.tariff.map(|tariff| tariff.between(begun, self.ledger.now()));
            let cost = tariff.map_or(Money::ZERO, |tariff| spent.cost(&tariff));
            self.ledger.settle(reservation, cost, &spent).await;
            self.spent += cost;
            outcomes.push(outcome?);
            self.calls += 1;
        }
        Ok(outcomes)
    }

    fn print_outcomes(&self, what: &str, budget: Tokens, outcomes: &[ProbeOutcome], verdict: &str) {
        let counts = |count: fn(&ProbeOutcome) -> Tokens| {
            let each = outcomes.iter().map(|outcome| count(outcome).to_string());
            each.collect::<Vec<_>>().join(" ")
        };
        let estimated = outcomes.iter().any(|outcome| outcome.spent.estimated);
        let cut = outcomes.iter().any(|outcome| outcome.finish == stint_types::chat::FinishReason::Length);
        let notes = [(estimated, "; counts reckoned"), (cut, "; the answer reached its limit")];
        let notes: String = notes.iter().filter(|(holds, _)| *holds).map(|(_, note)| *note).collect();
        let (thought, answer) = (counts(|it| it.spent.thinking_total()), counts(|it| it.spent.solution));
        self.print_row(what, &budget.to_string(), &thought, &answer, &format!("{verdict}{notes}"));
    }

    fn print_failure(&self, what: &str, failure: &Failure) {
        let word = if judge::is_refusal(failure) { "refused" } else { "failed" };
        let reason = failure.upstream_message.as_deref();
        let reason = reason.map_or_else(|| failure.to_string(), str::to_owned);
        self.print_row(what, "-", "-", "-", &format!("{word}: {reason}"));
    }

    fn print_row(&self, what: &str, budget: &str, thought: &str, answer: &str, verdict: &str) {
        print_line(&format!("{what:<10} {budget:>7} {thought:>9} {answer:>8}  {verdict}"));
    }
}

/// A call that the ledger does not take is not made.
fn ledger_failure(error: &stint_ledger::LedgerError) -> Failure {
    Failure::new(Fault::Backend, format!("not sent, since the ledger does not take it: {error}")).unsent()
}

/// All that is known of a failure: the questions are our own, so nobody's prompt can be in it.
fn failure_details(failure: &Failure) -> String {
    match &failure.upstream_message {
        Some(detail) => format!("{}: \"{detail}\"", failure.message),
        None => failure.to_string(),
    }
}

/// Whether there is a member to say a word of effort by.
fn takes_effort_words(source: &ModelSource) -> bool {
    match source {
        ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => {
            settings.dialect.effort != EffortMember::Never
        }
        _ => true,
    }
}
