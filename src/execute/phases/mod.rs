//! The phase machine: pieces in, steps out. It reads no clock and does no I/O.
//!
//! `Waiting → Thinking(t) → [closed | stopped | cut → hand-off] → Solution(s) → Done`
//!
//! Three ways a thought ends are three cases; t and s are separate, and what is left of t is returned, not
//! spent (Elastic Reasoning, arXiv 2505.05315, and design: elastic execution).

use std::collections::BTreeMap;

mod drain;
mod endings;
mod further;
mod hold;
mod repeat;
mod surface;
mod unthought;

use serde_json::Value;

use crate::backend::{Edge, Part, Piece, Thought, Usage, Writing};
use crate::catalog::{Class, Ended, Further, LimitedBy, Spent};
use crate::chat::{Event, Finish, Form, Keep};
use crate::units::Tokens;

use super::account::{Account, Close, Lean};
use super::answer::Answer;
use super::brake::tolerated;
use super::leak::Leaks;
use super::logprobs::Logprobs;
use further::Rest;
use hold::Hold;
use repeat::Repeat;

/// What one choice may take and how it is held.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// How the budgets are held.
    pub class: Class,
    /// How an answer is asked for after a thought that was stopped from outside, where that can be.
    pub resume: Option<Class>,
    /// The thinking budget t.
    pub thinking: Tokens,
    /// The most that the answer may take.
    pub solution: Tokens,
    /// True where the answer may take besides what its thought leaves: both stand under one limit.
    pub answer_takes_rest: bool,
    /// Who says so.
    pub solution_by: LimitedBy,
    /// Whether an upstream that needs no limit is told one.
    pub tells_limit: bool,
    /// What is set aside for tags, hand-off and end of text.
    pub overhead: Tokens,
    /// The effort word to send, for the class `effort`.
    pub effort: Option<String>,
    /// Where a thought is cut that shows, though its upstream was taken to hide it; nothing where nobody stated a limit. For
    /// the class `effort`.
    pub visible_max: Option<Tokens>,
    /// How far the answer may go in further calls, where money alone limits the first one.
    pub further: Option<Further>,
    /// True where an answer that came out empty may be tried again.
    pub rescue: bool,
    /// The word for the least effort, for that second try.
    pub effort_least: Option<String>,
    /// An upper bound of the prompt's tokens, until the backend says how many they are.
    pub prompt: Tokens,
    /// True where reading costs nothing, so that a thought may be read again whatever its length.
    pub reads_free: bool,
    /// The longest that its caller wants any of the prompt kept in the provider's cache.
    pub keep: Keep,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// What is wanted: a text that goes on keeps the blank that it goes on with.
    pub form: Form,
}

/// What to do after a piece.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing is to be shown.
    Quiet,
    /// The caller sees this; more pieces follow.
    Show(Event),
    /// The caller sees this, if anything, and nothing more; what still comes goes to [`Phases::drain`].
    Drain(Option<Event>),
    /// This part is over: drop it and call for the next one.
    Call(Part),
    /// The caller sees this, if anything; this part is over, and the next one goes on with the answer.
    GoOn(Option<Event>, Part),
    /// The choice is over; the text that was held back, if any, is shown first.
    Finish(Option<Event>, Finish),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was called for.
    Waiting,
    /// The thought runs.
    Thinking,
    /// The thought is closed, the answer has not begun.
    Closed,
    /// The answer runs.
    Solution,
    /// The answer is over for the caller; the upstream is heard out.
    Draining,
    /// The choice is over.
    Done,
}

/// One choice's way from the prompt to the end of its answer, and the account of what it took.
#[derive(Debug, Clone)]
pub struct Phases {
    terms: Terms,
    /// How the running part holds its budgets.
    class: Class,
    state: State,
    account: Account,
    thought: Thought,
    answer: Answer,
    /// The answer so far, where a limit may break it off that another call can lift.
    said: String,
    rest: Rest,
    leaks: Leaks,
    logprobs: Logprobs,
    /// True while the running part was asked for a thought, so that its limit is the thought's.
    thinks: bool,
    tool_calls: bool,
    /// The arguments of each call so far.
    arguments: BTreeMap<u32, String>,
    /// Something of the answer came, if only blank.
    spoke: bool,
    rescued: bool,
    overran: bool,
    hold: Hold,
    /// True once a thought has shown that was to be hidden.
    surfaced: bool,
    /// True where a tag of thinking came that was not counted: thoughts come mixed into the answer.
    tagged: bool,
    /// The answer is gone on with, and may be begun again instead.
    repeat: Option<Repeat>,
    /// The stop text that ended the answer, where the upstream says so.
    stopped_by: Option<Box<str>>,
}

impl Phases {
    /// A choice that has not begun.
    pub fn new(terms: Terms) -> Phases {
        Phases {
            class: terms.class,
            state: State::Waiting,
            account: Account::new(terms.prompt, terms.overhead, terms.keep),
            thought: Thought::default(),
            answer: Answer::new(&terms.stop, terms.form),
            said: String::new(),
            rest: Rest::default(),
            leaks: Leaks::default(),
            logprobs: Logprobs::default(),
            thinks: false,
            tool_calls: false,
            arguments: BTreeMap::new(),
            spoke: false,
            rescued: false,
            overran: false,
            hold: Hold::default(),
            surfaced: false,
            tagged: false,
            repeat: None,
            stopped_by: None,
            terms,
        }
    }

    /// A second try at a choice whose first came out empty; there is no third.
    pub fn again(terms: Terms) -> Phases {
        Phases { rescued: true, ..Phases::new(terms) }
    }

    /// The first part to call for.
    pub fn begin(&mut self) -> Part {
        let Terms { thinking, solution, .. } = self.terms;
        let whole = thinking + solution + self.terms.overhead;
        self.account.begin(self.hidden(whole));
        let thinks = thinking > Tokens::ZERO || self.class == Class::Effort;
        self.state = if thinks { State::Thinking } else { State::Solution };
        self.thinks = thinks;
        let part = match self.class {
            Class::Inline | Class::Native => Part::Whole { thinking, solution },
            Class::Continue | Class::Turn if thinks => Part::Thought { thinking, solution },
            Class::Continue | Class::Turn => Part::resumed(Thought::default(), solution),
            Class::Effort => Part::Total { effort: self.terms.effort.clone(), tokens: whole },
        };
        self.call_for(part)
    }

    /// All that the first call may write unseen, where its thought may be hidden: whoever hangs up meanwhile, the
    /// upstream bills it.
    fn hidden(&self, whole: Tokens) -> Option<Tokens> {
        let Terms { class, thinking, rescue, .. } = self.terms;
        match class {
            Class::Effort => (rescue && !self.hold.conduct.shows_thoughts).then_some(whole),
            Class::Native => {
                let beyond = Class::native_most(thinking).saturating_sub(thinking);
                (thinking > Tokens::ZERO).then_some(whole + beyond)
            }
            Class::Inline | Class::Continue | Class::Turn => None,
        }
    }

    /// How the part that was called for last holds its budgets.
    pub fn class(&self) -> Class {
        self.class
    }

    /// True where an upstream that needs no limit is told one all the same.
    pub fn tells_limit(&self) -> bool {
        self.terms.tells_limit
    }

    /// True where the part that was called for last may think unseen.
    pub fn is_hidden(&self) -> bool {
        self.account.is_hidden()
    }

    /// The part that was called for was refused before a model saw it: it took nothing.
    pub fn refused(&mut self) {
        self.account.forget();
    }

    /// The chances of the tokens that this text is made of, where they are told.
    pub fn logprobs_of(&mut self, shown: &str) -> Vec<Value> {
        self.logprobs.of(shown)
    }

    /// Takes the next piece of the running part.
    pub fn on(&mut self, piece: Piece) -> Step {
        if self.watch(&piece) {
            return self.brake(piece);
        }
        match piece {
            Piece::Thought { text, tokens, ids } => return self.think(text, tokens, &ids),
            Piece::Answer { text, tokens } => return self.solve(&text, tokens),
            Piece::End(ending) => return self.end(ending),
            Piece::Usage(usage) => return self.count(usage),
            Piece::Tag { tokens, edge } => {
                self.account.overhead(tokens);
                self.tagged |= tokens == Tokens::ZERO;
                if edge == Edge::Start {
                    self.repeat.iter_mut().for_each(Repeat::doubt);
                }
                if edge == Edge::End {
                    self.close(Ended::Closed);
                }
            }
            Piece::HandOff { tokens } => {
                match self.class {
                    Class::Continue | Class::Turn => self.account.injected(tokens),
                    Class::Inline | Class::Native | Class::Effort => self.account.overhead(tokens),
                }
                self.close(self.handed_off());
                self.state = State::Solution;
            }
            Piece::Summary(text) if text.is_empty() => {}
            Piece::Summary(text) => return Step::Show(Event::Thought(text)),
            Piece::Signed(signed) => return Step::Show(Event::Signed(signed)),
            Piece::StoppedBy(text) => self.stopped_by = Some(text),
            Piece::Unthought => return self.unthink(),
            Piece::Logprobs(entries) => self.logprobs.push(entries),
            Piece::ToolCall(delta) => {
                self.answer_begins();
                self.account.solve(&delta.arguments, Tokens::ZERO);
                self.tool_calls = true;
                self.arguments.entry(delta.index).or_default().push_str(&delta.arguments);
                if self.is_answer_beyond() {
                    return self.hang_up(String::new());
                }
                return Step::Show(Event::ToolCall(delta));
            }
        }
        Step::Quiet
    }

    /// True while the thought runs.
    pub fn is_thinking(&self) -> bool {
        self.state == State::Thinking
    }

    /// How many tokens the backend said that the prompt has, where it did and no second try had another one.
    pub fn prompt_told(&self) -> Option<Tokens> {
        self.account.prompt_told().filter(|_| !self.rescued)
    }

    /// The same, and the most that it was taken to have.
    pub fn prompt_read(&self) -> (Option<Tokens>, Tokens) {
        (self.prompt_told(), self.terms.prompt)
    }

    /// True once an empty answer was tried again.
    pub fn was_rescued(&self) -> bool {
        self.rescued
    }

    /// What the choice has taken so far, the running part included; ask at any moment.
    pub fn spent(&self) -> Spent {
        self.spent_within(None)
    }

    /// The same, where the running part can have written so much unseen and no more.
    pub fn spent_within(&self, unseen_max: Option<Tokens>) -> Spent {
        let mut account = self.account.clone();
        account.unseen_at_most(unseen_max);
        account.book(Close::BrokenOff);
        Spent { leaks: self.leaks.count(), overran: self.overran, ..account.spent }
    }

    /// The running part is about to be broken off, and can have written so much unseen and no more.
    pub fn unseen_at_most(&mut self, most: Tokens) {
        self.account.unseen_at_most(Some(most));
    }

    /// Its target writes like that, as far as it is known.
    pub fn writes(&mut self, writing: Writing) {
        self.account.writes(writing);
    }

    /// Everything written until now, shown or not.
    pub fn written(&self) -> Tokens {
        self.account.written()
    }

    /// How many tokens a piece is, reckoned where it is not said.
    pub fn size(&self, piece: &Piece) -> Tokens {
        match piece {
            Piece::Thought { text, tokens, .. } | Piece::Answer { text, tokens } => match *tokens {
                Tokens::ZERO => self.account.size(text),
                told => told,
            },
            Piece::ToolCall(delta) => self.account.size(&delta.arguments),
            Piece::Tag { tokens, .. } => *tokens,
            Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::StoppedBy(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Usage(_)
            | Piece::End(_) => Tokens::ZERO,
        }
    }

    fn think(&mut self, text: String, tokens: Tokens, ids: &[u32]) -> Step {
        if self.class.is_resumed() && self.state == State::Solution {
            // A thought that begins again inside the answer eats the answer's budget and is not shown.
            return self.solve("", tokens);
        }
        self.surface();
        if self.is_beyond(&text, tokens) {
            // The backend does not hold its limit: we do, where we can.
            self.overran |= self.class == Class::Native;
            if self.resume_class().is_some() {
                self.account.discarded(&text, tokens);
                return Step::Call(self.resume(Ended::Cut, Close::BrokenOff));
            }
        }
        if self.class == Class::Continue && self.hold.brake.thought() > self.thinking_max() {
            // Within the tolerance, and beyond the budget all the same.
            self.account.discarded(&text, tokens);
            return Step::Quiet;
        }
        self.account.think(&text, tokens);
        self.thought.ids.extend_from_slice(ids);
        self.thought.text.push_str(&text);
        if text.is_empty() { Step::Quiet } else { Step::Show(Event::Thought(text)) }
    }

    /// Whether a thought with one more piece goes beyond what its class allows, by the best count there is. A limit that the
    /// backend holds itself is only doubted where it counts each token.
    fn is_beyond(&self, text: &str, tokens: Tokens) -> bool {
        let t = self.thinking_max();
        match self.class {
            Class::Continue if tokens > Tokens::ZERO => self.account.thinking_now() + tokens > t,
            Class::Continue => self.hold.brake.thought() > tolerated(t),
            Class::Turn => self.account.thinking_with(text, tokens, Lean::Early) > t,
            Class::Native => self.account.thinking_with(text, tokens, Lean::Late) > Class::native_most(t),
            Class::Inline | Class::Effort => false,
        }
    }

    /// Takes the upstream's own count, which may say in the middle that the thought has gone too far.
    fn count(&mut self, usage: Usage) -> Step {
        self.account.usage(self.believed(usage));
        let cuts = matches!(self.class, Class::Turn | Class::Native) && self.is_beyond("", Tokens::ZERO);
        self.overran |= cuts && self.class == Class::Native;
        if cuts
            && self.state == State::Thinking
            && self.resume_class().is_some()
            && self.account.thought_shows()
        {
            return Step::Call(self.resume(Ended::Cut, Close::BrokenOff));
        }
        Step::Quiet
    }

    fn solve(&mut self, text: &str, tokens: Tokens) -> Step {
        self.answer_begins();
        let held = self.class == Class::Effort || self.account.solution_now() + tokens <= self.terms.solution;
        if !held {
            self.account.discarded(text, tokens);
            return self.finish(self.terms.solution_by.into(), Finish::Length);
        }
        let text = self.unblanked(text);
        let text = self.news(text);
        self.account.solve(&text, tokens);
        self.say(&text)
    }

    /// Shows what passes of some text of the answer.
    fn say(&mut self, text: &str) -> Step {
        let text = self.pass(text);
        self.spoke |= !text.is_empty();
        self.look_at(&text);
        let shown = self.answer_shows(&text);
        if self.is_answer_beyond() {
            return self.hang_up(shown);
        }
        if self.answer.stopped_by().is_some() {
            self.stop(shown)
        } else if shown.is_empty() {
            Step::Quiet
        } else {
            Step::Show(Event::Answer(shown))
        }
    }

    /// Where the thought was cut, it may go on in the answer; where a limit is the thought's, it may break off the
    /// answer that followed.
    fn look_at(&mut self, text: &str) {
        if self.account.spent.thinking_ended == Ended::Cut {
            self.leaks.push(text);
        }
        if self.class == Class::Continue || self.terms.further.is_some() {
            self.said.push_str(text);
        }
    }

    fn answer_begins(&mut self) {
        if self.account.thought_shows() {
            self.close(Ended::Closed);
        } else if self.state == State::Thinking {
            self.leave_rest(false);
        }
        self.state = State::Solution;
    }
}

/// Text that the caller sees, if there is any.
fn shown(text: String) -> Option<Event> {
    (!text.is_empty()).then_some(Event::Answer(text))
}

#[cfg(test)]
mod lying_tests;
#[cfg(test)]
mod tests;
