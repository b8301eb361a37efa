//! How likely, and by how much, further samples would change the winner of a vote.
//!
//! What the samples of one question will say is drawn from unknown shares. As in Adaptive-Consistency (Aggarwal, Madaan,
//! Yang and Mausam, 2023, arXiv 2305.11860) they are believed to be Dirichlet distributed with one pseudo-vote for each answer, here
//! also for one that nobody gave yet. For a leader with v votes, a challenger with w, and everything else together u, the
//! next k samples then fall as from Pólya's urn:
//!
//! ```text
//! P(a, b, c) = k! / (a! b! c!) · (v+1)↑a · (w+1)↑b · u↑c / (v+1+w+1+u)↑k,   a + b + c = k,   x↑n = x (x+1) … (x+n−1)
//! ```
//!
//! `change` is the chance that a challenger has passed the leader when all samples are taken, summed over the challengers, so never
//! too small. `gain` is what that is good for: where a challenger has passed, how much likelier it is than the leader to be
//! what most samples ever would say, `2·P(q > p) − 1` with `P(q > p) = I½(v′+1, w′+1)`, the stopping criterion of that paper. That the
//! commonest answer is right is taken for sure, so `gain` is too large rather than too small; and because stopping early is
//! possible at every sample, a change costs at least the `fewest` samples that can bring it about. Another sample is therefore
//! only refused where even `worth · gain ≤ price · fewest`.

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VoteCounts {
    /// The leader's votes.
    pub(super) leader: u32,
    /// Every other answer's votes, and whether it came before the leader's, so that it wins a draw.
    pub(super) others: Vec<(u32, bool)>,
    /// Samples that gave no answer.
    pub(super) blank: u32,
    /// How many samples may still be taken.
    pub(super) left: u32,
}

/// How far a leader is from being caught.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OvertakeRisk {
    /// The chance that another answer wins when all samples are taken.
    pub(super) change: f64,
    /// What taking them all adds to the chance of delivering the commonest answer.
    pub(super) gain: f64,
    /// The fewest samples after which another answer could lead; none where that cannot be.
    pub(super) fewest: Option<u32>,
}

impl OvertakeRisk {
    pub(super) fn of(counts: &VoteCounts) -> OvertakeRisk {
        let unseen = std::iter::once((0, false));
        let mut doubt = OvertakeRisk { change: 0.0, gain: 0.0, fewest: None };
        for challenger in counts.others.iter().copied().chain(unseen) {
            let (votes, wins_draw) = challenger;
            let needed = counts.leader - votes + u32::from(!wins_draw);
            if needed > counts.left {
                continue;
            }
            doubt.fewest = Some(doubt.fewest.map_or(needed, |fewest| fewest.min(needed)));
            let (change, gain) = PolyaUrn::of(counts, votes).overtake_chance(wins_draw);
            doubt.change += change;
            doubt.gain += gain;
        }
        doubt.change = doubt.change.min(1.0);
        doubt
    }
}

/// A leader and one of its challengers, before the samples that are left.
struct PolyaUrn {
    leader: u32,
    challenger: u32,
    left: u32,
    /// ln k!, for each k up to `left`.
    factorials: Vec<f64>,
    /// ln x↑n for the leader, the challenger, the rest, and all together.
    rising: [Vec<f64>; 4],
}

impl PolyaUrn {
    fn of(counts: &VoteCounts, challenger: u32) -> PolyaUrn {
        // Every answer that was given, and one that was not, has a pseudo-vote; the blank ones are one answer more.
        let kinds = 2 + u32::try_from(counts.others.len()).unwrap_or(u32::MAX) + u32::from(counts.blank > 0);
        let given = counts.leader + counts.others.iter().map(|(votes, _)| votes).sum::<u32>() + counts.blank;
        let all = f64::from(given + kinds);
        let (first, second) = (f64::from(counts.leader + 1), f64::from(challenger + 1));
        let rising =
            [first, second, all - first - second, all].map(|start| log_rising_factorials(start, counts.left));
        PolyaUrn {
            leader: counts.leader,
            challenger,
            left: counts.left,
            factorials: log_rising_factorials(1.0, counts.left),
            rising,
        }
    }

    /// The chance that the challenger has passed at the end, and what that gains.
    fn overtake_chance(&self, wins_draw: bool) -> (f64, f64) {
        let (mut change, mut gain) = (0.0, 0.0);
        for more in 0..=self.left {
            for behind in 0..=self.left - more {
                let (leader, challenger) = (self.leader + behind, self.challenger + more);
                if challenger > leader || (wins_draw && challenger == leader) {
                    let chance = self.chance(behind, more);
                    change += chance;
                    gain += chance * edge(leader, challenger);
                }
            }
        }
        (change, gain)
    }

    /// P(a, b, c), as above.
    fn chance(&self, leader: u32, challenger: u32) -> f64 {
        let [first, second, third, all] = &self.rising;
        let (a, b) = (index(leader), index(challenger));
        let c = index(self.left) - a - b;
        let ways =
            self.factorials[index(self.left)] - self.factorials[a] - self.factorials[b] - self.factorials[c];
        (ways + first[a] + second[b] + third[c] - all[index(self.left)]).exp()
    }
}

/// ln x↑n, for n from 0 to `most`. An x of 0 stands for nothing that could be drawn.
fn log_rising_factorials(start: f64, most: u32) -> Vec<f64> {
    let steps = (0..most).scan(0.0, |sum, step| {
        *sum += (start + f64::from(step)).ln();
        Some(*sum)
    });
    std::iter::once(0.0).chain(steps).collect()
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// How much likelier the second of two answers, which has as many votes at least, is to be the commoner one:
/// `2·I½(first+1, second+1) − 1`. For whole numbers that is a binomial's tail, `I½(a, b) = P(Bin(a+b−1, ½) ≥ a)`.
pub(super) fn edge(first: u32, second: u32) -> f64 {
    let tosses = first + second + 1;
    let mut term = (-f64::from(tosses) * std::f64::consts::LN_2).exp();
    let mut below = 0.0;
    for heads in 0..=first {
        below += term;
        term *= f64::from(tosses - heads) / f64::from(heads + 1);
    }
    // Rounding may leave less than nothing of a draw.
    (1.0 - 2.0 * below).max(0.0)
}
