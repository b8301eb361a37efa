//! Answers that must have a form, and how likely their tokens were.

use super::*;

const EVEN_TOKENS: u32 = 6;

/// An answer of so many even tokens, and then its end.
#[derive(Clone)]
struct EvenTokens(u32);

impl TokenConstraint for EvenTokens {
    fn allow_next(&mut self, allowed: &mut TokenSet) -> Result<(), ConstraintError> {
        (0..64).filter(|id| id % 2 == 0 && self.0 > 0).for_each(|id| allowed.insert(id));
        Ok(())
    }

    fn may_end(&mut self) -> Result<bool, ConstraintError> {
        Ok(self.0 == 0)
    }

    fn accept(&mut self, id: u32) -> Result<(), ConstraintError> {
        let left = self.0.checked_sub(1).filter(|_| id.is_multiple_of(2));
        self.0 = left.ok_or_else(|| ConstraintError(format!("{id} was not allowed")))?;
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn TokenConstraint> {
        Box::new(self.clone())
    }
}

const EOS: u32 = 59;

fn even(job: GenerationJob) -> GenerationJob {
    let constraint = AnswerConstraint::new(Box::new(EvenTokens(EVEN_TOKENS)));
    GenerationJob { constraint: Some(constraint), eos: vec![EOS], ..job }
}

fn with_role(steps: &[GeneratedToken], role: TokenRole) -> Vec<u32> {
    steps.iter().filter(|step| step.role == role).map(|step| step.id).collect()
}

#[test]
fn a_thought_is_free_and_the_answer_has_its_form_whatever_is_drawn() {
    let engine = engine(&settings());
    for seed in 0..8 {
        let sampling = SamplingParams { temperature: 2.0, top_k: 30, top_p: 0.9, min_p: 0.0, seed };
        let job = even(GenerationJob { sampling, ..job(5, 20, 30) });
        let (steps, last) = finish(engine.generate(job).unwrap());
        let answer = with_role(&steps, TokenRole::Solution);
        assert!(answer.len() == EVEN_TOKENS as usize && answer.iter().all(|id| id % 2 == 0), "{steps:?}");
        assert!(with_role(&steps, TokenRole::Thought).iter().any(|id| id % 2 == 1), "{steps:?}");
        let GenerationEvent::Done(done) = last else { panic!("{last:?}") };
        assert_eq!((done.solution, steps.last().unwrap().id), (SolutionEnd::Stop, EOS));
    }
    engine.stop();
}

#[test]
fn a_form_that_no_room_is_left_for_ends_by_its_length() {
    let engine = engine(&settings());
    let (steps, last) = finish(engine.generate(even(job(5, 0, 4))).unwrap());
    assert_eq!(with_role(&steps, TokenRole::Solution).len(), 4);
    let GenerationEvent::Done(done) = last else { panic!("{last:?}") };
    assert_eq!(done.solution, SolutionEnd::Length);
    engine.stop();
}

#[test]
fn a_bias_does_not_bring_in_what_the_form_forbids() {
    let engine = engine(&settings());
    let penalties = TokenPenalties { biases: [(7, 1e6), (8, 1e5)].into(), ..TokenPenalties::default() };
    let job = even(GenerationJob { penalties, phases: PhaseBudgets::without_thinking(20), ..job(5, 0, 0) });
    assert_eq!(ids(&engine, job), [8, 8, 8, 8, 8, 8, EOS]);
    engine.stop();
}

#[test]
fn what_may_become_a_tag_of_text_is_a_part_of_the_form() {
    let engine = engine(&settings());
    let texts = (0..64).map(|id| if id == 12 { &b"<th"[..] } else { &b"a"[..] }).map(Into::into).collect();
    let thinking = ThinkingPhase {
        budget: 3,
        hand_off: vec![60],
        start: None,
        end: u32::MAX,
        open: false,
        blanks: [].into(),
        spelled: Some(SpelledTags { start: "<think>".into(), end: "</think>".into(), texts }),
    };
    let phases = PhaseBudgets { thinking: Some(thinking), solution: 20, solution_max: 20 };
    let penalties = TokenPenalties { biases: [(12, 50.0)].into(), ..TokenPenalties::default() };
    let job = even(GenerationJob { phases, penalties, ..job(4, 0, 0) });
    let steps = finish(engine.generate(job).unwrap()).0;
    assert_eq!(steps[0], GeneratedToken { id: 12, role: TokenRole::Blank });
    let of_answer = with_role(&steps, TokenRole::Blank).len() + with_role(&steps, TokenRole::Solution).len();
    assert_eq!(of_answer, EVEN_TOKENS as usize, "{steps:?}");
    engine.stop();
}

#[test]
fn where_a_thought_may_still_be_opened_the_answer_begins_in_its_form_or_not_at_all() {
    let engine = engine(&settings());
    let start = |bias: (u32, f32)| {
        let thinking = ThinkingPhase {
            budget: 3,
            hand_off: vec![60],
            start: Some(11),
            end: 63,
            open: false,
            blanks: [21].into(),
            spelled: None,
        };
        let phases = PhaseBudgets { thinking: Some(thinking), solution: 20, solution_max: 20 };
        let penalties = TokenPenalties { biases: [bias].into(), ..TokenPenalties::default() };
        finish(engine.generate(even(GenerationJob { phases, penalties, ..job(4, 0, 0) })).unwrap()).0
    };
    // An odd tag may come; odd white space and other odd tokens may not.
    let thought = start((11, 50.0));
    assert_eq!(thought[0], GeneratedToken { id: 11, role: TokenRole::Tag });
    let blank = start((21, 50.0));
    assert_ne!(blank[0].id, 21);
    let plain = start((13, 50.0));
    assert_ne!(plain[0].id, 13);
    for steps in [thought, blank, plain] {
        let answer = with_role(&steps, TokenRole::Solution);
        let in_form = answer.iter().filter(|id| *id % 2 == 0).count();
        assert_eq!(in_form, EVEN_TOKENS as usize, "{steps:?}");
        assert!(answer.len() - in_form <= 1, "one of white space after a thought: {steps:?}");
    }
    engine.stop();
}

/// Room for one of them, so that all but one are stopped again and again.
#[test]
fn a_form_is_kept_through_preemptions_and_beside_others_who_notice_nothing() {
    let engine = engine(&Settings { kv_tokens: 160, prefix_reuse: false, ..settings() });
    let warm =
        |n: u32| SamplingParams { temperature: 1.0, top_k: 20, top_p: 0.9, min_p: 0.0, seed: u64::from(n) };
    let plain = |n: u32| GenerationJob { sampling: warm(n), ..job(10 + n, 60, 30) };
    let jobs: Vec<_> = (0..4)
        .map(|n| match n {
            0 => plain(n),
            1 => even(plain(n)),
            2 => GenerationJob { logprobs: Some(3), ..plain(n) },
            _ => GenerationJob { logprobs: Some(0), ..even(plain(n)) },
        })
        .collect();
    let alone: Vec<_> = jobs.iter().map(|job| finish(engine.generate(job.clone()).unwrap()).0).collect();
    assert_eq!(engine.load().counts.preempted, 0);
    let streams: Vec<_> = jobs.iter().map(|job| engine.generate(job.clone()).unwrap()).collect();
    let together: Vec<_> = streams.into_iter().map(|tokens| finish(tokens).0).collect();
    assert_eq!(alone, together);
    assert!(engine.load().counts.preempted > 0);
    let unasked = ids(&engine, plain(2));
    assert_eq!(unasked, alone[2].iter().map(|step| step.id).collect::<Vec<_>>(), "who asks changes nothing");
    engine.stop();
}

/// It can say nothing of its second token.
#[derive(Clone)]
struct Broken(bool);

impl TokenConstraint for Broken {
    fn allow_next(&mut self, allowed: &mut TokenSet) -> Result<(), ConstraintError> {
        (0..32).for_each(|id| allowed.insert(id));
        if self.0 { Err(ConstraintError("it broke".into())) } else { Ok(()) }
    }

    fn may_end(&mut self) -> Result<bool, ConstraintError> {
        Ok(false)
    }

    fn accept(&mut self, _: u32) -> Result<(), ConstraintError> {
        self.0 = true;
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn TokenConstraint> {
        Box::new(self.clone())
    }
}

#[test]
fn a_form_that_cannot_go_on_ends_its_own_answer_alone() {
    let engine = engine(&settings());
    let plain = GenerationJob { phases: PhaseBudgets::without_thinking(20), ..job(6, 0, 0) };
    let alone = ids(&engine, plain.clone());
    let constraint = Some(AnswerConstraint::new(Box::new(Broken(false))));
    let broken = GenerationJob { constraint, eos: vec![EOS], ..plain.clone() };
    let (broken, beside) = (engine.generate(broken).unwrap(), engine.generate(plain).unwrap());
    let (steps, last) = finish(broken);
    assert_eq!(steps.len(), 1);
    let GenerationEvent::Failed(EngineError::Constraint(error)) = last else { panic!("{last:?}") };
    assert_eq!(error.to_string(), "it broke");
    assert_eq!(finish(beside).0.iter().map(|step| step.id).collect::<Vec<_>>(), alone);
    assert!(engine.is_alive());
    engine.stop();
}

#[test]
fn a_form_without_a_token_that_could_end_it_is_refused() {
    let engine = engine(&settings());
    let endless = GenerationJob { eos: vec![], ..even(job(4, 1, 1)) };
    assert!(matches!(engine.generate(endless).unwrap_err(), JobRejection::Invalid(_)));
    let too_many = GenerationJob { logprobs: Some(21), ..job(4, 1, 1) };
    assert!(matches!(engine.generate(too_many).unwrap_err(), JobRejection::Invalid(_)));
    engine.stop();
}

/// Its steps, each of the answer's with how likely it was.
fn answer_logprobs(mut tokens: TokenStream) -> Vec<(u32, TokenLogprobs)> {
    let (mut answer, mut likely) = (Vec::new(), None);
    while let Some(event) = tokens.blocking_next() {
        match event {
            GenerationEvent::Logprobs(more) => likely = Some(more),
            GenerationEvent::Token(step) if step.role == TokenRole::Solution => {
                answer.push((step.id, likely.take().expect("it comes before its token")));
            }
            GenerationEvent::Token(_) => assert_eq!(likely, None, "of the answer alone"),
            GenerationEvent::Failed(error) => panic!("{error}"),
            GenerationEvent::PromptRead { .. } | GenerationEvent::Done(_) => {}
        }
    }
    answer
}

#[test]
fn how_likely_tokens_were_is_the_log_softmax_of_the_model_s_own_logits() {
    let engine = engine(&settings());
    let penalties = TokenPenalties { presence: 2.0, ..TokenPenalties::default() };
    let sampling = SamplingParams { temperature: 1.5, top_k: 9, top_p: 0.9, min_p: 0.0, seed: 4 };
    let mut job = GenerationJob { sampling, penalties, logprobs: Some(4), ..job(5, 6, 12) };
    let thought: Vec<_> = {
        let (steps, _) = finish(engine.generate(job.clone()).unwrap());
        steps.iter().filter(|step| step.role != TokenRole::Solution).map(|step| step.id).collect()
    };
    let answer = answer_logprobs(engine.generate(job.clone()).unwrap());
    assert_eq!(answer.len(), 12);
    engine.stop();
    job.prompt.extend(thought);
    let model = model(TensorType::F32, shared().mode, KvFormat::F16);
    for (id, likely) in answer {
        let text = (0u32..).zip(&job.prompt);
        let rows: Vec<_> = text.map(|(position, &token)| BatchRow { token, slot: 0, position }).collect();
        let picks = vec![u32::try_from(rows.len()).unwrap() - 1];
        let logits = model.logits(&ForwardBatch { rows, picks }).unwrap().remove(0);
        let whole = logits.iter().map(|logit| f64::from(*logit).exp()).sum::<f64>().ln();
        let expected = |id: u32| f64::from(logits[id as usize]) - whole;
        assert!((f64::from(likely.logprob) - expected(id)).abs() < 1e-5, "{id}: {likely:?}");
        assert_eq!(likely.top.len(), 4);
        assert!(likely.top.is_sorted_by(|a, b| a.1 >= b.1));
        assert!(likely.top.iter().all(|(id, logprob)| (f64::from(*logprob) - expected(*id)).abs() < 1e-5));
        let highest = logits.iter().copied().fold(f32::MIN, f32::max);
        assert!((logits[likely.top[0].0 as usize] - highest).abs() <= f32::EPSILON);
        job.prompt.push(id);
    }
}
