//! The budgets of one generation as a state machine: which token may come, what it counts as, when it ends.
//!
//! The sampler kernel holds the same machine, one copy per sequence, and decides on the device.
//! This one is its specification and its check: the worker replays every token through it, and
//! tests drive both with the same tokens.

use super::spelled_tags::{TagSearch, ThoughtStart};
use super::{GeneratedToken, GenerationSummary, PhaseBudgets, SolutionEnd, ThinkingEnd, TokenRole};

/// Where a generation stands. The numbers are those of the sampler kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenerationPhase {
    Idle = 0,
    Thinking = 1,
    HandOff = 2,
    Solution = 3,
    Done = 4,
}

/// The state of one generation.
#[derive(Debug, Clone)]
pub(crate) struct PhaseMachine {
    phases: PhaseBudgets,
    eos: Vec<u32>,
    phase: GenerationPhase,
    thinking_tokens: u32,
    hand_off_tokens: usize,
    solution_tokens: u32,
    /// White space of which it is not known yet what it counts as.
    blank_tokens: u32,
    overhead_tokens: u32,
    /// White space that came before a thought: the solution has so much less room.
    solution_used: u32,
    /// Finds tags that are no tokens.
    search: TagSearch,
    /// The last token completed such a tag.
    has_spelled_tag: bool,
    thinking_end: ThinkingEnd,
    solution_end: SolutionEnd,
}

impl PhaseMachine {
    pub(crate) fn new(phases: PhaseBudgets, eos: Vec<u32>) -> Self {
        let phase = match &phases.thinking {
            None => GenerationPhase::Solution,
            Some(thinking) if thinking.open => GenerationPhase::Thinking,
            Some(_) => GenerationPhase::Idle,
        };
        let mut machine = Self {
            phases,
            eos,
            phase,
            thinking_tokens: 0,
            hand_off_tokens: 0,
            solution_tokens: 0,
            blank_tokens: 0,
            overhead_tokens: 0,
            solution_used: 0,
            search: TagSearch::default(),
            has_spelled_tag: false,
            thinking_end: ThinkingEnd::None,
            solution_end: SolutionEnd::Stop,
        };
        machine.advance();
        machine
    }

    pub(crate) fn phase(&self) -> GenerationPhase {
        self.phase
    }

    pub(crate) fn phases(&self) -> &PhaseBudgets {
        &self.phases
    }

    pub(crate) fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Whether its tags are no tokens.
    pub(crate) fn spells_tags(&self) -> bool {
        self.phases.thinking.as_ref().is_some_and(|thinking| thinking.spelled.is_some())
    }

    /// Whether the last token completed a tag that is no token. The device cannot know.
    pub(crate) fn has_spelled_tag(&self) -> bool {
        self.has_spelled_tag
    }

    /// Tokens of thought and of hand-off so far, and those that take the solution's room.
    pub(crate) fn counts(&self) -> [u32; 3] {
        let handed_off = u32::try_from(self.hand_off_tokens).unwrap_or(u32::MAX);
        [self.thinking_tokens, handed_off, self.solution_room_used()]
    }

    /// All tokens so far.
    pub(crate) fn token_count(&self) -> u32 {
        self.thinking_tokens + self.solution_tokens + self.blank_tokens + self.overhead_tokens
    }

    fn solution_room_used(&self) -> u32 {
        self.solution_tokens + self.blank_tokens + self.solution_used
    }

    /// The next token that is forced, where one is.
    pub(crate) fn force(&mut self) -> Option<GeneratedToken> {
        // What is sampled counts for nothing here.
        if self.phase == GenerationPhase::HandOff { self.accept(0) } else { None }
    }

    /// What is known once it has ended.
    pub(crate) fn done(&self) -> Option<GenerationSummary> {
        (self.phase == GenerationPhase::Done).then_some(GenerationSummary {
            thinking: self.thinking_end,
            solution: self.solution_end,
            thought_tokens: self.thinking_tokens,
            solution_tokens: self.solution_tokens,
            overhead_tokens: self.overhead_tokens,
        })
    }

    /// Tokens that must not be sampled now: tags have no place in an answer.
    pub(crate) fn banned(&self) -> [Option<u32>; 2] {
        match (self.phase, &self.phases.thinking) {
            (GenerationPhase::Idle, Some(thinking)) => [None, Some(thinking.end)],
            (GenerationPhase::Solution, Some(thinking)) => [thinking.start, Some(thinking.end)],
            _ => [None, None],
        }
    }

    /// Accepts the sampled token, or the forced one in its place. `None` once it has ended.
    pub(crate) fn accept(&mut self, sampled: u32) -> Option<GeneratedToken> {
        if self.phase == GenerationPhase::Thinking && self.ends_text(sampled) {
            self.phase = GenerationPhase::HandOff;
            self.thinking_end = ThinkingEnd::Stopped;
        }
        let (id, role) = match self.phase {
            GenerationPhase::Idle => self.idle(sampled),
            GenerationPhase::Thinking => self.thinking(sampled),
            GenerationPhase::HandOff => self.hand_off(sampled),
            GenerationPhase::Solution => self.solution(sampled),
            GenerationPhase::Done => return None,
        };
        if matches!(role, TokenRole::Tag | TokenRole::HandOff | TokenRole::End) {
            self.overhead_tokens += 1;
        }
        self.has_spelled_tag = self.spells_tags() && role == TokenRole::Tag;
        self.advance();
        Some(GeneratedToken { id, role })
    }

    fn idle(&mut self, id: u32) -> (u32, TokenRole) {
        match self.thought_start(id) {
            ThoughtStart::Complete => {
                self.phase = GenerationPhase::Thinking;
                self.solution_used = std::mem::take(&mut self.blank_tokens);
                self.overhead_tokens += self.solution_used;
                (id, TokenRole::Tag)
            }
            ThoughtStart::Possible => {
                self.blank_tokens += 1;
                (id, TokenRole::Blank)
            }
            ThoughtStart::Absent => {
                self.solution_tokens += std::mem::take(&mut self.blank_tokens);
                self.phase = GenerationPhase::Solution;
                self.solution(id)
            }
        }
    }

    /// What a token makes of a text in which there was no thought yet and no answer.
    fn thought_start(&mut self, id: u32) -> ThoughtStart {
        let Some(thinking) = &self.phases.thinking else { return ThoughtStart::Absent };
        match &thinking.spelled {
            Some(_) if self.eos.contains(&id) => ThoughtStart::Absent,
            Some(tags) => self.search.begin(tags, id),
            None if thinking.start == Some(id) => ThoughtStart::Complete,
            None if thinking.blanks.binary_search(&id).is_ok() => ThoughtStart::Possible,
            None => ThoughtStart::Absent,
        }
    }

    /// Whether a token closes the thought.
    fn closes_thought(&mut self, id: u32) -> bool {
        let Some(thinking) = &self.phases.thinking else { return false };
        match &thinking.spelled {
            Some(tags) => !self.eos.contains(&id) && self.search.close(tags, id),
            None => thinking.end == id,
        }
    }

    /// True for a token that would end the text inside the thought, where a hand-off can go in its place.
    fn ends_text(&self, id: u32) -> bool {
        let thinking = self.phases.thinking.as_ref();
        self.eos.contains(&id)
            && thinking.is_some_and(|thinking| thinking.end != id && !thinking.hand_off.is_empty())
    }

    fn thinking(&mut self, id: u32) -> (u32, TokenRole) {
        if self.closes_thought(id) {
            self.phase = GenerationPhase::Solution;
            self.thinking_end = ThinkingEnd::Closed;
            return (id, TokenRole::Tag);
        }
        if self.eos.contains(&id) {
            self.thinking_end = ThinkingEnd::Stopped;
            return self.end(id);
        }
        self.thinking_tokens += 1;
        (id, TokenRole::Thought)
    }

    fn hand_off(&mut self, sampled: u32) -> (u32, TokenRole) {
        let queue = self.phases.thinking.as_ref().map_or(&[][..], |thinking| &thinking.hand_off);
        let id = queue.get(self.hand_off_tokens).copied().unwrap_or(sampled);
        self.hand_off_tokens += 1;
        (id, TokenRole::HandOff)
    }

    fn solution(&mut self, id: u32) -> (u32, TokenRole) {
        if self.eos.contains(&id) {
            return self.end(id);
        }
        self.solution_tokens += 1;
        (id, TokenRole::Solution)
    }

    fn end(&mut self, id: u32) -> (u32, TokenRole) {
        self.phase = GenerationPhase::Done;
        self.solution_end = SolutionEnd::Stop;
        (id, TokenRole::End)
    }

    /// Leaves every phase that has nothing left to do, so that the phase always says what comes next.
    fn advance(&mut self) {
        if let Some(thinking) = &self.phases.thinking {
            if self.phase == GenerationPhase::Thinking && self.thinking_tokens >= thinking.budget {
                self.phase = GenerationPhase::HandOff;
                self.thinking_end = ThinkingEnd::Cut;
            }
            if self.phase == GenerationPhase::HandOff && self.hand_off_tokens >= thinking.hand_off.len() {
                self.phase = GenerationPhase::Solution;
            }
        }
        if self.phase == GenerationPhase::Idle && self.blank_tokens >= self.phases.solution {
            // A thought would have no room for its answer.
            self.solution_tokens += std::mem::take(&mut self.blank_tokens);
            self.phase = GenerationPhase::Solution;
        }
        if self.phase == GenerationPhase::Solution
            && self.solution_room_used() >= self.phases.solution_after(self.thinking_tokens)
        {
            self.phase = GenerationPhase::Done;
            self.solution_end = SolutionEnd::Length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SpelledTags, ThinkingPhase};
    use super::*;

    const START: u32 = 1;
    const END: u32 = 2;
    const EOS: u32 = 3;
    const BLANK: u32 = 10;

    fn phases(budget: u32, solution: u32, open: bool) -> PhaseBudgets {
        let hand_off = vec![7, END];
        let blanks = [BLANK, BLANK + 1].into();
        let thinking =
            ThinkingPhase { budget, hand_off, start: Some(START), end: END, open, blanks, spelled: None };
        PhaseBudgets { thinking: Some(thinking), solution, solution_max: solution }
    }

    /// The same of a model whose tags are pieces of text: 1 is `<th`, 2 `ink>`, 3 ends the text, 4 is `a </th`, 5 a letter, 6 a
    /// blank, 7 the hand-off.
    fn spelled(budget: u32, solution: u32, open: bool) -> PhaseBudgets {
        let texts = ["", "<th", "ink>", "", "a </th", "a", "\n", "</think>"];
        let texts = texts.iter().map(|text| text.as_bytes().into()).collect();
        let tags = SpelledTags { start: "<think>".into(), end: "</think>".into(), texts };
        let mut phases = phases(budget, solution, open);
        phases.thinking = phases.thinking.map(|thinking| ThinkingPhase {
            start: None,
            end: u32::MAX,
            hand_off: vec![7],
            spelled: Some(tags),
            ..thinking
        });
        phases
    }

    /// Feeds the samples and writes each token as `id` and the first letter of its role.
    fn check(
        phases: PhaseBudgets,
        samples: &[u32],
        text: &str,
        thinking: ThinkingEnd,
        solution: SolutionEnd,
    ) {
        let longest = phases.tokens_max();
        let mut machine = PhaseMachine::new(phases, vec![EOS]);
        let mut seen = Vec::new();
        let mut samples = samples.iter();
        while machine.done().is_none() {
            let forced = machine.phase() == GenerationPhase::HandOff;
            let sample = if forced { 99 } else { *samples.next().expect("more samples wanted") };
            let step = machine.accept(sample).unwrap();
            seen.push(format!("{}{}", step.id, &format!("{:?}", step.role)[..1]));
        }
        let done = machine.done().unwrap();
        assert_eq!(seen.join(" "), text);
        assert_eq!((done.thinking, done.solution), (thinking, solution));
        let counted = done.thought_tokens + done.solution_tokens + done.overhead_tokens;
        assert_eq!(counted as usize, seen.len());
        assert!(seen.len() as u64 <= longest.max(1));
    }

    #[test]
    fn a_thought_closed_before_its_budget_is_closed() {
        check(
            phases(3, 5, true),
            &[5, 6, END, 8, EOS],
            "5T 6T 2T 8S 3E",
            ThinkingEnd::Closed,
            SolutionEnd::Stop,
        );
    }

    #[test]
    fn a_thought_of_exactly_its_budget_is_cut() {
        check(phases(2, 5, true), &[5, 6, 8, EOS], "5T 6T 7H 2H 8S 3E", ThinkingEnd::Cut, SolutionEnd::Stop);
    }

    #[test]
    fn a_budget_of_nothing_is_cut_before_anything_is_sampled() {
        check(phases(0, 1, true), &[8], "7H 2H 8S", ThinkingEnd::Cut, SolutionEnd::Length);
        check(phases(0, 0, true), &[], "7H 2H", ThinkingEnd::Cut, SolutionEnd::Length);
    }

    #[test]
    fn tags_that_are_no_tokens_are_read_from_the_text() {
        let (closed, cut, none) = (ThinkingEnd::Closed, ThinkingEnd::Cut, ThinkingEnd::None);
        let (stop, length) = (SolutionEnd::Stop, SolutionEnd::Length);
        // The last token of a tag is the tag; what came of it before counts as what it could have been.
        check(spelled(5, 5, true), &[5, 4, 2, 5, EOS], "5T 4T 2T 5S 3E", closed, stop);
        check(spelled(5, 5, false), &[6, 1, 2, 5, 4, 2, 5, EOS], "6B 1B 2T 5T 4T 2T 5S 3E", closed, stop);
        check(spelled(2, 2, true), &[5, 5, 5, 5], "5T 5T 7H 5S 5S", cut, length);
        check(spelled(2, 5, true), &[5, EOS, 5, EOS], "5T 7H 5S 3E", ThinkingEnd::Stopped, stop);
        check(spelled(5, 5, false), &[1, 5, EOS], "1B 5S 3E", none, stop);
        check(spelled(5, 5, false), &[5, 4, 2, EOS], "5S 4S 2S 3E", none, stop);
        check(spelled(5, 5, false), &[6, EOS], "6B 3E", none, stop);
    }

    #[test]
    fn a_text_that_ends_inside_the_thought_is_stopped_and_answered_all_the_same() {
        let answered = "5T 7H 2H 8S 3E";
        check(phases(4, 5, true), &[5, EOS, 8, EOS], answered, ThinkingEnd::Stopped, SolutionEnd::Stop);
        let mut bare = phases(4, 5, true);
        bare.thinking.as_mut().unwrap().hand_off.clear();
        check(bare, &[5, EOS], "5T 3E", ThinkingEnd::Stopped, SolutionEnd::Stop);
    }

    #[test]
    fn a_model_may_open_its_thought_itself_or_not_at_all() {
        check(
            phases(1, 5, false),
            &[START, 5, 8, EOS],
            "1T 5T 7H 2H 8S 3E",
            ThinkingEnd::Cut,
            SolutionEnd::Stop,
        );
        check(phases(0, 1, false), &[START, 8], "1T 7H 2H 8S", ThinkingEnd::Cut, SolutionEnd::Length);
        check(phases(1, 2, false), &[8, 9], "8S 9S", ThinkingEnd::None, SolutionEnd::Length);
        check(phases(1, 2, false), &[EOS], "3E", ThinkingEnd::None, SolutionEnd::Stop);
    }

    #[test]
    fn without_thinking_every_token_is_solution() {
        let plain = PhaseBudgets::without_thinking(2);
        check(plain.clone(), &[END, 9], "2S 9S", ThinkingEnd::None, SolutionEnd::Length);
        check(plain, &[EOS], "3E", ThinkingEnd::None, SolutionEnd::Stop);
        check(PhaseBudgets::without_thinking(0), &[], "", ThinkingEnd::None, SolutionEnd::Length);
    }

    #[test]
    fn what_a_thought_leaves_of_its_budget_goes_to_the_answer_where_it_may() {
        let shared = |most| PhaseBudgets { solution_max: most, ..phases(3, 1, true) };
        let (closed, length) = (ThinkingEnd::Closed, SolutionEnd::Length);
        check(shared(9), &[5, END, 8, 8, 8], "5T 2T 8S 8S 8S", closed, length);
        check(shared(2), &[5, END, 8, 8], "5T 2T 8S 8S", closed, length);
        check(shared(9), &[5, 5, 5, 8], "5T 5T 5T 7H 2H 8S", ThinkingEnd::Cut, length);
        let unopened = PhaseBudgets { solution_max: 9, ..phases(1, 2, false) };
        check(unopened, &[8, 9, 8], "8S 9S 8S", ThinkingEnd::None, length);
    }

    #[test]
    fn white_space_before_a_thought_does_not_keep_it_from_being_opened() {
        let (cut, closed) = (ThinkingEnd::Cut, ThinkingEnd::Closed);
        let thought = "10B 11B 1T 5T 2T 8S 3E";
        check(
            phases(3, 5, false),
            &[BLANK, BLANK + 1, START, 5, END, 8, EOS],
            thought,
            closed,
            SolutionEnd::Stop,
        );
        // It has its room in the answer's budget, so that no more comes than was allowed.
        check(phases(1, 2, false), &[BLANK, START, 5, 8], "10B 1T 5T 7H 2H 8S", cut, SolutionEnd::Length);
        check(phases(3, 2, false), &[BLANK, BLANK], "10B 10B", ThinkingEnd::None, SolutionEnd::Length);
        let answer = "10B 8S 10S 3E";
        check(phases(3, 5, false), &[BLANK, 8, BLANK, EOS], answer, ThinkingEnd::None, SolutionEnd::Stop);
    }

    #[test]
    fn tags_are_banned_from_the_answer() {
        let mut machine = PhaseMachine::new(phases(1, 5, false), vec![EOS]);
        assert_eq!(machine.banned(), [None, Some(END)]);
        machine.accept(START);
        assert_eq!(machine.banned(), [None, None]);
        machine.accept(END);
        assert_eq!(machine.banned(), [Some(START), Some(END)]);
    }

    proptest::proptest! {
        #[test]
        fn no_phase_outgrows_its_budget_and_none_lasts_forever(
            budget in 0u32..6, solution in 0u32..6, more in 0u32..6, open: bool, thinks: bool,
            hand_off in proptest::collection::vec(5u32..9, 0..4),
            blanks in proptest::sample::subsequence(vec![0u32, 4, 6], 0..3),
            samples in proptest::collection::vec(0u32..8, 32),
        ) {
            let (blanks, start, spelled) = (blanks.into(), Some(START), None);
            let thinking =
                ThinkingPhase { budget, hand_off: hand_off.clone(), start, end: END, open, blanks, spelled };
            // The engine refuses the one combination that could not keep its word.
            let solution = solution.max(u32::from(thinks && !open));
            let phases =
                PhaseBudgets { thinking: thinks.then_some(thinking), solution, solution_max: solution + more };
            let most = phases.tokens_max();
            let after = phases.clone();
            let mut machine = PhaseMachine::new(phases, vec![EOS]);
            let steps: Vec<_> = samples.iter().map_while(|sample| machine.accept(*sample)).collect();
            let done = machine.done().expect("32 samples end any of these");
            let ids = |role| steps.iter().filter(|s| s.role == role).map(|s| s.id).collect::<Vec<_>>();
            let solution = after.solution_after(done.thought_tokens);
            assert!(done.thought_tokens <= budget && done.solution_tokens <= solution);
            assert!(steps.len() as u64 <= most.max(1));
            assert_eq!(ids(TokenRole::Thought).len(), done.thought_tokens as usize);
            let blank = ids(TokenRole::Blank).len();
            let opened = blank > 0 && steps.iter().any(|s| s.role == TokenRole::Tag && s.id == START);
            let solved = ids(TokenRole::Solution).len() + if opened { 0 } else { blank };
            assert_eq!(solved, done.solution_tokens as usize);
            let cut = done.thinking == ThinkingEnd::Cut;
            let handed = cut || done.thinking == ThinkingEnd::Stopped;
            assert_eq!(ids(TokenRole::HandOff), if handed { hand_off } else { vec![] });
            assert!(!cut || done.thought_tokens == budget);
            let room_used = done.solution_tokens as usize + if opened { blank } else { 0 };
            assert!(done.solution == SolutionEnd::Stop || room_used >= solution as usize);
            assert!(room_used <= solution as usize);
        }
    }
}
