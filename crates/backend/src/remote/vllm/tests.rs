//! The requests, streams and templates of a server of vLLM's.

use super::*;
use crate::remote::openai::Dialect;
use crate::remote::{self, golden};
use stint_types::catalog::{MemberRules, UnknownMembers};

fn settings() -> Settings {
    let members = MemberRules { unknown: UnknownMembers::Pass, ..MemberRules::default() };
    let client = remote::Settings { members, ..remote::Settings::default() };
    Settings { client, model: "upstream-model".to_owned(), dialect: Dialect::vllm(), ..Settings::default() }
}

#[test]
fn raw_parts_are_asked_for_as_the_fixtures_say() {
    golden::check("vllm", "raw-request", |fixture| {
        let call = golden::call(fixture, golden::part(fixture));
        match &call.part {
            GenerationPart::Thought { thinking, .. } => {
                request::thought_body(&settings(), &call, &[1, 2, 3], *thinking)
            }
            GenerationPart::Solution { thought, solution, .. } => {
                request::solution_body(&settings(), &call, &thought.ids, *solution, Some([3, 4]))
            }
            _ => request::template_body(&settings(), &call.request, fixture["thinks"] == true),
        }
    });
}

#[test]
fn raw_streams_are_read_as_the_fixtures_say() {
    golden::check("vllm", "raw-stream", |fixture| {
        let splitter = || Splitter::after_thought("<think>", "</think>");
        let reader = match fixture["tag"].as_u64() {
            Some(length) => events::VllmReader::thought(length.try_into().unwrap()),
            None => events::VllmReader::solution((fixture["strips"] == true).then(splitter)),
        };
        golden::pieces(reader, &fixture["events"])
    });
}

#[test]
fn a_thought_is_begun_where_the_template_has_not() {
    let (start, end, newline) = (vec![3], vec![4], vec![26]);
    let vocabulary = VllmTagTokens { start, end, hand_off: vec![26, 4, 8], newline, tags_on_own_lines: true };
    let opened = |ids: &[u32]| vocabulary.with_open_thought(vocabulary.prompt(ids.to_vec()));
    assert_eq!(opened(&[1, 2]), [1, 2, 3, 26]);
    assert_eq!(opened(&[1, 2, 3]), [1, 2, 3]);
    assert_eq!(opened(&[1, 2, 3, 26]), [1, 2, 3, 26]);
    assert_eq!(opened(&[1, 3, 2, 26]), [1, 3, 2, 26, 3, 26]);
    assert_eq!(
        (vocabulary.closing_tokens(true), vocabulary.closing_tokens(false)),
        (&[4][..], &[26, 4, 8][..])
    );
}

#[test]
fn in_harmony_the_answers_message_is_opened_behind_every_thought() {
    let (start, end, newline) = (vec![5, 6, 7], vec![4], vec![26]);
    let vocabulary =
        VllmTagTokens { start, end, hand_off: vec![4, 1, 5, 8, 7], newline, tags_on_own_lines: false };
    assert_eq!(vocabulary.with_open_thought(vocabulary.prompt(vec![1, 2])), [1, 2, 5, 6, 7]);
    for closed in [true, false] {
        assert_eq!(vocabulary.closing_tokens(closed), [4, 1, 5, 8, 7]);
    }
}
