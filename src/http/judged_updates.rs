//! The updates of a running request, on their way to the caller. Where guardrails judge answers, all of an answer is held back until
//! they have judged it: what a caller has read cannot be taken back.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::gateway::{RequestReceipt, RequestTask, RequestUpdate};
use crate::guardrail::{AnswerVerdict, GuardrailChain, JudgedChoice};
use stint_types::chat::{AnswerNote, ChoiceEvent, ToolCall};

use super::collected_choice::CollectedChoice;
use super::error::ApiError;

/// An update as a caller is to have it.
#[derive(Debug)]
pub(super) enum AnswerUpdate {
    /// Something happened to one choice.
    Event(u32, ChoiceEvent),
    /// What came so far is no part of the answer. Only callers that do not stream get this.
    Restarted,
    /// All choices ended and were settled.
    Done(Box<RequestReceipt>),
    /// It failed, or is withheld; what was used is settled.
    Failed(ApiError),
}

/// A running request, and those who judge its answer, if any. Dropping it hangs up.
pub(super) struct JudgedUpdates {
    pub(super) task: RequestTask,
    judge: Option<AnswerJudge>,
}

/// Holds an answer back until it was judged.
struct AnswerJudge {
    chain: Option<GuardrailChain>,
    held: Vec<CollectedChoice>,
    receipt: Option<Box<RequestReceipt>>,
    judging: Option<BoxFuture<'static, AnswerVerdict>>,
    /// What may be given.
    judged: VecDeque<AnswerUpdate>,
}

impl From<RequestUpdate> for AnswerUpdate {
    fn from(update: RequestUpdate) -> AnswerUpdate {
        match update {
            RequestUpdate::Event(choice, event) => AnswerUpdate::Event(choice, event),
            RequestUpdate::Restarted => AnswerUpdate::Restarted,
            RequestUpdate::Done(receipt) => AnswerUpdate::Done(receipt),
            RequestUpdate::Failed(refusal) => AnswerUpdate::Failed(refusal.into()),
        }
    }
}

impl JudgedUpdates {
    pub(super) fn new(task: RequestTask, chain: Option<GuardrailChain>) -> JudgedUpdates {
        let choices = usize::try_from(task.choices()).unwrap_or(usize::MAX);
        let judge = chain.filter(GuardrailChain::judges_answers).map(|chain| AnswerJudge {
            chain: Some(chain),
            held: vec![CollectedChoice::default(); choices],
            receipt: None,
            judging: None,
            judged: VecDeque::new(),
        });
        JudgedUpdates { task, judge }
    }

    /// The next update, if it is there already.
    pub(super) fn next_ready(&mut self) -> Option<AnswerUpdate> {
        match &mut self.judge {
            None => self.task.next_ready().map(Into::into),
            Some(judge) => judge.judged.pop_front(),
        }
    }

    /// The next update; the last one is `Done` or `Failed`. Whoever stops waiting for it may wait again.
    pub(super) async fn next(&mut self) -> Option<AnswerUpdate> {
        let Some(judge) = &mut self.judge else { return self.task.next().await.map(Into::into) };
        loop {
            if let Some(update) = judge.judged.pop_front() {
                return Some(update);
            }
            if let Some(judging) = &mut judge.judging {
                let verdict = judging.await;
                judge.judging = None;
                judge.apply(verdict);
                continue;
            }
            match self.task.next().await? {
                RequestUpdate::Event(choice, event) => judge.hold(choice, event),
                RequestUpdate::Restarted => judge.restart(),
                RequestUpdate::Done(receipt) => judge.begin(receipt),
                failed @ RequestUpdate::Failed(_) => return Some(failed.into()),
            }
        }
    }
}

impl AnswerJudge {
    fn hold(&mut self, choice: u32, event: ChoiceEvent) {
        if let Some(choice) = self.held.get_mut(usize::try_from(choice).unwrap_or(usize::MAX)) {
            choice.push(event);
        }
    }

    fn restart(&mut self) {
        self.held.fill(CollectedChoice::default());
    }

    fn begin(&mut self, receipt: Box<RequestReceipt>) {
        let choices = self.held.iter().map(judged_choice).collect();
        let model: Arc<str> = receipt.model.clone();
        self.judging = self.chain.take().map(|chain| chain.after(model, choices).boxed());
        self.receipt = Some(receipt);
    }

    fn apply(&mut self, verdict: AnswerVerdict) {
        let mut texts = match verdict {
            AnswerVerdict::Give(texts) => texts,
            AnswerVerdict::Withhold(objection) => {
                // Another try would cost as much again.
                let problem = ApiError::from(objection).with_final();
                return self.judged.push_back(AnswerUpdate::Failed(problem));
            }
        };
        for (place, choice) in std::mem::take(&mut self.held).into_iter().enumerate() {
            let index = u32::try_from(place).unwrap_or(u32::MAX);
            let text =
                texts.iter_mut().find(|(changed, _)| *changed == place).map(|(_, text)| std::mem::take(text));
            let events = match text {
                Some(text) => {
                    // What its provider says besides may have the old text.
                    let mut settled =
                        self.receipt.iter_mut().flat_map(|receipt| receipt.choices.get_mut(place));
                    settled.by_ref().for_each(|choice| choice.spent.members = None);
                    rewritten(choice, text)
                }
                None => choice.into_events(),
            };
            self.judged.extend(events.into_iter().map(|event| AnswerUpdate::Event(index, event)));
        }
        self.judged.extend(self.receipt.take().map(AnswerUpdate::Done));
    }
}

fn judged_choice(choice: &CollectedChoice) -> JudgedChoice {
    let mut judged = JudgedChoice::default();
    for event in choice.events() {
        match event {
            ChoiceEvent::Thought(text) => judged.thought.push_str(text),
            ChoiceEvent::Answer(text) => judged.answer.push_str(text),
            ChoiceEvent::ToolCall(call) => judged.tool_calls.push(ToolCall {
                id: call.id.clone().unwrap_or_default(),
                name: call.name.clone().unwrap_or_default(),
                arguments: call.arguments.clone(),
            }),
            ChoiceEvent::Note(AnswerNote::Declined(Some(why))) => judged.answer.push_str(why),
            ChoiceEvent::Note(AnswerNote::Audio(piece)) => {
                judged.answer.push_str(piece["transcript"].as_str().unwrap_or_default());
            }
            ChoiceEvent::Signed(_) | ChoiceEvent::Logprobs(_) | ChoiceEvent::Note(_) => {}
        }
    }
    judged
}

/// The text in place of the answer's. Of the thought and of the chances of tokens, which would say the old one, nothing is given.
/// What declined still does.
fn rewritten(choice: CollectedChoice, text: String) -> Vec<ChoiceEvent> {
    let (mut refusal, mut calls) = (None, Vec::new());
    for event in choice.into_events() {
        match event {
            ChoiceEvent::Note(AnswerNote::Refusal | AnswerNote::Declined(_)) => {
                refusal = Some(ChoiceEvent::Note(AnswerNote::Refusal));
            }
            ChoiceEvent::ToolCall(_) => calls.push(event),
            _ => {}
        }
    }
    refusal.into_iter().chain([ChoiceEvent::Answer(text)]).chain(calls).collect()
}
