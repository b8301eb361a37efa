//! What one choice has taken, to the token where the backend says it, else reckoned and marked so.

use crate::backend::Usage;
use crate::catalog::Spent;
use crate::units::Tokens;

/// Characters per token where nothing better is known: what English text takes.
const CHARACTERS_PER_TOKEN: f64 = 3.5;

/// The account of a choice: what earlier parts took, and what the running one has shown so far.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) spent: Spent,
    running: Option<Running>,
    /// An upper bound of the prompt, until the backend says what it was.
    prompt: Tokens,
    /// What a resent prompt may have besides prompt and thought.
    overhead: Tokens,
}

#[derive(Debug, Clone, Default)]
struct Running {
    /// True for a part whose prompt was sent before.
    again: bool,
    /// Everything it may write, where its thought is hidden.
    hidden: Option<Tokens>,
    usage: Option<Usage>,
    thinking: Tokens,
    solution: Tokens,
    overhead: Tokens,
    injected: Tokens,
    thought_characters: u64,
    answer_characters: u64,
}

/// How a part came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    /// The backend ended it.
    Ended,
    /// We did, or the connection broke: more may have been written than was seen.
    BrokenOff,
}

impl Account {
    pub(super) fn new(prompt: Tokens, overhead: Tokens) -> Account {
        Account { spent: Spent::default(), running: None, prompt, overhead }
    }

    /// The first part begins. `hidden` is everything it may write, where its thought is hidden.
    pub(super) fn begin(&mut self, hidden: Option<Tokens>) {
        self.running = Some(Running { hidden, ..Running::default() });
    }

    /// The running part has ended, and the next one begins.
    pub(super) fn go_on(&mut self, hidden: Option<Tokens>) {
        self.book(Close::Ended);
        self.running = Some(Running { again: true, hidden, ..Running::default() });
    }

    /// The running part failed: what it wrote is not delivered, and the next one begins.
    pub(super) fn start_over(&mut self, hidden: Option<Tokens>) {
        self.book(Close::Ended);
        let spent = &mut self.spent;
        spent.other += spent.completion().saturating_sub(spent.injected);
        spent.other_thinking += spent.thinking;
        (spent.thinking, spent.overhead, spent.solution) = (Tokens::ZERO, Tokens::ZERO, Tokens::ZERO);
        spent.injected = Tokens::ZERO;
        spent.other_attempts += 1;
        self.running = Some(Running { again: true, hidden, ..Running::default() });
    }

    /// The running part was refused before a model saw it.
    pub(super) fn forget(&mut self) {
        self.running = None;
    }

    pub(super) fn think(&mut self, text: &str, tokens: Tokens) {
        if let Some(part) = &mut self.running {
            part.thinking += tokens;
            part.thought_characters += characters(text);
        }
    }

    pub(super) fn solve(&mut self, text: &str, tokens: Tokens) {
        if let Some(part) = &mut self.running {
            part.solution += tokens;
            part.answer_characters += characters(text);
        }
    }

    /// Tags, hand-off, end of text.
    pub(super) fn overhead(&mut self, tokens: Tokens) {
        if let Some(part) = &mut self.running {
            part.overhead += tokens;
        }
    }

    /// A hand-off that was read as part of the prompt, not written.
    pub(super) fn injected(&mut self, tokens: Tokens) {
        self.overhead(tokens);
        if let Some(part) = &mut self.running {
            part.injected += tokens;
        }
    }

    /// Written, billed, and not delivered.
    pub(super) fn discarded(&mut self, tokens: Tokens) {
        self.spent.other += tokens;
    }

    pub(super) fn usage(&mut self, usage: Usage) {
        if let Some(part) = &mut self.running {
            part.usage = Some(usage);
        }
    }

    /// Thinking tokens of the running part.
    pub(super) fn thinking_now(&self) -> Tokens {
        self.running.as_ref().map_or(Tokens::ZERO, |part| part.thinking)
    }

    /// Solution tokens of the running part.
    pub(super) fn solution_now(&self) -> Tokens {
        self.running.as_ref().map_or(Tokens::ZERO, |part| part.solution)
    }

    /// True where the running part has shown a thought.
    pub(super) fn thought_shows(&self) -> bool {
        self.running.as_ref().is_some_and(|part| part.thought_characters > 0 || part.thinking > Tokens::ZERO)
    }

    /// Books the running part, if there is one.
    pub(super) fn book(&mut self, close: Close) {
        let Some(part) = self.running.take() else { return };
        let prompt = part.usage.map(|usage| usage.prompt);
        self.spent.estimated |= prompt.is_none();
        if part.again {
            let resent = self.prompt + self.spent.thinking + self.overhead;
            self.spent.prompt_again += prompt.unwrap_or(resent);
        } else {
            self.spent.prompt = prompt.unwrap_or(self.prompt);
        }
        let (thinking, solution) = self.split(&part, close);
        self.spent.thinking += thinking;
        self.spent.solution += solution;
        self.spent.overhead += part.overhead;
        self.spent.injected += part.injected;
    }

    /// A part's thinking and solution tokens: its own count where its tokens were seen, else the upstream's
    /// total, shared by the characters that were seen, else those characters alone. A hidden thought that was
    /// broken off is taken for as long as it could be: the upstream bills it, whoever hung up.
    fn split(&mut self, part: &Running, close: Close) -> (Tokens, Tokens) {
        if part.thinking + part.solution > Tokens::ZERO {
            return (part.thinking, part.solution);
        }
        let (thought, answer) = (reckon(part.thought_characters), reckon(part.answer_characters));
        let Some(usage) = part.usage else {
            self.spent.estimated = true;
            return match part.hidden {
                Some(limit) if close == Close::BrokenOff && part.thought_characters == 0 => {
                    (limit.saturating_sub(answer), answer)
                }
                _ => (thought, answer),
            };
        };
        let thinking = usage.thinking.unwrap_or_else(|| {
            self.spent.estimated |= thought > Tokens::ZERO;
            let share = thought.as_f64() / (thought + answer).as_f64().max(1.0);
            Tokens::round(usage.completion.as_f64() * share)
        });
        let counted = usage.completion.saturating_sub(part.overhead.saturating_sub(part.injected));
        (thinking.min(counted), counted.saturating_sub(thinking))
    }
}

fn characters(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

fn reckon(characters: u64) -> Tokens {
    Tokens::round((Tokens(characters).as_f64() / CHARACTERS_PER_TOKEN).ceil())
}
