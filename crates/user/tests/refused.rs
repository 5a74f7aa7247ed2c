//! What is wrong with a description is told by field, line and column.

mod described;

use described::{DESCRIPTION, folder, open};

/// The error of the description with a part replaced.
fn error(part: &str, by: &str) -> (String, Option<(usize, usize)>) {
    assert!(DESCRIPTION.contains(part), "{part}");
    let folder = folder(&DESCRIPTION.replacen(part, by, 1));
    match open(&folder) {
        Ok(_) => panic!("{part} by {by} is accepted"),
        Err(error) => (format!("{}: {}", error.field, error.message), error.at),
    }
}

#[test]
fn faults_are_named_with_their_place() {
    for (part, by, says, line) in [
        (
            "\"Language\": \"C\"",
            "\"Language\": \"Fortran\"",
            "KernelSpecification.Language: \"Fortran\" is not served",
            10,
        ),
        ("\"scale.c\"", "\"none.c\"", "KernelSpecification.KernelFile: there is no file \"none.c\"", 10),
        ("\"KernelName\": \"scale\"", "\"KernelName\": \"\"", "KernelSpecification.KernelName", 10),
        ("\"KernelName\": \"scale\"", "\"KernelNam\": \"\"", "unknown field `KernelNam`", 10),
        ("[2**i for i in range(6)]", "[2**i for i in", "TuningParameters[0].Values", 4),
        ("\"Default\": 4", "\"Default\": 3", "TuningParameters[0].Default: 3 is none of the values", 4),
        ("\"Name\": \"WRONG\"", "\"Name\": \"step\"", "TuningParameters[1]", 5),
        ("step <= n", "step <=", "Conditions[0].Expression", 7),
        (
            "\"Type\": \"float\", \"MemoryType\": \"Vector\", \"AccessType\": \"W",
            "\"Type\": \"floot\", \"MemoryType\": \"Vector\", \"AccessType\": \"W",
            "Arguments[0].Type: \"floot\"",
            12,
        ),
        (
            "\"Size\": \"n\", \"Output\"",
            "\"Size\": \"m\", \"Output\"",
            "Arguments[0].Size: \"m\" is neither an input nor a parameter",
            12,
        ),
        ("\"Size\": \"n\", \"Output\": true", "\"Output\": true", "Arguments[0].Size: missing", 12),
        ("\"Name\": \"x\"", "\"Name\": \"y\"", "Arguments[1].Name: \"y\" stands there twice", 13),
        ("\"Output\": true", "\"Output\": false", "no argument is an output", 11),
        ("\"FillType\": \"Random\"", "\"FillType\": \"Script\"", "Arguments[1].FillType: \"Script\"", 13),
        (
            "\"MemoryType\": \"Scalar\", \"FillValue\": \"n\"",
            "\"MemoryType\": \"Scalar\"",
            "Arguments[2].FillValue: missing",
            14,
        ),
        (
            "\"MemoryType\": \"Scalar\", \"FillValue\": 1.5",
            "\"MemoryType\": \"Local\"",
            "Arguments[3].MemoryType: \"Local\"",
            15,
        ),
        ("\"1..5000\"", "\"9..5\"", "Inputs[0].Values", 19),
        ("\"1..5000\"", "[1, \"a\"]", "Inputs[0].Values: words and numbers", 19),
        ("[{\"Name\": \"n\",", "[{\"Name\": \"step\",", "Inputs[0].Name", 19),
        ("{\"KernelName\": \"plain\"}", "{}", "Reference: one of", 17),
        ("{\"KernelName\": \"plain\"}", "{\"Configuration\": {\"step\": 3}}", "Configuration.step: 3 is none", 17),
        ("{\"KernelName\": \"plain\"}", "{\"File\": \"none.npy\"}", "Reference.File", 17),
        ("\"Flops\": \"n\"", "\"Flops\": \"n +\"", "Work.Flops", 20),
        ("\"Language\": \"C\"", "\"Work\": {}, \"Language\": \"C\"", "Work: it stands here and in", 20),
    ] {
        let (message, at) = error(part, by);
        assert!(message.contains(says), "{by}: {message}");
        assert_eq!(at.map(|(line, _)| line), Some(line), "{by}: {message}");
    }
}

#[test]
fn inputs_that_fit_no_buffer_are_refused() {
    use tilewright_core::computation::Computation;
    use tilewright_core::space::Config;
    let folder = folder(
        &DESCRIPTION.replace("\"Size\": \"n\", \"FillType\"", "\"Size\": \"n * n * n * n - 100\", \"FillType\""),
    );
    let kernel = open(&folder).unwrap();
    let parse = |text: &str| {
        kernel.parse(&Config::parse(text).unwrap()).map(drop).map_err(|e| format!("{}: {}", e.field, e.message))
    };
    assert_eq!(parse("n=100"), Ok(()));
    for (text, says) in [
        ("n=2", "x: its size"),
        ("n=1000000000", "x: "),
        ("n=100000", "x: "),
        ("m=3", "m: unknown key"),
        ("", "n: missing"),
        ("n=-1", "n: "),
        ("n=a", "n: "),
    ] {
        let message = if text.is_empty() {
            kernel.parse(&Config::default()).map(drop).map_err(|e| e.to_string())
        } else {
            parse(text)
        };
        assert!(message.clone().is_err_and(|m| m.starts_with(says)), "{text}: {message:?}");
    }
}
