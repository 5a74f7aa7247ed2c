//! Random artefacts, compiled alone and asked beside the crate's own answers.

use super::*;
use crate::artefact::{Device, Regret};
use crate::domain::{Domain, Field};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use tilewright_core::device::DeviceKind;
use tilewright_core::expr::{BinaryOp, CompareOp, Function};
use tilewright_core::space::Config;

fn domain() -> Domain {
    let field = |name: &str, words: &[Value]| Field { name: name.to_owned(), words: words.to_vec() };
    let words = [Value::from("nn"), Value::from("int"), Value::from(1), Value::from("a-b")];
    Domain {
        fields: vec![field("m", &[]), field("type", &[]), field("int", &[]), field("layout", &words)],
        fixed: Config(vec![("dtype".into(), "f32".into())]),
        order: ["m", "type", "int", "dtype", "layout"].map(String::from).to_vec(),
    }
}

/// An expression, of any kind that the language has.
fn expression(rng: &mut ChaCha8Rng, depth: u32) -> Expr {
    let kind = if depth == 0 { rng.random_range(0..3) } else { rng.random_range(0..12) };
    let part = |rng: &mut ChaCha8Rng| expression(rng, depth.saturating_sub(1));
    match kind {
        0 => Expr::Name(["m", "type", "int"][rng.random_range(0..3)].into()),
        1 => Expr::Const(Value::Int([0, 1, 2, 7, -3, 64, i64::MAX, i64::MIN][rng.random_range(0..8)])),
        2 => Expr::Compare(
            Expr::Name("layout".into()).into(),
            vec![([CompareOp::Eq, CompareOp::Ne][rng.random_range(0..2)], Expr::Const("int".into()))],
        ),
        3 => Expr::Neg(part(rng).into()),
        4 => Expr::Not(part(rng).into()),
        5 | 6 => {
            let op = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::FloorDiv, BinaryOp::Rem];
            Expr::Binary(op[rng.random_range(0..5)], [part(rng), part(rng)].into())
        }
        7 => {
            let op = |rng: &mut ChaCha8Rng| CompareOp::ALL[rng.random_range(0..6)];
            let rest = (0..rng.random_range(1..3)).map(|_| (op(rng), part(rng))).collect();
            Expr::Compare(part(rng).into(), rest)
        }
        8 => Expr::In(part(rng).into(), (0..rng.random_range(1..4)).map(|_| part(rng)).collect(), rng.random()),
        9 => {
            let list = (0..2).map(|_| part(rng)).collect();
            if rng.random() { Expr::And(list) } else { Expr::Or(list) }
        }
        10 => {
            let (function, count) = [(Function::Min, 2), (Function::Max, 3), (Function::Abs, 1), (Function::Floor, 1)]
                [rng.random_range(0..4)];
            Expr::Call(function, (0..count).map(|_| part(rng)).collect())
        }
        _ => Expr::If([part(rng), part(rng), part(rng)].into()),
    }
}

fn condition(rng: &mut ChaCha8Rng, domain: &Domain) -> Condition {
    loop {
        // As rules are: folded, and read back from text.
        let expr = expression(rng, 3).fold(&|_| None);
        let text = expr.to_string();
        let Ok(expr) = text.parse::<Expr>() else { continue };
        if expr.names().is_empty() || !is_expressible(&expr, domain) {
            continue;
        }
        // Mostly one that some inputs fulfil.
        let simple = ["m % 3 == 0", "int < m", "layout == 'nn' or m * type < 9000", "type // 7 + m > 20"]
            [rng.random_range(0..4)];
        let text = if rng.random() { format!("{simple} or ({text})") } else { text };
        return Condition { rule: "r".into(), text, is_needed: rng.random(), is_common: rng.random() };
    }
}

fn a_test(rng: &mut ChaCha8Rng) -> Test {
    let threshold = |rng: &mut ChaCha8Rng| [0, 5, -4, 100, 1 << 40, i64::MAX - 1, i64::MIN][rng.random_range(0..7)];
    match rng.random_range(0..4) {
        0 => {
            let of = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..3)).collect();
            Test::Product { of, at_most: threshold(rng) }
        }
        1 => Test::Ratio { left: 0, by: threshold(rng), right: rng.random_range(1..3), times: 1 },
        2 => Test::Multiple { field: rng.random_range(0..3), of: [2, 3, 16][rng.random_range(0..3)] },
        _ => Test::Is { field: 3, word: rng.random_range(0..4) },
    }
}

fn tree(rng: &mut ChaCha8Rng, depth: u32, choices: usize) -> Tree {
    if depth == 0 || rng.random_range(0..5) == 0 {
        return Tree::Leaf((0..rng.random_range(1..4)).map(|_| rng.random_range(0..choices)).collect());
    }
    Tree::Branch {
        test: a_test(rng),
        yes: tree(rng, depth - 1, choices).into(),
        no: tree(rng, depth - 1, choices).into(),
    }
}

fn contents(rng: &mut ChaCha8Rng) -> Contents {
    let domain = domain();
    let values: [[Value; 4]; 3] = [
        [1.into(), "for".into(), true.into(), Value::Float(0.5)],
        [i64::MIN.into(), "a\"\\?é\n".into(), false.into(), Value::Float(-1e300)],
        [64.into(), "".into(), false.into(), Value::Int(2)],
    ];
    let mut choices: Vec<Choice> = (0..6)
        .map(|at| {
            let values = &values[at % 3];
            let config =
                ["t m", "order", "pack", "share"].iter().zip(values).map(|(n, v)| ((*n).to_owned(), v.clone()));
            let mut config: Vec<(String, Value)> = config.collect();
            // Their numbers tell them apart.
            config.push(("number".into(), Value::from(at)));
            let conditions = (0..rng.random_range(1..4)).map(|_| condition(rng, &domain)).collect();
            Choice { config: Config(config), conditions }
        })
        .collect();
    choices[5].conditions.iter_mut().for_each(|condition| condition.is_common = true);
    let device = Device {
        id: "cpu".into(),
        name: "A \"device\" */ \\ of @home".into(),
        kind: DeviceKind::Cpu,
        driver: "1".into(),
        fingerprint: "0123".into(),
        threads: Some(1),
    };
    Contents {
        kernel: "scale.toy.1".into(),
        computation: "scale".into(),
        device,
        domain,
        inputs: vec![Config::default()],
        regret: Regret { held_out: Loss::of(&[0.01]), ..Regret::default() },
        tree: tree(rng, 4, choices.len()),
        fallback: vec![3, 4],
        last: rng.random::<bool>().then_some(5),
        parameters: ["t m", "order", "pack", "share", "number"].map(String::from).to_vec(),
        choices,
    }
}

/// Ordinary sizes, and the ends of what there is.
fn numbers(rng: &mut ChaCha8Rng) -> Vec<i64> {
    let mut size = || match rng.random_range(0..8) {
        0 => [i64::MIN, i64::MAX, i64::MIN + 1, 0, -1][rng.random_range(0..5)],
        1 => rng.random_range(-20..20),
        2 => rng.random(),
        _ => rng.random_range(0..300),
    };
    let sizes = [size(), size(), size()];
    [&sizes[..], &[rng.random_range(0..4)]].concat()
}

fn run(program: &str, folder: &Path, args: &[&str]) -> String {
    let out = Command::new(program).args(args).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

const C_FLAGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-O0"];

/// The answers of the C code, as numbers of configurations.
fn answers_of_c(folder: &Path, text: &str, inputs: &[Vec<i64>]) -> Vec<i64> {
    std::fs::write(folder.join("tuned.h"), text).unwrap();
    let literal = |n: &i64| if *n == i64::MIN { "INT64_MIN".into() } else { format!("INT64_C({n})") };
    let mut main = "#include \"tuned.h\"\n#include <stdio.h>\nstatic const int64_t inputs[][4] = {\n".to_owned();
    for input in inputs {
        let _ = writeln!(main, "{{ {} }},", input.iter().map(literal).collect::<Vec<_>>().join(", "));
    }
    main += "};\nint main(void) {\n    for (unsigned i = 0; i < sizeof inputs / sizeof *inputs; i++) {\n";
    main += "        const int64_t *n = inputs[i];\n        scale_toy_config c = scale_toy_choose(n[0], n[1], n[2], n[3]);\n";
    main += "        if (c.index >= 0 && c.number != c.index) return 1;\n        printf(\"%d\\n\", c.index);\n    }\n    return 0;\n}\n";
    std::fs::write(folder.join("main.c"), main).unwrap();
    // Alone, and with a program; as C++ too.
    run("cc", folder, &[&["-std=c99", "-pedantic", "-fsyntax-only", "-x", "c"][..], &C_FLAGS, &["tuned.h"]].concat());
    run(
        "cc",
        folder,
        &[
            &["-std=c99", "-pedantic", "-fsanitize=undefined", "-fno-sanitize-recover"][..],
            &C_FLAGS,
            &["-o", "c", "main.c"],
        ]
        .concat(),
    );
    run("./c", folder, &[]).lines().map(|line| line.parse().unwrap()).collect()
}

fn answers_of_rust(folder: &Path, text: &str, inputs: &[Vec<i64>]) -> Vec<i64> {
    std::fs::write(folder.join("tuned.rs"), text).unwrap();
    let mut main = "#![forbid(unsafe_code)]\n#![deny(warnings)]\nmod tuned;\nuse tuned::{DEVICE, FINGERPRINT, Input, KERNEL, Layout, REGRET};\n".to_owned();
    main += "const INPUTS: &[[i64; 4]] = &[\n";
    inputs.iter().for_each(|input| main += &format!("{input:?},\n"));
    main += "];\nfn main() {\n    assert!(!KERNEL.is_empty() && !DEVICE.is_empty() && FINGERPRINT == \"0123\" && REGRET.is_some());\n";
    main += "    for n in INPUTS {\n        let i = Input { m: n[0], type_2: n[1], int: n[2], layout: Layout::ALL[n[3] as usize] };\n";
    main += "        let at = tuned::choose_index(&i);\n        assert_eq!(tuned::choose(&i).map(|c| c.number), at.map(|at| at as i64));\n";
    main += "        println!(\"{}\", at.map_or(-1, |at| at as i64));\n    }\n}\n";
    std::fs::write(folder.join("main.rs"), main).unwrap();
    run(
        "rustc",
        folder,
        &["--edition", "2021", "--crate-type", "lib", "-D", "warnings", "--emit", "metadata", "tuned.rs"],
    );
    run(
        "rustc",
        folder,
        &["--edition", "2021", "-C", "debug-assertions=on", "-C", "opt-level=0", "-o", "r", "main.rs"],
    );
    run("./r", folder, &[]).lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn compiled_code_answers_as_the_crate_does() {
    let mut different = 0;
    for seed in 0..4 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let artefact = Artefact::new(contents(&mut rng)).unwrap();
        let inputs: Vec<Vec<i64>> = (0..1000).map(|_| numbers(&mut rng)).collect();
        let own: Vec<i64> = inputs.iter().map(|n| artefact.choose_by(n).map_or(-1, |at| at as i64)).collect();
        different += own.iter().collect::<HashSet<_>>().len();
        let folder = tempfile::tempdir().unwrap();
        let [c, rust, cuda] = [Target::C, Target::Rust, Target::Cuda].map(|target| emit(&artefact, target).unwrap());
        assert_eq!(answers_of_c(folder.path(), &c, &inputs), own, "seed {seed}");
        assert_eq!(answers_of_rust(folder.path(), &rust, &inputs), own, "seed {seed}");
        assert_eq!(answers_of_c(folder.path(), &cuda, &inputs), own, "seed {seed}");
    }
    assert!(different >= 16, "{different} different answers test little");
}

/// What a CUDA compiler sees, as far as a compiler of the host does.
#[test]
fn configurations_are_dispatched_at_compile_time() {
    let artefact = Artefact::new(contents(&mut ChaCha8Rng::seed_from_u64(1))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tuned.cuh"), emit(&artefact, Target::Cuda).unwrap()).unwrap();
    let main = "#define __CUDACC__ 1\n#define __host__\n#define __device__\n#include \"tuned.cuh\"\n#include <cstdio>
template <int N> struct constant { static int value() { return N; } };
int main() {
    int seen = -1, all = 0;
    for (int at = -1; at <= scale_toy_count; at++) {
        const int found = scale_toy_dispatch(at, [&](auto c) { seen = constant<decltype(c)::number>::value(); });
        all += found == 0 && seen == at && scale_toy_config_of(at).number == at;
    }
    return all == scale_toy_count ? 0 : 1;
}\n";
    std::fs::write(folder.path().join("main.cpp"), main).unwrap();
    run("c++", folder.path(), &[&["-std=c++17"][..], &C_FLAGS, &["-o", "cuda", "main.cpp"]].concat());
    run("./cuda", folder.path(), &[]);
}

#[test]
fn an_artefact_is_read_back_and_a_damaged_one_is_not() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let artefact = Artefact::new(contents(&mut rng)).unwrap();
    let text = emit(&artefact, Target::Json).unwrap();
    assert!(Artefact::is_one(&text) && !Artefact::is_one("{}") && !Artefact::is_one("no JSON"));
    let again = Artefact::read(&text).unwrap();
    assert_eq!(again.contents(), artefact.contents());
    assert!(Artefact::read(&text.replace("scale.toy.1", "scale.toy.2")).is_err());
    let wrong = |change: &dyn Fn(&mut Contents)| {
        let mut contents = artefact.contents().clone();
        change(&mut contents);
        Artefact::new(contents).unwrap_err().to_string()
    };
    assert!(wrong(&|c| c.tree = Tree::Leaf(vec![6])).starts_with("tree: "));
    let test = Test::Product { of: vec![4], at_most: 0 };
    let asks = Tree::Branch { test, yes: Tree::Leaf(vec![]).into(), no: Tree::Leaf(vec![]).into() };
    assert!(wrong(&|c| c.tree = asks.clone()).starts_with("tree: "));
    assert!(wrong(&|c| c.fallback = vec![6]).starts_with("fallback: "));
    assert!(wrong(&|c| c.choices.clear()).contains("beyond the 0"));
    assert!(wrong(&|c| c.choices[0].conditions[0].text = "q < 3".into()).starts_with("choices: "));
    assert!(wrong(&|c| c.choices[0].config.0.clear()).starts_with("choices: "));
}

#[test]
fn other_inputs_and_other_devices_are_refused() {
    let artefact = Artefact::new(contents(&mut ChaCha8Rng::seed_from_u64(9))).unwrap();
    let refused = |text: &str| artefact.choose(&Config::parse(text).unwrap()).unwrap_err().to_string();
    assert_eq!(refused("m=1,type=2"), "int: missing, and the choice depends on it");
    assert_eq!(refused("m=1,q=2"), "q: the artefact knows no such field");
    assert_eq!(refused("dtype=f64"), "dtype: f64 is not among what the artefact was made for: f32");
    assert_eq!(refused("m=1.5"), "m: 1.5 is not among what the artefact was made for: integers");
    let words = "layout: tt is not among what the artefact was made for: nn, int, 1, a-b";
    assert_eq!(refused("m=1,type=2,int=3,layout=tt"), words);
    assert!(artefact.choose(&Config::parse("m=1,type=2,int=3,layout=1,dtype=f32").unwrap()).is_ok());
    let other = tilewright_testkit::toy::device();
    let said = artefact.expect("scale.toy.1", &other).unwrap_err().to_string();
    assert!(said.contains("of @home") && said.contains("toy device"), "{said}");
}
