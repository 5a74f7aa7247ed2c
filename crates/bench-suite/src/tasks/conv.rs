//! Task sets of convolutions: the shapes of ISAAC's Table 5 and of DeepBench.

/// Images, channels, rows and columns of an image; output channels, rows and columns of a filter; padding and stride of both
/// directions.
pub(super) type Sizes = [usize; 9];

/// The names of [`Sizes`] in inputs.
pub(super) const NAMES: [&str; 9] = ["n", "c", "h", "w", "k", "r", "s", "pad", "stride"];

/// The 14 convolutions of Table 5.
///
/// The table gives N, P, Q, K, C, R and S: the outputs, and neither the images nor padding and stride. These are the least images
/// that have such outputs with the padding and the stride of the layer of DeepBench that each one is. R are rows of a filter and S its
/// columns, as P and Q are those of an output: 161 rows give 79 by 5 taps and a stride of 2, not by 20. Conv11 and Conv12 are as the
/// table prints them, where K and Q seem to have changed places: DeepBench's layers of 64 channels have 128 output channels and
/// 39 x 174 outputs, and are in [`deepbench`].
pub(super) fn isaac_table5() -> Vec<(String, Sizes)> {
    numbered("conv", &TABLE5)
}

const TABLE5: [Sizes; 14] = [
    [16, 1, 161, 700, 32, 5, 20, 0, 2],
    [16, 32, 79, 341, 32, 5, 10, 0, 2],
    [16, 16, 24, 240, 32, 3, 3, 1, 1],
    [16, 32, 12, 120, 64, 3, 3, 1, 1],
    [8, 64, 54, 54, 64, 3, 3, 1, 1],
    [8, 128, 27, 27, 128, 3, 3, 1, 1],
    [16, 512, 14, 14, 48, 5, 5, 2, 1],
    [16, 832, 7, 7, 128, 5, 5, 2, 1],
    [8, 64, 112, 112, 128, 3, 3, 1, 1],
    [8, 128, 56, 56, 256, 3, 3, 1, 1],
    [16, 64, 257, 79, 174, 5, 5, 1, 2],
    [16, 128, 513, 39, 87, 5, 5, 1, 2],
    [16, 512, 7, 7, 512, 3, 3, 1, 1],
    [16, 1024, 14, 14, 2048, 1, 1, 0, 2],
];

/// The distinct convolutions of DeepBench's list for training, named by what they come from.
///
/// Its results of different devices disagree about which side of speech recognition's filters is which. These have 5 rows, and 20 or 10
/// columns: only so are the outputs of the first layer, 79 x 341, the images of the second. Left out are two of residual networks whose
/// filters of one tap are padded by 3: most of their outputs would see nothing but zeros. Their layers without padding are here.
pub(super) fn deepbench() -> Vec<(String, Sizes)> {
    let families: [(&str, &[Sizes]); 6] = [
        ("speech", &SPEECH),
        ("ocr", &OCR),
        ("face", &FACE),
        ("vision", &VISION),
        ("speaker", &SPEAKER),
        ("resnet", &RESNET),
    ];
    families.into_iter().flat_map(|(family, sizes)| numbered(family, sizes)).collect()
}

fn numbered(family: &str, sizes: &[Sizes]) -> Vec<(String, Sizes)> {
    sizes.iter().enumerate().map(|(at, sizes)| (format!("{family}-{}", at + 1), *sizes)).collect()
}

/// Speech recognition (DeepSpeech).
const SPEECH: [Sizes; 8] = [
    [4, 1, 161, 700, 32, 5, 20, 0, 2],
    [8, 1, 161, 700, 32, 5, 20, 0, 2],
    [16, 1, 161, 700, 32, 5, 20, 0, 2],
    [32, 1, 161, 700, 32, 5, 20, 0, 2],
    [4, 32, 79, 341, 32, 5, 10, 0, 2],
    [8, 32, 79, 341, 32, 5, 10, 0, 2],
    [16, 32, 79, 341, 32, 5, 10, 0, 2],
    [32, 32, 79, 341, 32, 5, 10, 0, 2],
];

/// Reading text.
const OCR: [Sizes; 4] = [
    [16, 1, 48, 480, 16, 3, 3, 1, 1],
    [16, 16, 24, 240, 32, 3, 3, 1, 1],
    [16, 32, 12, 120, 64, 3, 3, 1, 1],
    [16, 64, 6, 60, 128, 3, 3, 1, 1],
];

/// Recognising faces.
const FACE: [Sizes; 5] = [
    [8, 3, 108, 108, 64, 3, 3, 1, 2],
    [8, 64, 54, 54, 64, 3, 3, 1, 1],
    [8, 128, 27, 27, 128, 3, 3, 1, 1],
    [8, 128, 14, 14, 256, 3, 3, 1, 1],
    [8, 256, 7, 7, 512, 3, 3, 1, 1],
];

/// Vision (VGG, GoogLeNet).
const VISION: [Sizes; 19] = [
    [8, 3, 224, 224, 64, 3, 3, 1, 1],
    [8, 64, 112, 112, 128, 3, 3, 1, 1],
    [8, 128, 56, 56, 256, 3, 3, 1, 1],
    [8, 256, 28, 28, 512, 3, 3, 1, 1],
    [8, 512, 14, 14, 512, 3, 3, 1, 1],
    [8, 512, 7, 7, 512, 3, 3, 1, 1],
    [16, 3, 224, 224, 64, 3, 3, 1, 1],
    [16, 64, 112, 112, 128, 3, 3, 1, 1],
    [16, 128, 56, 56, 256, 3, 3, 1, 1],
    [16, 256, 28, 28, 512, 3, 3, 1, 1],
    [16, 512, 14, 14, 512, 3, 3, 1, 1],
    [16, 512, 7, 7, 512, 3, 3, 1, 1],
    [16, 3, 224, 224, 64, 7, 7, 3, 2],
    [16, 192, 28, 28, 32, 5, 5, 2, 1],
    [16, 192, 28, 28, 64, 1, 1, 0, 1],
    [16, 512, 14, 14, 48, 5, 5, 2, 1],
    [16, 512, 14, 14, 192, 1, 1, 0, 1],
    [16, 832, 7, 7, 256, 1, 1, 0, 1],
    [16, 832, 7, 7, 128, 5, 5, 2, 1],
];

/// Recognising speakers.
const SPEAKER: [Sizes; 8] = [
    [16, 1, 161, 700, 64, 5, 5, 1, 2],
    [16, 64, 80, 350, 64, 3, 3, 1, 1],
    [16, 64, 80, 350, 128, 5, 5, 1, 2],
    [16, 128, 40, 175, 128, 3, 3, 1, 1],
    [16, 128, 40, 175, 256, 5, 5, 1, 2],
    [16, 256, 20, 84, 256, 3, 3, 1, 1],
    [16, 256, 20, 84, 512, 5, 5, 1, 2],
    [16, 512, 10, 42, 512, 3, 3, 1, 1],
];

/// Residual networks.
const RESNET: [Sizes; 44] = [
    [8, 64, 56, 56, 64, 3, 3, 1, 1],
    [8, 64, 56, 56, 256, 1, 1, 0, 2],
    [8, 128, 28, 28, 128, 3, 3, 1, 1],
    [8, 128, 28, 28, 512, 1, 1, 0, 2],
    [8, 256, 14, 14, 256, 1, 1, 0, 1],
    [8, 256, 14, 14, 256, 3, 3, 1, 1],
    [8, 256, 14, 14, 1024, 1, 1, 0, 2],
    [8, 512, 7, 7, 512, 1, 1, 0, 1],
    [16, 64, 56, 56, 64, 3, 3, 1, 1],
    [16, 64, 56, 56, 256, 1, 1, 0, 2],
    [16, 128, 28, 28, 128, 3, 3, 1, 1],
    [16, 128, 28, 28, 512, 1, 1, 0, 2],
    [16, 256, 14, 14, 256, 1, 1, 0, 1],
    [16, 256, 14, 14, 256, 3, 3, 1, 1],
    [16, 256, 14, 14, 1024, 1, 1, 0, 2],
    [16, 512, 7, 7, 512, 1, 1, 0, 1],
    [8, 64, 112, 112, 64, 1, 1, 0, 1],
    [8, 64, 56, 56, 256, 1, 1, 0, 1],
    [8, 256, 56, 56, 64, 1, 1, 0, 1],
    [8, 256, 56, 56, 128, 1, 1, 0, 2],
    [8, 128, 28, 28, 512, 1, 1, 0, 1],
    [8, 512, 28, 28, 128, 1, 1, 0, 1],
    [8, 512, 28, 28, 256, 1, 1, 0, 2],
    [8, 256, 14, 14, 1024, 1, 1, 0, 1],
    [8, 512, 28, 28, 1024, 1, 1, 0, 2],
    [8, 1024, 14, 14, 256, 1, 1, 0, 1],
    [8, 1024, 14, 14, 512, 1, 1, 0, 2],
    [8, 512, 7, 7, 2048, 1, 1, 0, 1],
    [8, 1024, 14, 14, 2048, 1, 1, 0, 2],
    [8, 2048, 7, 7, 512, 1, 1, 0, 1],
    [16, 64, 112, 112, 64, 1, 1, 0, 1],
    [16, 64, 56, 56, 256, 1, 1, 0, 1],
    [16, 256, 56, 56, 64, 1, 1, 0, 1],
    [16, 256, 56, 56, 128, 1, 1, 0, 2],
    [16, 128, 28, 28, 512, 1, 1, 0, 1],
    [16, 512, 28, 28, 128, 1, 1, 0, 1],
    [16, 512, 28, 28, 256, 1, 1, 0, 2],
    [16, 256, 14, 14, 1024, 1, 1, 0, 1],
    [16, 512, 28, 28, 1024, 1, 1, 0, 2],
    [16, 1024, 14, 14, 256, 1, 1, 0, 1],
    [16, 1024, 14, 14, 512, 1, 1, 0, 2],
    [16, 512, 7, 7, 2048, 1, 1, 0, 1],
    [16, 1024, 14, 14, 2048, 1, 1, 0, 2],
    [16, 2048, 7, 7, 512, 1, 1, 0, 1],
];

#[cfg(test)]
mod tests {
    use crate::tasks::TaskSet;
    use std::collections::HashSet;
    use std::sync::Arc;
    use tilewright_baselines::kernels;
    use tilewright_core::computation::Computation;
    use tilewright_core::device::DeviceSpec;
    use tilewright_core::problem::AnyKernel;
    use tilewright_core::space::Config;
    use tilewright_cpu::CpuDevice;
    use tilewright_ops::conv::{Conv, ConvInput};

    /// A kernel of convolutions: one of those that are always there.
    fn kernel() -> (Arc<dyn AnyKernel>, Arc<DeviceSpec>) {
        let spec = CpuDevice::new(1).unwrap().spec().clone();
        (kernels("conv", &spec).remove(0), spec)
    }

    fn inputs(set: TaskSet, fixed: &str) -> Vec<(String, ConvInput)> {
        let tasks = set.tasks(&*kernel().0, &Config::parse(fixed).unwrap()).unwrap();
        tasks.into_iter().map(|task| (task.name, Conv.parse(&task.input).unwrap())).collect()
    }

    #[test]
    fn table5_has_the_products_of_the_paper() {
        let products = [
            (431_024, 100),
            (100_928, 1600),
            (92_160, 144),
            (23_040, 288),
            (23_328, 576),
            (5_832, 1152),
            (3_136, 12_800),
            (784, 20_800),
            (100_352, 576),
            (25_088, 1152),
            (79_872, 1600),
            (77_824, 3200),
            (784, 4608),
            (784, 1024),
        ];
        let inputs = inputs(TaskSet::IsaacTable5, "");
        assert_eq!(inputs.len(), products.len());
        for ((name, input), (npq, crs)) in inputs.iter().zip(products) {
            let [p, q] = input.output();
            assert_eq!((input.n * p * q, input.c * input.r * input.s), (npq, crs), "{name}");
        }
        // What the table prints beside the products.
        let outputs =
            [(79, 341, 32), (38, 166, 32), (24, 240, 32), (12, 120, 64), (54, 54, 64), (27, 27, 128), (14, 14, 48)];
        let more =
            [(7, 7, 128), (112, 112, 128), (56, 56, 256), (128, 39, 174), (256, 19, 87), (7, 7, 512), (7, 7, 2048)];
        let found = inputs.iter().map(|(_, input)| (input.output()[0], input.output()[1], input.k));
        assert!(found.eq(outputs.into_iter().chain(more)));
    }

    #[test]
    fn deepbench_has_families_of_distinct_layers_that_follow_each_other() {
        let inputs = inputs(TaskSet::DeepBench, "");
        let distinct: HashSet<&ConvInput> = inputs.iter().map(|(_, input)| input).collect();
        assert_eq!((inputs.len(), distinct.len()), (88, 88));
        let named = |name: &str| &inputs.iter().find(|(other, _)| other == name).unwrap().1;
        for at in 1..=4 {
            let (first, second) = (named(&format!("speech-{at}")), named(&format!("speech-{}", at + 4)));
            assert_eq!((first.output(), first.k), ([second.h, second.w], second.c), "speech");
        }
        let (first, second) = (named("speaker-1"), named("speaker-2"));
        assert_eq!((first.output()[0].div_ceil(2) * 2, first.k), (second.h, second.c), "speaker");
        let of = |family: &str| inputs.iter().filter(|(name, _)| name.starts_with(family)).count();
        let counts = ["speech-", "ocr-", "face-", "vision-", "speaker-", "resnet-"].map(of);
        assert_eq!(counts, [8, 4, 5, 19, 8, 44]);
    }

    #[test]
    fn layout_and_direction_may_be_fixed() {
        let (kernel, spec) = kernel();
        for set in [TaskSet::IsaacTable5, TaskSet::DeepBench] {
            let fixed = "layout=nhwc,direction=filter,dtype=f64";
            for (name, input) in inputs(set, fixed) {
                let words = (input.layout.name(), input.direction.name(), input.dtype().name());
                assert_eq!(words, ("nhwc", "filter", "f64"), "{name}");
            }
            let wider = inputs(set, "n=1");
            assert!(wider.iter().all(|(_, input)| input.n == 1), "a fixed size is fixed");
            for task in set.tasks(&*kernel, &Config::default()).unwrap() {
                assert!(kernel.problem(&spec, &task.input).is_ok(), "{}", task.name);
            }
        }
    }
}
