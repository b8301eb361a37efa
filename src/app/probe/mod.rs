//! `stint probe MODEL`: finds out by a few cheap calls what an upstream really does with budgets.
//!
//! Parameters are silently dropped by engines and providers alike, so nothing is believed that was not seen: every class
//! of enforcement that the model's backend can speak is tried on questions about which the model thinks longer than the
//! budget, and what was spent is counted as for a caller.

mod attempt;
mod booking;
mod judge;
mod learned;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::backend::remote::openai::EffortMember;
use crate::backend::{Backend, Failure, Fault};
use crate::catalog::{Class, EFFORT_WORDS, Model, Service};
use crate::config::{self, Served, Settings, Source};
use crate::units::{Money, Timestamp, Tokens};

use super::command::{fail, say};
use super::models;

use attempt::{Attempt, Outcome, ask};
use booking::Booking;
use judge::{Effort, Scale, Verdict};
use learned::Learned;

/// What every reasoning model knows to think about, and none knows by heart.
const QUESTIONS: [&str; 2] = ["58*7-96+41*3=", "(47+38)*6-129="];

/// The budget that is tried, unless the provider takes none as small.
const BUDGET: Tokens = Tokens(24);

/// What a thought may take that is left alone, and an answer.
const ALONE: Tokens = Tokens(2048);
const SOLUTION: Tokens = Tokens(256);

/// Whom to probe.
#[derive(Debug, Args)]
pub(super) struct Options {
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
    Unknown(String, String),
    #[error("{0} is not asked for answers (serves = {1}), so there is no thought to find out about")]
    NoAnswers(Arc<str>, String),
    #[error("the model cannot be served")]
    Model(#[from] models::ModelError),
    #[error("the upstream answered no question at all: is its address right, and its key?\n  because: {}", in_full(.0))]
    Mute(Failure),
    #[error(transparent)]
    Learned(#[from] learned::LearnedError),
}

pub(super) fn probe(file: Option<&Path>, options: &Options) -> ExitCode {
    let settings = match config::load(file, &config::environment) {
        Ok(settings) => settings,
        Err(mistakes) => return fail(&mistakes),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    match runtime.block_on(run(&settings, options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

async fn run(settings: &Settings, options: &Options) -> Result<(), ProbeError> {
    let known = || settings.catalog.models.keys().map(|name| &**name).collect::<Vec<_>>().join(", ");
    let unknown = || ProbeError::Unknown(options.model.clone(), known());
    let model = settings.catalog.models.get(options.model.as_str()).ok_or_else(unknown)?;
    let mut served = settings.backends.iter().flat_map(|backend| &backend.models);
    let served = served.find(|served| served.name == model.name).ok_or_else(unknown)?;
    if !model.services.contains(&Service::Chat) {
        let words: Vec<&str> = model.services.iter().map(|service| service.word()).collect();
        return Err(ProbeError::NoAnswers(model.name.clone(), words.join(", ")));
    }
    let (backend, model) = models::only(&settings.engine, served, model)?;
    let (verdicts, booking) = (BTreeSet::new(), Booking::open(settings).await);
    let mut probe = Probe { backend, model, booking, spent: Money::ZERO, calls: 0, verdicts };
    let learned = probe.all(served).await;
    let booked = probe.booking.close().await;
    let learned = learned?;
    let cost = probe.model.tariff.map_or(String::new(), |_| format!(", {} dollars", probe.spent));
    say("");
    for verdict in &probe.verdicts {
        say(&format!("{}: {}", verdict.words(), verdict.meaning()));
    }
    say(&format!("\n{} answers{cost}{booked}", probe.calls));
    match (&settings.learned, served.kind) {
        (_, None) => say("nothing was written: everything is known of the embedded model"),
        (Some(path), Some(_)) if !options.dry_run => {
            learned.write(path, Timestamp::now())?;
            say(&format!("written to {}; it holds from the next start or reload on", path.display()));
        }
        _ => say("nothing was written"),
    }
    Ok(())
}

/// A model under examination.
struct Probe {
    backend: Arc<dyn Backend>,
    model: Arc<Model>,
    booking: Booking,
    spent: Money,
    calls: usize,
    /// The verdicts that were given.
    verdicts: BTreeSet<Verdict>,
}

/// An answer to one of its questions takes no more than one part in so many of the context.
const ANSWER_PART: u64 = 4;

impl Probe {
    async fn all(&mut self, served: &Served) -> Result<Learned, ProbeError> {
        say(&format!("{:<10} {:>7} {:>9} {:>8}  verdict", "class", "budget", "thought", "answer"));
        let (alone, shows) = self.alone(&served.possible).await?;
        let mut classes = Vec::new();
        for class in served.possible.iter().copied().filter(|class| *class != Class::Effort) {
            if class == Class::Turn && !shows {
                self.line(class.word(), "-", "-", "-", "not tried: it shows no thought");
            } else if self.class(class, alone).await.is_kept(self.model.classes.contains(&class)) {
                classes.push(class);
            }
        }
        let without = self.without(&classes).await;
        let measured = self.words(served).await;
        let scale = judge::scale(&measured);
        if let Some(words) = scale.words() {
            say(words);
        }
        // Without words that do something, one limit for both is the last resort.
        let bounded = served.possible.contains(&Class::Effort);
        if bounded && (classes.is_empty() || !matches!(scale, Scale::Flat)) {
            classes.push(Class::Effort);
        }
        Ok(Learned {
            thinking_max: self.thinking_max(alone, &measured),
            upstream: served.upstream.clone(),
            kind: served.kind.unwrap_or_default().to_owned(),
            host: served.host.clone(),
            thinking: served.source.thinking(),
            classes,
            thinks_always: without.or(judge::thinks_always(&measured)),
            efforts: scale.learned(),
        })
    }

    /// What each effort word does, where there are words to say it by.
    async fn words(&mut self, served: &Served) -> Vec<(String, Effort)> {
        if !served.possible.contains(&Class::Effort) {
            return Vec::new();
        }
        if !takes_words(&served.source) {
            self.line("effort", "-", "-", "-", "not tried: this upstream has no words for it");
            return Vec::new();
        }
        self.efforts().await
    }

    /// What it thinks when it is left alone, by the first class that answers, and whether it shows that.
    async fn alone(&mut self, possible: &[Class]) -> Result<(Option<Tokens>, bool), ProbeError> {
        let thinking = self.thinking_alone();
        let mut last = None;
        for &class in possible {
            match self.put(class, thinking, None).await {
                Ok(outcomes) => {
                    let used = judge::median(outcomes.iter().map(|outcome| outcome.spent.thought()));
                    let shows = outcomes.iter().any(|outcome| outcome.shown);
                    let shown = match (shows, used) {
                        (true, _) => "left alone",
                        (false, None | Some(Tokens::ZERO)) => {
                            "left alone, it does not think; if it never does, say thinking_max = 0"
                        }
                        (false, Some(_)) => "left alone; its thoughts are hidden",
                    };
                    self.tell(class.word(), thinking, &outcomes, shown);
                    return Ok((used, shows));
                }
                Err(failure) => last = Some(failure),
            }
        }
        last.map_or(Ok((None, false)), |failure| Err(ProbeError::Mute(failure)))
    }

    async fn class(&mut self, class: Class, alone: Option<Tokens>) -> Verdict {
        let budget = BUDGET.max(self.model.thinking_min).min(self.thinking_alone());
        match self.put(class, budget, None).await {
            Ok(outcomes) => {
                let verdict = judge::class(class, budget, &outcomes, alone);
                self.tell(class.word(), budget, &outcomes, verdict.words());
                self.verdicts.insert(verdict);
                verdict
            }
            Err(failure) => {
                self.refused(class.word(), &failure);
                let verdict = Verdict::of(&failure);
                self.verdicts.insert(verdict);
                verdict
            }
        }
    }

    /// What a thought may take that is left alone.
    fn thinking_alone(&self) -> Tokens {
        match self.model.thinking_max {
            Tokens::ZERO => self.room(),
            most => most.min(self.room()),
        }
    }

    /// The same as far as the context holds it beside the question and its answer.
    fn room(&self) -> Tokens {
        let prompt = |question| self.backend.prompt_tokens(&attempt::request(&self.model, question));
        let prompt = QUESTIONS.map(prompt).into_iter().max().unwrap_or_default();
        let beside = prompt + self.model.hand_off.overhead + self.solution();
        ALONE.min(self.model.context.saturating_sub(beside))
    }

    fn solution(&self) -> Tokens {
        let part = Tokens((self.model.context.0 / ANSWER_PART).max(1));
        self.model.solution_max.unwrap_or(SOLUTION).min(SOLUTION).min(part)
    }

    /// Room for its thoughts, where nobody knew that it has any.
    fn thinking_max(&self, alone: Option<Tokens>, words: &[(String, Effort)]) -> Option<Tokens> {
        let seen =
            words.iter().filter_map(|(_, effort)| effort.usual()).chain(alone).max().unwrap_or_default();
        let unknown = self.model.thinking_max == Tokens::ZERO && seen > Tokens::ZERO;
        unknown.then(|| ALONE.max(seen * 2))
    }

    /// Whether it thinks though it is told not to; unknown where no class can say so.
    async fn without(&mut self, classes: &[Class]) -> Option<bool> {
        let class = *classes.first()?;
        let outcomes = self.put(class, Tokens::ZERO, None).await.ok()?;
        let thinks = outcomes.iter().any(|outcome| outcome.spent.thought() > Tokens::ZERO);
        let verdict = if thinks { "thinks all the same" } else { "does not think" };
        self.tell(class.word(), Tokens::ZERO, &outcomes, verdict);
        Some(thinks)
    }

    /// What it thinks at each effort word.
    async fn efforts(&mut self) -> Vec<(String, Effort)> {
        let known: Vec<String> = self.model.efforts.iter().map(|level| level.word.clone()).collect();
        let words = if known.is_empty() { EFFORT_WORDS.map(str::to_owned).to_vec() } else { known };
        let mut measured = Vec::new();
        for word in words {
            let effort = match self.put(Class::Effort, self.room(), Some(&word)).await {
                Ok(outcomes) => {
                    self.tell(&word, self.room(), &outcomes, "taken");
                    let used = judge::median(outcomes.iter().map(|outcome| outcome.spent.thought()));
                    Effort::Taken(used.unwrap_or_default())
                }
                Err(failure) => {
                    self.refused(&word, &failure);
                    Effort::of(&failure)
                }
            };
            measured.push((word, effort));
        }
        measured
    }

    /// Every question under one attempt; the failure of the first that fails.
    async fn put(
        &mut self,
        class: Class,
        thinking: Tokens,
        effort: Option<&str>,
    ) -> Result<Vec<Outcome>, Failure> {
        let attempt =
            Attempt { class, thinking, solution: self.solution(), effort: effort.map(str::to_owned) };
        let mut outcomes = Vec::new();
        for question in QUESTIONS {
            let prompt = self.backend.prompt_tokens(&attempt::request(&self.model, question));
            let written = Class::native_most(thinking) + attempt.solution + self.model.hand_off.overhead;
            let reservation = self
                .booking
                .dispatch(&self.model, prompt, written)
                .await
                .map_err(|error| unbooked(&error))?;
            let (outcome, spent) = ask(&self.backend, &self.model, &attempt, question).await;
            let cost = self.model.tariff.map_or(Money::ZERO, |tariff| spent.cost(&tariff));
            self.booking.settle(reservation, cost, &spent).await;
            self.spent += cost;
            outcomes.push(outcome?);
            self.calls += 1;
        }
        Ok(outcomes)
    }

    fn tell(&self, what: &str, budget: Tokens, outcomes: &[Outcome], verdict: &str) {
        let counts = |count: fn(&Outcome) -> Tokens| {
            let each = outcomes.iter().map(|outcome| count(outcome).to_string());
            each.collect::<Vec<_>>().join(" ")
        };
        let estimated = outcomes.iter().any(|outcome| outcome.spent.estimated);
        let cut = outcomes.iter().any(|outcome| outcome.finish == crate::chat::Finish::Length);
        let notes = [(estimated, "; counts reckoned"), (cut, "; the answer reached its limit")];
        let notes: String = notes.iter().filter(|(holds, _)| *holds).map(|(_, note)| *note).collect();
        let (thought, answer) = (counts(|it| it.spent.thought()), counts(|it| it.spent.solution));
        self.line(what, &budget.to_string(), &thought, &answer, &format!("{verdict}{notes}"));
    }

    fn refused(&self, what: &str, failure: &Failure) {
        let word = if judge::is_refusal(failure) { "refused" } else { "failed" };
        self.line(
            what,
            "-",
            "-",
            "-",
            &format!("{word}: {}", failure.told.clone().unwrap_or_else(|| failure.to_string())),
        );
    }

    fn line(&self, what: &str, budget: &str, thought: &str, answer: &str, verdict: &str) {
        say(&format!("{what:<10} {budget:>7} {thought:>9} {answer:>8}  {verdict}"));
    }
}

/// A call that the ledger does not take is not made.
fn unbooked(error: &crate::ledger::LedgerError) -> Failure {
    Failure::new(Fault::Backend, format!("not sent, since the ledger does not take it: {error}")).unsent()
}

/// All that was said of a failure: the questions are our own, so nobody's prompt can be in it.
fn in_full(failure: &Failure) -> String {
    match &failure.told {
        Some(told) => format!("{}: \"{told}\"", failure.message),
        None => failure.to_string(),
    }
}

/// Whether there is a member to say a word of effort by.
fn takes_words(source: &Source) -> bool {
    match source {
        Source::OpenAi(settings) | Source::Vllm(settings) => settings.dialect.effort != EffortMember::Never,
        _ => true,
    }
}
