//! Who gets the rows that a step has for prompts. Only computes.
//!
//! The prompt that began first has half of them, and so is never kept from going on. The other half goes to those that are
//! nearest to their ends: a short question does not wait until a long document before it was read. Equal prompts are read one
//! after the other, so that the first is not slowed down by those behind it.

/// The rows of each prompt, of which each wants so many, in the order in which they began.
pub(crate) fn share(wanted: &[usize], rows: usize) -> Vec<usize> {
    let mut given = vec![0; wanted.len()];
    let mut left = rows;
    let mut give = |at: usize, most: usize, left: &mut usize| {
        let more = (wanted[at] - given[at]).min(most).min(*left);
        given[at] += more;
        *left -= more;
    };
    let mut nearest: Vec<_> = (0..wanted.len()).filter(|at| wanted[*at] > 0).collect();
    if let Some(oldest) = nearest.first() {
        give(*oldest, rows.div_ceil(2), &mut left);
    }
    nearest.sort_by_key(|at| wanted[*at]);
    nearest.into_iter().for_each(|at| give(at, usize::MAX, &mut left));
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &[usize], rows: usize, expected: &[usize]) {
        assert_eq!(share(wanted, rows), expected, "{wanted:?}");
    }

    #[test]
    fn a_short_prompt_is_read_beside_a_long_one_that_began_before_it() {
        check(&[8000, 20], 128, &[108, 20]);
        check(&[8000, 0, 50, 30], 128, &[64, 0, 34, 30]);
        check(&[8000, 500], 128, &[64, 64]);
        check(&[20, 8000], 128, &[20, 108]);
    }

    #[test]
    fn equal_prompts_are_read_one_after_the_other() {
        check(&[500, 500, 500], 128, &[128, 0, 0]);
        check(&[372, 500, 500], 128, &[128, 0, 0]);
        check(&[100, 500, 500], 128, &[100, 28, 0]);
    }

    #[test]
    fn no_row_is_given_that_there_is_not() {
        check(&[], 128, &[]);
        check(&[0, 0], 128, &[0, 0]);
        check(&[500, 2], 1, &[1, 0]);
        check(&[500, 2], 0, &[0, 0]);
        check(&[3, 2], 128, &[3, 2]);
    }
}
