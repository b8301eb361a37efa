//! Which experts each row goes through, and with which share: the largest of the router's numbers, and a softmax.

use crate::expert_shape::ExpertShape;
use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};

pub(crate) struct RouteExperts(Kernel);

impl RouteExperts {
    pub(crate) fn new(gpu: &Gpu, experts: ExpertShape) -> Self {
        let constants = [
            ("EXPERTS", f64::from(experts.count)),
            ("USED", f64::from(experts.used)),
            ("NORMALISED", f64::from(u8::from(experts.normalised))),
        ];
        let source = KernelSource {
            label: "route",
            wgsl: include_str!("route.wgsl"),
            constants: &constants,
            bindings: &[BufferAccess::Read, BufferAccess::Write],
            immediates: 1,
        };
        Self(Kernel::new(gpu, &source))
    }

    /// `chosen` gets two words for each of a row's choices: the expert, and its share as a float.
    pub(crate) fn bind(&self, gpu: &Gpu, numbers: &wgpu::Buffer, chosen: &wgpu::Buffer) -> wgpu::BindGroup {
        self.0.bind(gpu, &[numbers, chosen])
    }

    pub(crate) fn run(
        &self,
        gpu: &Gpu,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        rows: u32,
    ) {
        self.0.run(pass, bound, &[rows], (gpu.workgroups(rows), 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_grain, submit};
    use crate::ops::testing::{close, numbers};

    /// By sorting all.
    fn reference(numbers: &[f32], experts: ExpertShape) -> (Vec<u32>, Vec<f64>) {
        let (mut chosen, mut shares) = (Vec::new(), Vec::new());
        for row in numbers.chunks(experts.count as usize) {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
            let used = &order[..experts.used as usize];
            let exp = |expert: &usize| (f64::from(row[*expert]) - f64::from(row[used[0]])).exp();
            let total: f64 = if experts.normalised { used } else { &order[..] }.iter().map(exp).sum();
            chosen.extend(used.iter().map(|expert| u32::try_from(*expert).unwrap()));
            shares.extend(used.iter().map(|expert| exp(expert) / total));
        }
        (chosen, shares)
    }

    fn check(rows: u32, count: u32, used: u32, number: impl Fn(f32) -> f32) {
        let numbers: Vec<f32> = numbers(4, rows * count).into_iter().map(number).collect();
        in_every_grain(|gpu| {
            for normalised in [true, false] {
                let experts = ExpertShape { count, used, normalised };
                let chosen = gpu.buffer("chosen", u64::from(rows * used) * 8);
                let route = RouteExperts::new(gpu, experts);
                let bound = route.bind(gpu, &gpu.buffer_with("numbers", &numbers), &chosen);
                submit(gpu, |pass| route.run(gpu, pass, &bound, rows));
                let got: Vec<[u32; 2]> = gpu.read(&chosen, (rows * used) as usize).unwrap();
                let (expected, shares) = reference(&numbers, experts);
                assert_eq!(got.iter().map(|choice| choice[0]).collect::<Vec<_>>(), expected);
                let got: Vec<_> = got.iter().map(|choice| f32::from_bits(choice[1])).collect();
                close(&got, &shares, 1e-6);
            }
        });
    }

    #[test]
    fn a_row_goes_through_the_experts_of_its_largest_numbers() {
        for (rows, count, used) in [(1, 1, 1), (3, 4, 4), (5, 7, 3), (17, 60, 4), (9, 128, 8), (2, 513, 10)] {
            check(rows, count, used, |number| number * 6.0);
        }
    }

    #[test]
    fn of_equal_numbers_the_first_comes_first() {
        check(5, 33, 9, |number| (number * 2.0).round());
        check(2, 9, 9, |_| 0.5);
        check(2, 9, 3, |_| -1e30);
    }

    #[test]
    fn a_row_without_numbers_names_experts_that_there_are() {
        in_every_grain(|gpu| {
            let chosen = gpu.buffer("chosen", 3 * 8);
            let route = RouteExperts::new(gpu, ExpertShape { count: 5, used: 3, normalised: true });
            let bound = route.bind(gpu, &gpu.buffer_with("numbers", &[f32::NAN; 5]), &chosen);
            submit(gpu, |pass| route.run(gpu, pass, &bound, 1));
            let got: Vec<[u32; 2]> = gpu.read(&chosen, 3).unwrap();
            assert!(got.iter().all(|choice| choice[0] < 5), "{got:?}");
        });
    }
}
