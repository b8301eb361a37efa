//! What one call has written so far, and what it is billed for: by the upstream's count if there is one, else by what was
//! seen. The usage account keeps one while a call runs, and books it at its end.

use stint_backend::{OutputStats, TokenUsage, weighted_characters};
use stint_types::catalog::BilledCall;
use stint_types::chat::CacheTtl;
use stint_types::units::Tokens;

use super::overrun_guard::TokenLowerBound;

/// After so many pieces a count that has not moved is no running count.
const PIECES_OF_COUNT: u32 = 4;
/// Characters per token if a target has no finished answers yet: what English text takes.
const CHARACTERS_PER_TOKEN: f64 = 3.5;
/// The same, where a thought must be stopped in time: it is rather stopped early.
const CHARACTERS_PER_TOKEN_LEAST: f64 = 3.0;
/// The same, where a thought is only stopped once it has surely gone too far.
const CHARACTERS_PER_TOKEN_MOST: f64 = 5.0;

/// What one call has shown.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningPart {
    /// True for a part whose prompt was sent before.
    pub(super) is_repeat: bool,
    /// Everything it may write, where its thought is hidden or it comes in one piece.
    pub(super) hidden: Option<Tokens>,
    /// True if its upstream reported more than can be.
    pub(super) is_unbelievable: bool,
    /// True if what it writes unseen is no thought.
    pub(super) is_unseen_answer: bool,
    /// No more than that can have been written, whatever the upstream reports or sends in one piece.
    pub(super) most: Option<Tokens>,
    pub(super) thinking: Tokens,
    pub(super) solution: Tokens,
    /// Tags, hand-off, end of text.
    pub(super) overhead: Tokens,
    /// The part of the overhead that was read as part of the prompt, not written.
    pub(super) injected: Tokens,
    usage: Option<TokenUsage>,
    discarded: Tokens,
    thought_characters: u64,
    answer_characters: u64,
    /// Of summaries of a hidden thought.
    summary_characters: u64,
    /// The least that the thought has, and everything else.
    thought_least: TokenLowerBound,
    answer_least: TokenLowerBound,
    /// What came after the last usage.
    since_usage: TextSinceUsage,
    /// Of what came after the caller's stop text.
    dropped_characters: u64,
    /// Of the longest piece.
    piece_characters: u64,
}

/// What a call showed after its upstream last reported what was written.
#[derive(Debug, Clone, Copy, Default)]
struct TextSinceUsage {
    pieces: u32,
    thought_bytes: u64,
    thought_characters: u64,
    answer_characters: u64,
}

/// What a part wrote.
pub(super) struct PartUsage {
    pub(super) thinking: Tokens,
    pub(super) solution: Tokens,
    /// What came after the caller's stop text, or was under way when we hung up.
    pub(super) dropped: Tokens,
    /// True if some of that is no count.
    pub(super) estimated: bool,
}

/// To which side an unsure count errs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountBias {
    /// Rather too many tokens.
    High,
    /// Rather too few.
    Low,
}

/// How a part came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// The backend ended it.
    Completed,
    /// We did, or the connection broke: more may have been written than was seen.
    BrokenOff,
}

impl RunningPart {
    /// The first part of a choice. `hidden` is everything it may write, where its thought is hidden.
    pub(super) fn first(hidden: Option<Tokens>) -> RunningPart {
        RunningPart { hidden, ..RunningPart::default() }
    }

    /// One that sends the prompt again.
    pub(super) fn repeat(hidden: Option<Tokens>) -> RunningPart {
        RunningPart { is_repeat: true, ..RunningPart::first(hidden) }
    }

    pub(super) fn add_thinking(&mut self, text: &str, tokens: Tokens) {
        self.thinking += tokens;
        let characters = self.piece_length(text);
        self.thought_characters += characters;
        self.since_usage.thought_characters += characters;
        self.since_usage.thought_bytes += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.thought_least.add(text);
    }

    /// More of a hidden thought's summary. Its length counts only where the upstream does not say how much of its total was thought.
    pub(super) fn add_summary(&mut self, text: &str) {
        self.summary_characters += weighted_characters(text);
    }

    pub(super) fn add_solution(&mut self, text: &str, tokens: Tokens) {
        self.solution += tokens;
        self.answer_characters += self.add_answered(text);
    }

    /// What was shown as the thought was the answer.
    pub(super) fn unthink(&mut self) {
        self.solution += std::mem::take(&mut self.thinking);
        self.answer_characters += std::mem::take(&mut self.thought_characters);
        self.answer_least.take_over(std::mem::take(&mut self.thought_least));
        self.since_usage.unthink();
    }

    /// So many tokens were written and are not delivered. Returns how many of them can have been.
    pub(super) fn add_discarded(&mut self, tokens: Tokens) -> Tokens {
        let tokens = self.most.map_or(tokens, |most| tokens.min(most));
        self.discarded += tokens;
        tokens
    }

    /// Written after the caller's stop text, and not counted.
    pub(super) fn add_dropped(&mut self, text: &str) {
        self.dropped_characters += self.add_answered(text);
    }

    pub(super) fn set_usage(&mut self, usage: TokenUsage) {
        self.usage = Some(usage);
        if usage.completion > Tokens::ZERO {
            self.since_usage = TextSinceUsage::default();
        }
    }

    /// True if it has shown a thought.
    pub(super) fn has_visible_thought(&self) -> bool {
        self.thought_characters > 0 || self.thinking > Tokens::ZERO
    }

    /// True if it may have a hidden thought that nothing has reported yet.
    pub(super) fn is_hidden_uncounted(&self) -> bool {
        let counted = self.thinking + self.solution > Tokens::ZERO;
        self.hidden.is_some() && !counted && self.thought_characters == 0 && self.reported_usage().is_none()
    }

    /// True if it has surely written more than it was allowed.
    pub(super) fn is_beyond_limit(&self) -> bool {
        let written = self.answer_characters + self.dropped_characters;
        self.hidden.is_some_and(|limit| tokens_in(written, CHARACTERS_PER_TOKEN_MOST) > limit)
    }

    /// Its thinking tokens with one more piece, by the best count there is. That is each token, else what the upstream reports
    /// in between and what has come since, if its count does not go on; else the characters.
    pub(super) fn thinking_with(&self, text: &str, tokens: Tokens, bias: CountBias) -> Tokens {
        if self.thinking + tokens > Tokens::ZERO {
            return self.thinking + tokens;
        }
        let per_token = match bias {
            CountBias::High => CHARACTERS_PER_TOKEN_LEAST,
            CountBias::Low => CHARACTERS_PER_TOKEN_MOST,
        };
        let with_piece = |characters: u64| tokens_in(characters + weighted_characters(text), per_token);
        match self.reported_thinking() {
            None => with_piece(self.thought_characters),
            Some(reported) if self.since_usage.is_long() => {
                reported + with_piece(self.since_usage.thought_characters)
            }
            Some(reported) => reported.max(self.thought_least.tokens()),
        }
    }

    /// The most tokens that its thought can have: as they were counted, else what the upstream reported last and a token for
    /// each byte since.
    pub(super) fn thinking_upper_bound(&self) -> Tokens {
        if self.thinking > Tokens::ZERO {
            return self.thinking;
        }
        let reported = self.reported_thinking().unwrap_or_default() + Tokens(self.since_usage.thought_bytes);
        reported.max(self.thought_least.tokens())
    }

    /// What it has written until now. Where an upstream counts as it goes, its count may lag behind what was seen.
    pub(super) fn written(&self, stats: &OutputStats) -> Tokens {
        let counted = self.thinking + self.solution;
        let seen = self.thought_characters + self.answer_characters + self.dropped_characters;
        let shown =
            if counted > Tokens::ZERO { counted } else { tokens_in(seen, characters_per_token(stats)) };
        let all = shown + self.overhead.saturating_sub(self.injected) + self.discarded;
        all.max(self.usage.map_or(Tokens::ZERO, |usage| usage.completion))
    }

    /// What the upstream reported of its prompt.
    pub(super) fn prompt_reported(&self) -> Option<Tokens> {
        self.usage.map(|usage| usage.prompt).filter(|prompt| *prompt > Tokens::ZERO)
    }

    /// The most that its prompt had, where the upstream reported it: some leave out of their count what they had cached, and
    /// nobody can tell which do.
    pub(super) fn prompt_upper_bound(&self) -> Option<Tokens> {
        let usage = self.usage.filter(|usage| usage.prompt > Tokens::ZERO)?;
        Some(usage.prompt + usage.cache_read + usage.cache_write)
    }

    /// Its thinking and solution tokens: its own count where its tokens were seen, else the upstream's total, shared by the
    /// characters that were seen, else those characters alone. A hidden thought that was broken off is taken for as long as it
    /// could be, `unseen_max` at most: the upstream bills it, though we hung up. So it does what was under way then, which is taken
    /// for one piece more.
    pub(super) fn usage(
        &self,
        part_end: PartEnd,
        stats: &OutputStats,
        unseen_max: Option<Tokens>,
    ) -> PartUsage {
        if self.thinking + self.solution > Tokens::ZERO {
            return PartUsage::counted(self.thinking, self.solution).within(self.most);
        }
        // More may be on its way than was seen. If no finished answer has shown how many characters a token has, the most
        // tokens that English text has are booked.
        let per_token = match (part_end, stats.characters_per_token) {
            (PartEnd::BrokenOff, None) => CHARACTERS_PER_TOKEN_LEAST,
            _ => characters_per_token(stats),
        };
        let seen = PartUsage {
            thinking: tokens_in(self.thought_characters, per_token),
            solution: tokens_in(self.answer_characters, per_token),
            dropped: tokens_in(self.dropped_characters, per_token),
            estimated: true,
        };
        let usage = match (self.reported_usage(), self.hidden) {
            (Some(usage), _) => {
                let corrected = self.corrected(usage, part_end, per_token);
                let summary = tokens_in(self.summary_characters, per_token);
                let shown = PartUsage { thinking: seen.thinking + summary, ..seen };
                let shared = self.share_reported(corrected, &shown);
                PartUsage { estimated: shared.estimated || corrected != usage, ..shared }
            }
            (None, Some(limit)) if part_end == PartEnd::BrokenOff && self.thought_characters == 0 => {
                let limit = unseen_max.map_or(limit, |most| most.min(limit));
                let unseen = limit.saturating_sub(seen.solution + seen.dropped);
                // Nobody gets it, whatever it was.
                match self.is_unseen_answer {
                    true => PartUsage { dropped: seen.dropped + unseen, ..seen },
                    false => PartUsage { thinking: unseen, ..seen },
                }
            }
            (None, _) if part_end == PartEnd::BrokenOff => {
                PartUsage { dropped: seen.dropped + tokens_in(self.piece_characters, per_token), ..seen }
            }
            (None, _) => seen,
        };
        usage.within(self.most)
    }

    /// The call as it is billed: by the upstream's count, and never for less than was seen. Where the upstream does not report
    /// what was cached for an hour, all of it is taken to be cached for as long as was wanted.
    pub(super) fn billed(&self, input: Tokens, usage: &PartUsage, cache_ttl: CacheTtl) -> BilledCall {
        let written = usage.thinking + usage.solution + usage.dropped;
        let seen = written + self.overhead.saturating_sub(self.injected) + self.discarded;
        let TokenUsage { cache_read, cache_write, cache_hour, completion, .. } =
            self.usage.unwrap_or_default();
        let hour = if cache_ttl == CacheTtl::Hour { cache_write } else { Tokens::ZERO };
        let cache_hour = cache_hour.unwrap_or(hour).min(cache_write);
        let output = seen.max(completion);
        let output = self.most.map_or(output, |most| output.min(most.max(self.hidden.unwrap_or_default())));
        BilledCall { input, cache_read, cache_write, cache_hour, output }
    }

    /// An upstream's count with what is not in it: what was shown after it, where the call was broken off or went on for long; and
    /// never less than a text of that length has.
    fn corrected(&self, usage: TokenUsage, part_end: PartEnd, per_token: f64) -> TokenUsage {
        let goes_on = part_end == PartEnd::BrokenOff || self.since_usage.is_long();
        let since = |characters: u64| if goes_on { tokens_in(characters, per_token) } else { Tokens::ZERO };
        let thought = since(self.since_usage.thought_characters);
        let answer = since(self.since_usage.answer_characters);
        let (thought_least, answer_least) = (self.thought_least.tokens(), self.answer_least.tokens());
        let thinking = usage.thinking.map(|told| (told + thought).max(thought_least));
        let least = thinking.unwrap_or(thought_least) + answer_least;
        TokenUsage { completion: (usage.completion + thought + answer).max(least), thinking, ..usage }
    }

    /// Characters of a piece of the answer that comes.
    fn add_answered(&mut self, text: &str) -> u64 {
        let characters = self.piece_length(text);
        self.since_usage.answer_characters += characters;
        self.answer_least.add(text);
        characters
    }

    /// Characters of a piece that comes.
    fn piece_length(&mut self, text: &str) -> u64 {
        let length = weighted_characters(text);
        self.piece_characters = self.piece_characters.max(length);
        self.since_usage.pieces = self.since_usage.pieces.saturating_add(u32::from(!text.is_empty()));
        length
    }

    /// The upstream's count, where it reports what was written: at first it may know only the prompt.
    fn reported_usage(&self) -> Option<TokenUsage> {
        self.usage.filter(|usage| usage.completion > Tokens::ZERO)
    }

    /// What a usage in the middle counts as the thought: all of it, while no answer has come.
    fn reported_thinking(&self) -> Option<Tokens> {
        let usage = self.usage?;
        let thinks = self.answer_characters == 0 && usage.completion > Tokens::ZERO;
        usage.thinking.or_else(|| thinks.then_some(usage.completion))
    }

    /// The upstream's total, shared by what was seen where it does not split it itself.
    fn share_reported(&self, usage: TokenUsage, seen: &PartUsage) -> PartUsage {
        let thinking = usage
            .thinking
            .unwrap_or_else(|| share(usage.completion, seen.thinking, seen.solution + seen.dropped));
        let counted = usage.completion.saturating_sub(self.overhead.saturating_sub(self.injected));
        let answered = counted.saturating_sub(thinking);
        let dropped = share(answered, seen.dropped, seen.solution);
        PartUsage {
            thinking: thinking.min(counted),
            solution: answered.saturating_sub(dropped),
            dropped,
            estimated: usage.thinking.is_none() && seen.thinking > Tokens::ZERO,
        }
    }
}

impl TextSinceUsage {
    /// True if more came than may stand between two reports of a running count.
    fn is_long(&self) -> bool {
        self.pieces > PIECES_OF_COUNT
    }

    /// What was shown as a thought was the answer.
    fn unthink(&mut self) {
        self.answer_characters += std::mem::take(&mut self.thought_characters);
        self.thought_bytes = 0;
    }
}

impl PartUsage {
    fn counted(thinking: Tokens, solution: Tokens) -> PartUsage {
        PartUsage { thinking, solution, dropped: Tokens::ZERO, estimated: false }
    }

    /// No more than that altogether.
    fn within(self, most: Option<Tokens>) -> PartUsage {
        let Some(most) = most else { return self };
        let thinking = self.thinking.min(most);
        let solution = self.solution.min(most.saturating_sub(thinking));
        let dropped = self.dropped.min(most.saturating_sub(thinking + solution));
        let is_cut = thinking + solution + dropped != self.thinking + self.solution + self.dropped;
        PartUsage { thinking, solution, dropped, estimated: self.estimated || is_cut }
    }
}

/// How many tokens a text has that nobody counted.
pub(super) fn estimate_tokens(text: &str, stats: &OutputStats) -> Tokens {
    tokens_in(weighted_characters(text), characters_per_token(stats))
}

/// What falls to `one` of so many tokens that it shares with `other`.
fn share(tokens: Tokens, one: Tokens, other: Tokens) -> Tokens {
    Tokens::round(tokens.as_f64() * one.as_f64() / (one + other).as_f64().max(1.0))
}

fn characters_per_token(stats: &OutputStats) -> f64 {
    stats.characters_per_token.unwrap_or(CHARACTERS_PER_TOKEN)
}

fn tokens_in(characters: u64, per_token: f64) -> Tokens {
    Tokens::round((Tokens(characters).as_f64() / per_token).ceil())
}
