//! Detects callers that ask the same question again: one that does so soon was perhaps not pleased with the answer. Only a
//! hash of the question is remembered, with a secret of this process, and not for long.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use stint_sessions::history::RequestRecord;
use stint_types::chat::{ContentPart, Message, Request, Role};
use stint_types::units::{AccountId, Timestamp};

/// The weight of a repeated question, as a share of a plain verdict of a person: there are many reasons to ask again.
pub(super) const WEIGHT: f64 = 0.02;
/// How many questions are remembered.
const QUESTIONS_MAX: usize = 2048;
/// How much of a text is looked at, at each end.
const TEXT_MAX: usize = 8 << 10;

/// A question, reduced to what is needed to recognise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuestionFingerprint {
    hash: u64,
    at: Timestamp,
}

impl QuestionFingerprint {
    /// The last message of a request, if it is a user's.
    pub(crate) fn of(account: &AccountId, request: &Request, at: Timestamp) -> Option<QuestionFingerprint> {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let last = request.messages.last().filter(|message| message.role == Role::User)?;
        let length: usize = texts(last).map(str::len).sum();
        let mut hasher = KEY.build_hasher();
        (account.as_str(), &request.model, request.messages.len(), length).hash(&mut hasher);
        hash_ends(last, length, &mut hasher);
        last.media().for_each(|value| hash_media(value, &mut hasher));
        // A caller that states another budget compares budgets; that shows nothing about the answer.
        let stated = [request.budget.thinking, request.budget.solution, request.budget.total];
        stated.map(|tokens| tokens.map(|tokens| tokens.0)).hash(&mut hasher);
        Some(QuestionFingerprint { hash: hasher.finish(), at })
    }
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => None,
    })
}

/// Hashes an image or a file: of each of its texts the length, and what it begins and ends with. It may have megabytes, too.
fn hash_media(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::String(text) => {
            let (bytes, most) = (text.as_bytes(), text.len().min(TEXT_MAX));
            (bytes.len(), &bytes[..most], &bytes[bytes.len() - most..]).hash(hasher);
        }
        Value::Array(items) => items.iter().for_each(|item| hash_media(item, hasher)),
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            name.hash(hasher);
            hash_media(member, hasher);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.hash(hasher),
    }
}

/// Hashes what a message begins and ends with, of so many bytes. It may have megabytes: nothing is copied.
fn hash_ends(message: &Message, length: usize, hasher: &mut impl Hasher) {
    let (mut head, mut middle) = (TEXT_MAX, length.saturating_sub(TEXT_MAX));
    for text in texts(message) {
        hasher.write(&text.as_bytes()[..text.len().min(head)]);
        head = head.saturating_sub(text.len());
    }
    for text in texts(message) {
        hasher.write(&text.as_bytes()[text.len().min(middle)..]);
        middle = middle.saturating_sub(text.len());
    }
}

/// The latest questions that were answered.
#[derive(Debug)]
pub(super) struct RepeatDetector {
    within: Duration,
    answered: Mutex<AnsweredQuestions>,
}

/// The latest, the last one at the end.
#[derive(Debug, Default)]
struct AnsweredQuestions {
    in_order: VecDeque<AnsweredQuestion>,
    /// How many there are of a hash: most questions are new, and need not be looked for.
    counts: HashMap<u64, u32>,
}

#[derive(Debug)]
struct AnsweredQuestion {
    hash: u64,
    at: Timestamp,
    record: Arc<RequestRecord>,
    /// True if it was asked again before. A caller that asks so often is trying something out, and is not displeased.
    is_repeated: bool,
}

impl RepeatDetector {
    pub(super) fn new(within: Duration) -> RepeatDetector {
        RepeatDetector { within, answered: Mutex::default() }
    }

    /// Remembers that a question was answered. The story of the same question's answer that was there, whole, shortly
    /// before it was asked again for the first time, where there is one.
    pub(super) fn detect_repeat(
        &self,
        asked: QuestionFingerprint,
        story: &Arc<RequestRecord>,
    ) -> Option<Arc<RequestRecord>> {
        if self.within.is_zero() || !story.outcome.is_finished() {
            return None;
        }
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answered.take_latest(asked, asked.at.before(self.within));
        let is_repeated = known.is_some();
        answered.push(AnsweredQuestion {
            hash: asked.hash,
            at: story.outcome.at,
            record: story.clone(),
            is_repeated,
        });
        known.filter(|known| !known.is_repeated).map(|known| known.record)
    }
}

impl AnsweredQuestions {
    /// Takes out the latest of the same question that was answered since `oldest` and before it was asked.
    fn take_latest(&mut self, asked: QuestionFingerprint, oldest: Timestamp) -> Option<AnsweredQuestion> {
        if !self.counts.contains_key(&asked.hash) {
            return None;
        }
        let is_before =
            |known: &AnsweredQuestion| known.hash == asked.hash && (oldest..=asked.at).contains(&known.at);
        let place = self.in_order.iter().rposition(is_before)?;
        let known = self.in_order.remove(place)?;
        self.uncount(known.hash);
        Some(known)
    }

    /// Adds one, and forgets the first of too many.
    fn push(&mut self, question: AnsweredQuestion) {
        if self.in_order.len() == QUESTIONS_MAX
            && let Some(first) = self.in_order.pop_front()
        {
            self.uncount(first.hash);
        }
        *self.counts.entry(question.hash).or_default() += 1;
        self.in_order.push_back(question);
    }

    fn uncount(&mut self, hash: u64) {
        if let Entry::Occupied(mut count) = self.counts.entry(hash) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use stint_sessions::history::conformance;

    fn asked(account: &str, text: &str, at: i64) -> QuestionFingerprint {
        let request = Request::new("auto", vec![Message::text(Role::User, text)]);
        QuestionFingerprint::of(&AccountId::new(account), &request, Timestamp(at)).unwrap()
    }

    #[test]
    fn a_long_question_is_known_by_its_ends_however_it_is_cut_into_parts() {
        let hash = |parts: &[String]| {
            let content = parts.iter().cloned().map(ContentPart::Text).collect();
            let message = Message { content, ..Message::text(Role::User, "") };
            let request = Request::new("auto", vec![message]);
            QuestionFingerprint::of(&AccountId::new("a"), &request, Timestamp(0)).unwrap().hash
        };
        let long = "é".repeat(3 * TEXT_MAX);
        let whole = hash(&[format!("why {long}")]);
        assert_eq!(whole, hash(&["why ".into(), long.clone()]));
        assert_eq!(
            whole,
            hash(&[format!("why {}", &long[..TEXT_MAX]), String::new(), long[TEXT_MAX..].into()])
        );
        let other = long.replacen('é', "è", 1);
        assert_ne!(whole, hash(&[format!("why {other}")]));
        assert_ne!(whole, hash(&[format!("why {}è", &long[2..])]));
        assert_ne!(whole, hash(&[format!("why {}", &long[2..])]));
    }

    #[test]
    fn the_same_words_about_another_file_are_another_question() {
        let ask = |file: &str| {
            let part = ContentPart::Other(json!({ "type": "file", "file": { "file_data": file } }));
            let content = vec![ContentPart::Text("What is in it?".into()), part];
            let message = Message { content, ..Message::text(Role::User, "") };
            let request = Request::new("auto", vec![message]);
            QuestionFingerprint::of(&AccountId::new("a"), &request, Timestamp(0)).unwrap()
        };
        let long = "A".repeat(3 * TEXT_MAX);
        assert_eq!(ask("JVBERi0x"), ask("JVBERi0x"));
        assert_ne!(ask("JVBERi0x"), ask("JVBERi0y"));
        assert_ne!(ask(&long), ask(&format!("{long}A")));
        assert_ne!(ask(&long), ask(&format!("{}B", &long[1..])));
    }

    /// A question that is answered at that time.
    fn again(recall: &RepeatDetector, account: &str, text: &str, at: i64) -> bool {
        let mut story = conformance::story(at);
        story.outcome.at = Timestamp(at + 10);
        recall.detect_repeat(asked(account, text, at), &Arc::new(story)).is_some()
    }

    #[test]
    fn the_same_question_of_the_same_caller_soon_after_its_answer_is_asked_again() {
        let recall = RepeatDetector::new(Duration::from_secs(1));
        assert!(!again(&recall, "a", "why?", 1_000));
        assert!(!again(&recall, "b", "why?", 1_100), "somebody else's");
        assert!(!again(&recall, "a", "what?", 1_100), "another question");
        assert!(again(&recall, "a", "why?", 1_200));
        assert!(!again(&recall, "a", "why?", 1_300), "who asks so often tries something out");
        assert!(!again(&recall, "b", "why?", 1_105), "its answer was not there yet");
        assert!(!again(&recall, "a", "why?", 9_000), "long ago");
    }

    #[test]
    fn of_too_many_questions_the_first_are_forgotten() {
        let recall = RepeatDetector::new(Duration::from_secs(1_000));
        (0..2 * QUESTIONS_MAX).for_each(|at| assert!(!again(&recall, "a", &at.to_string(), 0)));
        assert!(!again(&recall, "a", "7", 100), "forgotten");
        assert!(again(&recall, "a", "4000", 100));
        let answered = recall.answered.lock().unwrap();
        let counted: u32 = answered.counts.values().sum();
        assert_eq!((answered.in_order.len(), counted as usize), (QUESTIONS_MAX, QUESTIONS_MAX));
    }

    #[test]
    fn long_questions_are_told_apart_by_their_ends_and_lengths() {
        let long = "x".repeat(40_000);
        let ask = |text: &str| asked("a", text, 0);
        assert_eq!(ask(&long), ask(&long));
        assert_ne!(ask(&long), ask(&format!("{long}x")));
        assert_ne!(ask(&long), ask(&format!("{}y", &long[1..])));
        let tools = vec![Message::text(Role::User, "x"), Message::text(Role::Tool, "3")];
        assert_eq!(
            QuestionFingerprint::of(&AccountId::new("a"), &Request::new("auto", tools), Timestamp(0)),
            None
        );
    }
}
