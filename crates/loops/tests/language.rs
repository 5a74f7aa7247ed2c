//! Transformations keep results, and what is wrong is named.

use tilewright_core::dtype::DType::{F32, F64};
use tilewright_loops::kernel::{Axis, Mapping, declare, each, load, local, set, store};
use tilewright_loops::library::{Scale, measurement_set, test_set};
use tilewright_loops::{Array, Instance, LoopError, LoopKernel, Sizes, idx, reference, size};

fn product() -> LoopKernel {
    LoopKernel::new("product")
        .domain("i", "n")
        .domain("j", "n")
        .domain("k", "m")
        .array(Array::input("a", F32, ["n", "m"]))
        .array(Array::input("b", F32, ["m", "n"]).column_major())
        .array(Array::output("c", F32, ["n", "n"]))
        .stmt(each(
            "i",
            [each(
                "j",
                [
                    declare("sum", F32, 0.0),
                    each("k", [set("sum", load("a", ["i", "k"]).fma(load("b", ["k", "j"]), local("sum")))]),
                    store("c", ["i", "j"], local("sum")),
                ],
            )],
        ))
}

fn values(kernel: LoopKernel, sizes: &Sizes) -> Vec<f64> {
    let instance = Instance::new(kernel, sizes).unwrap();
    reference(&instance, &instance.workload(3).buffers).buffers.remove(0).values
}

#[test]
fn transformations_keep_results() {
    let sizes = Sizes::from([("n", 12), ("m", 8)]);
    let plain = values(product(), &sizes);
    let mapped = product().spread("j", 4, Axis::X, "jg", "jt").unwrap().spread("i", 3, Axis::Y, "ig", "it").unwrap();
    let split = mapped.clone().split("k", 4, "ko", "ki").unwrap();
    let fetched = split
        .clone()
        .prefetch("a", "ta", Some("ko"), &["it", "ki"], 1)
        .unwrap()
        .prefetch("b", "tb", Some("ko"), &["ki", "jt"], 0)
        .unwrap();
    let unrolled = fetched.clone().unroll("ki").unwrap();
    let joined = mapped.clone().split("k", 2, "ko", "ki").unwrap().vectorize("ki").unwrap();
    let exchanged = product().interchange("i", "j").unwrap();
    for kernel in [mapped, split, fetched, unrolled, joined, exchanged] {
        // The same order of sums in binary64: not even rounding differs.
        assert_eq!(values(kernel.clone(), &sizes), plain, "{kernel:?}");
    }
}

#[test]
fn halos_are_fetched_whole() {
    let u = |d: i64| load("u", [idx("i") + d]);
    let kernel = || {
        LoopKernel::new("three_points")
            .domain("i", "n")
            .array(Array::input("u", F64, [size("n") + 2]))
            .array(Array::output("to", F64, ["n"]))
            .stmt(each("i", [store("to", ["i"], u(0) + u(2) - u(1) * 2.0)]))
            .spread("i", 5, Axis::X, "ig", "it")
            .unwrap()
    };
    let tiled = kernel().prefetch("u", "tile", None, &["it"], 0).unwrap();
    assert_eq!(tiled.find_array("tile").unwrap().shape, [7.into()]);
    let sizes = Sizes::from([("n", 20)]);
    assert_eq!(values(tiled, &sizes), values(kernel(), &sizes));
}

#[test]
fn libraries_are_whole_at_every_scale() {
    for scale in [Scale::Tiny, Scale::Host, Scale::Gpu] {
        let (measured, tested) = (measurement_set(scale).unwrap(), test_set(scale).unwrap());
        let mut classes: Vec<&str> = measured.iter().map(|c| c.class).collect();
        classes.sort_unstable();
        classes.dedup();
        // The paper's nine, and seven beyond.
        assert_eq!(classes.len(), 16, "{classes:?}");
        let mut kernels: Vec<&str> = tested.iter().map(|c| c.class).collect();
        kernels.sort_unstable();
        kernels.dedup();
        assert_eq!(kernels, ["convolution", "finite_difference", "n_body", "skinny_matmul"]);
        assert!(scale == Scale::Tiny || tested.len() == 16);
    }
}

fn fault(result: Result<LoopKernel, LoopError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn faults_name_the_loop_or_the_array() {
    assert!(fault(product().split("x", 4, "a", "b")).contains("loop \"x\""));
    assert!(fault(product().split("k", 4, "i", "b")).contains("loop \"i\" is there twice"));
    assert!(fault(product().unroll("k")).contains("extent m is no constant"));
    assert!(fault(product().prefetch("a", "t", None, &["k"], 0)).contains("loop \"k\""));
    assert!(fault(product().prefetch("c", "t", None, &[], 0)).contains("array \"c\": it is written"));
    assert!(fault(product().interchange("j", "k")).contains("loop \"j\""));
    let bind = |kernel: LoopKernel, n: i64| Instance::new(kernel, &Sizes::from([("n", n), ("m", 8)])).unwrap_err();
    let spread = product().spread("i", 2, Axis::Y, "ig", "it").unwrap().spread("j", 4, Axis::X, "jg", "jt").unwrap();
    assert_eq!(bind(spread, 10).to_string(), "loop jg: 10 is not divisible by 4");
    assert!(bind(product(), 0).to_string().contains("loop i is 0"));
    assert!(bind(product(), i64::MAX).to_string().contains("loop i"));
    assert!(bind(product(), 1 << 20).to_string().contains("array"));
    let missing = Instance::new(product(), &Sizes::from([("n", 8)])).unwrap_err();
    assert!(missing.to_string().contains("size \"m\""), "{missing}");
}

#[test]
fn checks_find_what_is_wrong_in_statements() {
    let with = |stmt| {
        let kernel = LoopKernel::new("k")
            .domain("i", 8)
            .array(Array::input("a", F32, [8]))
            .array(Array::output("b", F32, [8]))
            .array(Array::output("d", F64, [8]))
            .stmt(each("i", [stmt]));
        Instance::new(kernel, &Sizes::new()).unwrap_err().to_string()
    };
    assert!(with(store("b", [idx("i") + 1], load("a", ["i"]))).contains("array \"b\": index 0 runs over 1..=8"));
    assert!(with(store("a", ["i"], 1.0)).contains("array \"a\": it is an input"));
    assert!(with(store("d", ["i"], load("a", ["i"]))).contains("\"a\": it is of f32 in a statement of f64"));
    assert!(with(store("b", ["i", "i"], 1.0)).contains("array \"b\": it has 1 dimensions, an access gives 2"));
    assert!(with(store("b", ["j"], 1.0)).contains("\"j\""));
    assert!(with(set("x", 1.0)).contains("local \"x\""));
    assert!(with(store("b", ["i"], local("x"))).contains("local \"x\""));
}

#[test]
fn mapped_loops_stand_outside() {
    let inside = product().map("k", Mapping::Thread(Axis::X)).unwrap();
    assert!(inside.check().unwrap_err().to_string().contains("loop \"k\""));
    let twice = product().map("i", Mapping::Group(Axis::X)).unwrap().map("j", Mapping::Group(Axis::X)).unwrap();
    assert!(twice.check().unwrap_err().to_string().contains("axis X"));
    let gap = product().map("i", Mapping::Group(Axis::Y)).unwrap();
    assert!(gap.check().unwrap_err().to_string().contains("axis Y"));
}

#[test]
fn rounding_is_bounded() {
    let kernel = product();
    let instance = Instance::new(kernel, &Sizes::from([("n", 4), ("m", 64)])).unwrap();
    let expected = reference(&instance, &instance.workload(1).buffers);
    for (value, bound) in expected.buffers[0].values.iter().zip(&expected.buffers[0].bounds) {
        assert!(*bound > 0.0 && *bound < 1e-4, "{value} +- {bound}");
    }
}
