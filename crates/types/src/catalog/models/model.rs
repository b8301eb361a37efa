//! A model as the operator declared it.

use std::sync::Arc;

use crate::chat::ReasoningEffort;
use crate::units::Tokens;

use super::ability_guess::AbilityGuess;
use super::capability::{Capability, EnforcementClass, Needs, Service};
use super::conversation::ConversationRules;
use super::members::{MemberAction, MemberRules};
use super::tariff::Tariff;

/// What closes an unfinished thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOff {
    /// The sentence and the end-of-thinking tag, as text.
    pub text: String,
    /// How many tokens that is at most, the end-of-text token of the answer included: the overhead that is
    /// reserved beside thinking and solution.
    pub overhead: Tokens,
    /// The same where nothing is thought and so nothing is handed over; for the class `inline`, the others close a thought
    /// that is none as they close any.
    pub overhead_without_thought: Tokens,
}

/// A kind of question that a model was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specialty {
    /// Arithmetic with whole numbers.
    Arithmetic,
}

/// How an answer that was cut off by its limit is continued in another call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GoesOn {
    /// Not at all.
    #[default]
    Never,
    /// By its beginning behind the thought, in the class `continue`.
    Resumed,
    /// By its beginning, where nothing is thought.
    Unthought,
}

/// One word of a model's effort scale.
#[derive(Debug, Clone, PartialEq)]
pub struct EffortLevel {
    /// What the upstream calls it (`reasoning_effort`).
    pub word: String,
    /// How much the model usually thinks at it.
    pub usual: Tokens,
}

/// The words of effort that callers and most upstreams know, the least first.
pub const EFFORT_WORDS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The share of its usual thinking that a model may do at each of those, where the operator says nothing else.
pub const EFFORT_SHARES: [f64; 7] = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 2.0];

/// Where a word stands among those; nothing for another's own word.
pub fn effort_rank(word: &str) -> Option<usize> {
    EFFORT_WORDS.iter().position(|known| *known == word)
}

/// A model that can be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name that callers use.
    pub name: Arc<str>,
    /// What it costs, as it is booked; a model without prices is refused for keys with a money limit.
    pub tariff: Option<Tariff>,
    /// What it is weighed at where nobody wrote a price. It decides, and is never booked. Where there is none either, the
    /// model is left out wherever there is a choice.
    pub reference: Option<Tariff>,
    /// From what its ability is guessed, where nothing tells it.
    pub ability_guess: Option<AbilityGuess>,
    /// What alone it can answer, where it was made for one kind of question.
    pub specialty: Option<Specialty>,
    /// Prompt and everything generated together; [`Model::CONTEXT_UNKNOWN`] where nobody says.
    pub context: Tokens,
    /// What keeps the context below what the model itself could take, where something does: for errors about it.
    pub context_limited_by: Option<&'static str>,
    /// How its thinking can be held, the strongest first; one at least.
    pub classes: Vec<EnforcementClass>,
    /// The least that a thought is given where its provider holds the budget; a smaller budget is no thought.
    pub thinking_min: Tokens,
    /// True if it cannot be kept from thinking.
    pub thinks_always: bool,
    /// The most that it can think; 0 for a model that does not think.
    pub thinking_max: Tokens,
    /// True if its operator states that it does not think: no text that looks like a thought changes that.
    pub never_thinks: bool,
    /// Why it cannot think for the request at hand, though it does else; nothing in a catalogue.
    pub thinking_ruled_out: Option<&'static str>,
    /// How long its thoughts usually are where nothing holds them: their median over everyday requests, where that is
    /// known.
    pub thinking_usual: Option<Tokens>,
    /// The most that an answer may take, where the operator limits it.
    pub solution_max: Option<Tokens>,
    /// The most that its provider lets it write in one call, thought and answer together, where that is less than its
    /// context.
    pub output_max: Option<Tokens>,
    /// The least limit that its provider takes: one below it is raised to it, paid as that, and held here.
    pub output_min: Tokens,
    /// What closes a cut thought; for `effort`, only its overhead counts.
    pub hand_off: HandOff,
    /// What it can be asked for.
    pub services: Vec<Service>,
    /// What it can do beyond text.
    pub capabilities: Vec<Capability>,
    /// The effort scale, lowest first; for the class `effort`.
    pub efforts: Vec<EffortLevel>,
    /// What its backend does with members that the gateway gives no meaning to.
    pub members: MemberRules,
    /// True if tool calls can be read out of an answer that was resumed from a closed thought.
    pub resumes_tools: bool,
    /// How an answer that was cut off by its limit is continued.
    pub goes_on: GoesOn,
    /// True if its server stops, and stops billing, when we hang up.
    pub stops_billing: bool,
    /// What its provider asks of a conversation that goes on, and takes in one.
    pub conversation: ConversationRules,
}

impl Model {
    /// The context of a model of which none is known: more than any has, so that it limits nothing.
    pub const CONTEXT_UNKNOWN: Tokens = Tokens(10_000_001);
    /// The limit that is sent in a call to a model of unknown context where its API requires one and nobody states any: most
    /// models take as much, and many refuse more.
    pub const TOLD_MAX: Tokens = Tokens(32_000);
    /// The longest that a thought and its answer may be expected to become, by what they hardly exceed, to be asked for in one piece:
    /// of more an upstream would be silent for minutes.
    pub const WHOLE_MAX: Tokens = Tokens(4096);

    /// False if its context is not known, so that nothing is to be held against it.
    pub fn knows_context(&self) -> bool {
        self.context != Model::CONTEXT_UNKNOWN
    }

    /// True if it is unknown how much it can write in one call.
    pub fn writes_unknown(&self) -> bool {
        !self.knows_context() && self.output_max.is_none()
    }

    /// The prices by which it is chosen: its own, or else those that it is weighed at.
    pub fn planning_tariff(&self) -> Option<&Tariff> {
        self.tariff.as_ref().or(self.reference.as_ref())
    }

    /// How long its thoughts usually are where nothing holds them, where that is known. Of an effort scale it is the usual
    /// length at "high", which callers mean by all that a model usually thinks, or at the nearest word below it.
    pub fn thought_usual(&self) -> Option<Tokens> {
        self.thinking_usual.or(self.usual_effort().map(|level| level.usual))
    }

    /// How long its thoughts are at a word of its effort scale, in those at "high" or the nearest word below it: 0 where it does not think
    /// at that word. Nothing for a word that is none of the scale's.
    pub fn effort_length(&self, word: &str) -> Option<f64> {
        let level = self.efforts.iter().find(|level| level.word == word)?;
        Some(level.usual.as_f64() / self.usual_effort()?.usual.as_f64())
    }

    /// What callers mean by all that a model usually thinks.
    fn usual_effort(&self) -> Option<&EffortLevel> {
        let high = effort_rank("high");
        let thinking = || self.efforts.iter().filter(|level| level.usual > Tokens::ZERO);
        thinking().rfind(|level| effort_rank(&level.word) <= high).or_else(|| thinking().next())
    }

    /// The place on its effort scale of the most that a stated effort may be sent as: the stated word itself, else the next lower
    /// one of its own, else its least. A number counts as the least standard word that is no less. Nothing for a model without a
    /// scale, and for one with none but its own words, if it lacks the stated one.
    pub fn effort_place(&self, stated: &ReasoningEffort) -> Option<usize> {
        let word = stated.word.as_deref();
        let own = self.efforts.iter().position(|level| word == Some(&level.word));
        let by_share = || EFFORT_SHARES.iter().position(|share| *share >= stated.effort.get());
        let rank = word.and_then(effort_rank).or_else(by_share).unwrap_or(EFFORT_WORDS.len());
        let is_standard = |level: &EffortLevel| effort_rank(&level.word).is_some();
        let is_lower = |level: &EffortLevel| effort_rank(&level.word).is_some_and(|own| own <= rank);
        let least = || self.efforts.iter().any(is_standard).then_some(0);
        own.or_else(|| self.efforts.iter().rposition(is_lower)).or_else(least)
    }

    /// The same model for a request for which it cannot think, and why that is. Nothing is kept for a thought, and nothing handed
    /// over.
    #[must_use]
    pub fn without_thinking(&self, why: &'static str) -> Model {
        let hand_off =
            HandOff { text: String::new(), overhead: Tokens::ZERO, overhead_without_thought: Tokens::ZERO };
        Model { thinking_max: Tokens::ZERO, thinking_ruled_out: Some(why), hand_off, ..self.clone() }
    }

    /// True if the model can do it. One that holds to a schema writes any JSON.
    pub fn has_capability(&self, capability: Capability) -> bool {
        let has = |capability: Capability| self.capabilities.contains(&capability);
        has(capability) || (capability == Capability::Json && has(Capability::Schema))
    }

    /// The strongest way to hold the thinking of a request with such needs. `None` where there is no way.
    pub fn class(&self, needs: &Needs) -> Option<EnforcementClass> {
        let serving = || self.classes.iter().copied().filter(|class| self.supports_class(*class, needs));
        // Where the beginning of an answer may come with the thought, its shape is held best by the other ways.
        let is_clean =
            |class: &EnforcementClass| *class != EnforcementClass::Continue || self.members.resumed.is_some();
        let clean = if needs.shapes_answer { serving().find(is_clean) } else { None };
        clean.or_else(|| serving().next())
    }

    /// The first of the members that its backend does not take, where there is one.
    pub fn first_refused_member<'n>(&self, needs: &'n Needs) -> Option<&'n Arc<str>> {
        needs.members.iter().find(|name| self.members.action_for(name) == MemberAction::Refuse)
    }

    /// The first of the members that no way of holding its thinking goes with, though its backend takes it.
    pub fn first_unresumable_member<'n>(&self, needs: &'n Needs) -> Option<&'n Arc<str>> {
        let resumes_only = self.classes == [EnforcementClass::Continue] && self.members.resumed.is_some();
        needs.members.iter().find(|name| resumes_only && !self.members.allows_resume(name))
    }

    /// True if its backend is sent all of the members.
    pub fn accepts_all_members(&self, needs: &Needs) -> bool {
        needs.members.iter().all(|name| self.members.action_for(name) == MemberAction::Pass)
    }

    /// How an answer is asked for after a thought that was stopped from outside, where that can be.
    pub fn resume_class(&self, class: EnforcementClass, needs: &Needs) -> Option<EnforcementClass> {
        let resumes = |other: &EnforcementClass| other.is_resumed() && self.supports_class(*other, needs);
        match class {
            EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Turn => Some(class),
            EnforcementClass::Native => self.classes.iter().copied().find(resumes),
            EnforcementClass::Effort => None,
        }
    }

    /// A thought is only resumed where the tool calls that may follow it can be read, and where the endpoint for that takes
    /// what is wanted of the answer.
    fn supports_class(&self, class: EnforcementClass, needs: &Needs) -> bool {
        if class != EnforcementClass::Continue {
            return true;
        }
        let calls = needs.capabilities.contains(&Capability::Tools);
        let reads_calls = self.resumes_tools && !needs.forces_tools;
        let is_raw = self.members.resumed.is_some();
        let takes = needs.members.iter().all(|name| !is_raw || self.members.allows_resume(name));
        let tells = !is_raw || !needs.capabilities.contains(&Capability::Logprobs);
        (!calls || reads_calls) && takes && tells
    }
}
