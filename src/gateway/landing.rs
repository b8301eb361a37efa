//! The end of a flight: settled, told to all who go by how requests end, and to the caller.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::agent::Reading;
use crate::backend::Failure;
use crate::catalog::{Class, Offer, Spent};
use crate::chat::Finish;
use crate::execute::{Progress, Sampled};
use crate::history::Story;
use crate::ledger::SettlementDetail;
use crate::units::{Chance, Money, Tokens};

use super::books::{Books, detail};
use super::cascade::Flown;
use super::episodes::Passed;
use super::flying::Flying;
use super::learning::{self, Close};
use super::observe::{self, Landed};
use super::rollout::Ran;
use super::{Receipt, Report, Settled, Told, needs};

/// How the run of one offer ended.
pub(super) enum Landing {
    /// Every choice came to its end.
    Finished(Vec<Finish>),
    /// Every choice was made, perhaps several times, and none was shown yet.
    Sampled(Vec<Sampled>),
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    HungUp,
}

impl Landing {
    /// The word in metrics and the journal.
    fn word(&self) -> &'static str {
        match self {
            Landing::Finished(_) | Landing::Sampled(_) => "finished",
            Landing::Failed(_) => "failed",
            Landing::HungUp => "hung_up",
        }
    }

    /// What failed, in one word.
    fn error(&self) -> Option<&'static str> {
        match self {
            Landing::Failed(failure) => Some(failure.code.unwrap_or(failure.fault.word())),
            Landing::Finished(_) | Landing::Sampled(_) | Landing::HungUp => None,
        }
    }
}

/// The sums on a receipt.
#[derive(Clone, Copy)]
struct Sums {
    cost: Money,
    reserved: Money,
    attempts: u32,
    /// How many of those were given up for one beside them.
    outrun: u32,
    given_up: Tokens,
}

impl Flying {
    /// Settles and reports the end.
    pub(super) async fn land(&self, flown: Flown<'_>, books: Books, reports: mpsc::Sender<Report>) {
        let Flown { offer, landing, progress, mut spent, tallies } = flown;
        if !books.departed() {
            let refusal = match landing {
                Landing::Failed(failure) => Some(needs::failed(&self.request, failure)),
                Landing::HungUp | Landing::Finished(_) | Landing::Sampled(_) => None,
            };
            return self.stay(books, refusal, &reports).await;
        }
        let (attempts, given_up, reserved) = (books.attempts(), books.given_up(), books.reserved());
        let outrun = books.outrun();
        // What a caller is told of the cost is no surer than what was lost on the way to it.
        spent.iter_mut().for_each(|spent| spent.estimated |= books.is_estimated());
        let (passed, reserved) = (self.passed(&progress), reserved + self.tools_reserved());
        let detail = detail(&spent, landing.word());
        let detail = SettlementDetail { tools: passed.tools.clone(), tools_cost: passed.cost, ..detail };
        let kept = self.keep(offer, &landing, &progress);
        let settled = books.settle(self.bill(offer, &spent), detail, &self.parts.settings);
        let (cost, ()) = futures_util::future::join(settled, kept).await;
        let used_nothing = cost == Money::ZERO && spent.iter().all(|spent| spent.thought() == Tokens::ZERO);
        match (&self.ticket, &landing) {
            (Some(ticket), Landing::Failed(_) | Landing::HungUp) if used_nothing => ticket.cost_nothing(),
            _ => {}
        }
        let (ended, error) = (landing.word(), landing.error());
        let close = Close {
            offer,
            progress: &progress,
            spent: &spent,
            ended,
            error,
            cost,
            reserved,
            attempts,
            given_up,
        };
        let story = self.told(&close);
        let report = match landing {
            Landing::HungUp | Landing::Sampled(_) => return,
            Landing::Failed(failure) => {
                tracing::warn!(request = %self.id, model = %offer.model, fault = failure.fault.word(), %failure, "failed");
                Report::Failed(needs::failed(&self.request, failure))
            }
            Landing::Finished(finishes) => {
                let mut tallies = tallies.into_iter();
                let settled =
                    |(finish, spent): (Finish, Spent)| Settled { finish, spent, tally: tallies.next() };
                let choices = finishes.into_iter().zip(spent).map(settled).collect();
                let sums = Sums { cost, reserved, attempts, outrun, given_up };
                let episode = self.run_told(&passed);
                let mut receipt = Receipt { episode, ..self.receipt(offer, choices, sums) };
                receipt.why.extend(passed.why());
                Report::Done(Box::new(receipt))
            }
        };
        let _ = reports.send(report).await;
        self.parts.learning.signs(&story, learning::of_form(&self.request, &progress));
    }

    fn receipt(&self, offer: &Offer, choices: Vec<Settled>, sums: Sums) -> Receipt {
        let Sums { cost, reserved, attempts, outrun, given_up } = sums;
        Receipt {
            id: self.id,
            model: offer.model.clone(),
            class: offer.class,
            thinking: offer.thinking,
            solution: offer.solution,
            choices,
            cost,
            reserved,
            attempts,
            given_up,
            why: self.why(offer, attempts, outrun),
            episode: None,
        }
    }

    /// What passed of the tool calls.
    fn passed(&self, progress: &[Progress]) -> Passed {
        let metrics = &self.parts.metrics;
        match &self.stepping {
            Some(stepping) => stepping.passed(progress, metrics),
            None => Passed::invented(progress, metrics),
        }
    }

    /// How the run stands that it was a step of.
    fn run_told(&self, passed: &Passed) -> Option<Told> {
        let (stepping, ledger) = (self.stepping.as_ref(), &self.parts.ledger);
        stepping.map(|stepping| stepping.told(ledger, &self.account, passed))
    }

    /// What was set aside for tool calls.
    fn tools_reserved(&self) -> Money {
        self.stepping.as_ref().map(|stepping| stepping.step.tools_cost).unwrap_or_default()
    }

    /// Remembers a step that was answered, before its caller sees the end of the answer.
    async fn keep(&self, offer: &Offer, landing: &Landing, progress: &[Progress]) {
        if let (Some(stepping), Landing::Finished(finishes)) = (&self.stepping, landing) {
            let now = self.parts.ledger.now();
            let reading = |told| self.reading(offer, told);
            stepping.keep(&self.account, (offer, progress), finishes, reading, now).await;
        }
    }

    /// What the provider counted of the prompt, where the next one can go by it.
    pub(super) fn reading(&self, offer: &Offer, told: Tokens) -> Option<Reading> {
        // Where a tokenizer told as much before, nothing is gained by it.
        if told >= self.prompt(offer) {
            return None;
        }
        let reader = self.parts.fleets.get(&offer.model)?.reader()?;
        let before = self.stepping.as_ref().and_then(|stepping| stepping.reading_before(&offer.model));
        Reading::of(&self.request, reader, told, before)
    }

    /// Tells everybody who goes by how requests end: Prometheus, the demotions, the prices, learning.
    fn told(&self, close: &Close<'_>) -> Arc<Story> {
        let Close { offer, progress, spent, ended, cost, .. } = *close;
        observe::landed(self, &Landed { offer, progress, spent, outcome: ended });
        self.verify(offer, spent);
        self.pace(cost, ended, offer.success);
        if let Some(observed) = self.observed.as_ref().filter(|_| ended == "finished") {
            let ran = Ran { model: &offer.model, spent, cost };
            observed.landed(&self.parts.metrics, self.id, &self.route, &ran);
        }
        let story = self.story(close);
        self.observer.iter().for_each(|observer| observer.settled(&story.outcome));
        self.parts.learning.landed(&story, self.grounds.asked);
        self.parts.learning.signs(&story, learning::of_ending(&story, &self.request));
        story
    }

    /// What decided; after failures, that too.
    fn why(&self, offer: &Offer, attempts: u32, outrun: u32) -> String {
        let (planned, best) = (&self.plan.why, &self.plan.best.model);
        let escalated = |from: &&Offer| from.escalate.as_deref() == Some(offer);
        let mut offers = std::iter::once(&self.plan.best).chain(&self.plan.fallbacks);
        match attempts {
            _ if let Some(from) = offers.find(escalated) => {
                format!("{planned}; {} was in doubt, so {} was asked", from.model, offer.model)
            }
            _ if offer.model != *best => {
                format!("{best} failed and {} took over; planned was: {planned}", offer.model)
            }
            0 => planned.clone(),
            all if all == outrun => {
                format!("{planned}; another target was asked beside the first, which was silent")
            }
            failed => format!("{planned}; {failed} failed before"),
        }
    }

    /// Believes a native budget only as long as it holds.
    fn verify(&self, offer: &Offer, spent: &[Spent]) {
        self.look_for_thoughts(offer, spent);
        self.look_for_plainness(offer);
        if offer.class != Class::Native || spent.iter().all(|spent| !spent.overran) {
            return;
        }
        let used = spent.iter().map(|spent| spent.thinking).max();
        self.parts.metrics.thinking.overran.with_label_values(&[&*offer.model]).inc();
        if let Some(class) = self.model(offer).and_then(|model| self.demotions.demote(model)) {
            self.parts.metrics.thinking.demotions.with_label_values(&[&*offer.model]).inc();
            tracing::warn!(
                request = %self.id, model = %offer.model, budget = %offer.thinking, used = ?used, now = class.word(),
                "demoted: the provider's thinking budget did not hold"
            );
        }
    }

    /// A model whose own server says that it does not think is planned for as one that does not.
    fn look_for_plainness(&self, offer: &Offer) {
        let fleet = self.parts.fleets.get(&offer.model);
        let Some(model) = self.model(offer).filter(|_| fleet.is_some_and(|fleet| fleet.never_thinks()))
        else {
            return;
        };
        if self.demotions.plain(model) {
            tracing::info!(
                request = %self.id, model = %offer.model,
                "its chat template knows of no thoughts: nothing is held or handed over there"
            );
        }
    }

    /// A model that thinks, though nobody said so, is planned for as one that does.
    fn look_for_thoughts(&self, offer: &Offer, spent: &[Spent]) {
        let used = spent.iter().map(Spent::thought).max().unwrap_or_default();
        let Some(model) = self.model(offer).filter(|_| used > Tokens::ZERO) else { return };
        if let Some(room) = self.demotions.discover(model, used) {
            tracing::warn!(
                request = %self.id, model = %offer.model, %used, %room,
                "it thinks, though nothing says so: say its kind and thinking_max, or run `stint probe`"
            );
        }
    }

    /// Lets the prices follow what was spent, and what success counts for what was reached.
    fn pace(&self, cost: Money, ended: &str, success: Chance) {
        self.pacing.settled(&self.account, &self.paced, self.expected, cost);
        if ended == "finished" {
            self.pacing.landed(&self.policy, success);
        }
    }
}
