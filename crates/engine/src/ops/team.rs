//! Puts those of a step's rows together that go through the same expert.

use crate::expert_shape::ExpertShape;
use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};

pub(crate) struct TeamPlaces {
    kernel: Kernel,
    experts: ExpertShape,
}

/// The most teams of four that so many places make: every expert's last one may have a single place.
pub(crate) fn teams_max(places: u32, experts: u32) -> u32 {
    (places + 3 * places.min(experts)) / 4
}

impl TeamPlaces {
    pub(crate) fn new(gpu: &Gpu, experts: ExpertShape) -> Self {
        let source = KernelSource {
            label: "team",
            wgsl: include_str!("team.wgsl"),
            constants: &[("EXPERTS", f64::from(experts.count))],
            bindings: &[BufferAccess::Read, BufferAccess::Write],
            immediates: 2,
        };
        Self { kernel: Kernel::new(gpu, &source), experts }
    }

    /// `teams` gets four words for each of [`teams_max`].
    pub(crate) fn bind(&self, gpu: &Gpu, chosen: &wgpu::Buffer, teams: &wgpu::Buffer) -> wgpu::BindGroup {
        self.kernel.bind(gpu, &[chosen, teams])
    }

    /// Of so many places.
    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: &wgpu::BindGroup, places: u32) {
        self.kernel.run(pass, bound, &[places, teams_max(places, self.experts.count)], (1, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_grain, submit};

    fn check(places: u32, count: u32, expert: impl Fn(u32) -> u32) {
        let chosen: Vec<[u32; 2]> = (0..places).map(|place| [expert(place) % count, 7]).collect();
        in_every_grain(|gpu| {
            let most = teams_max(places, count);
            let teams = gpu.buffer_with("teams", &vec![3u32; most as usize * 4]);
            let team = TeamPlaces::new(gpu, ExpertShape { count, used: 1, normalised: true });
            let bound = team.bind(gpu, &gpu.buffer_with("chosen", &chosen), &teams);
            submit(gpu, |pass| team.run(pass, &bound, places));
            let got: Vec<[u32; 4]> = gpu.read(&teams, most as usize).unwrap();
            let mut met = Vec::new();
            for members in got.iter().map(|team| team.iter().filter(|place| **place != u32::MAX)) {
                let experts: Vec<_> = members.clone().map(|place| chosen[*place as usize][0]).collect();
                assert!(experts.windows(2).all(|pair| pair[0] == pair[1]), "{experts:?}");
                met.extend(members.copied());
            }
            // A team begins with its first place, since one without it is skipped.
            assert!(got.iter().all(|team| team[0] != u32::MAX || *team == [u32::MAX; 4]), "{got:?}");
            met.sort_unstable();
            assert_eq!(met, (0..places).collect::<Vec<_>>());
            let teams = |expert| chosen.iter().filter(|choice| choice[0] == expert).count().div_ceil(4);
            let fewest: usize = (0..count).map(teams).sum();
            assert_eq!(got.iter().filter(|team| team[0] != u32::MAX).count(), fewest);
        });
    }

    #[test]
    fn places_of_one_expert_stand_together_and_each_stands_once() {
        for (places, count) in [(1, 1), (3, 5), (64, 8), (200, 128), (1088, 128), (37, 513)] {
            check(places, count, |place| place.wrapping_mul(2_654_435_761) >> 7);
        }
    }

    #[test]
    fn experts_that_all_or_nobody_chose_do_not_matter() {
        check(130, 8, |_| 3);
        check(131, 64, |place| place * place / 700);
    }

    /// The most: three experts with one place more than whole teams, and no other.
    #[test]
    fn there_is_room_for_every_team() {
        assert_eq!([teams_max(1, 9), teams_max(3, 9), teams_max(7, 3), teams_max(8, 2)], [1, 3, 4, 3]);
    }
}
