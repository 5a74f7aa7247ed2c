//! One header of C99, which is C++ and CUDA too.

use super::expression::{Language, Scope};
use super::identifier::Identifiers;
use super::{EmitError, Kind, conditions, head, name, nested, parameters, test, word};
use crate::artefact::{Artefact, Choice};
use std::fmt::Write as _;
use tilewright_core::expr::Value;

/// `@` stands for the prefix of all names, `@FN` for what functions begin with.
const ARITHMETIC: &str = include_str!("arithmetic.h.txt");

/// What functions are, and the integers that they work on.
const BEGIN: &str = "#if defined(__CUDACC_RTC__)
#define @QUALIFIERS __host__ __device__
#ifndef INT64_C
typedef long long int64_t;
#define INT64_C(c) c##LL
#define INT64_MAX INT64_C(9223372036854775807)
#define INT64_MIN (-INT64_MAX - INT64_C(1))
#endif
#else
#include <stdint.h>
#if defined(__CUDACC__)
#define @QUALIFIERS __host__ __device__
#else
#define @QUALIFIERS
#endif
#endif
#if defined(__GNUC__)
#define @UNUSED __attribute__((unused))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Wtautological-compare\"
#if !defined(__clang__)
#pragma GCC diagnostic ignored \"-Wbool-compare\"
#pragma GCC diagnostic ignored \"-Wint-in-bool-context\"
#endif
#else
#define @UNUSED
#endif
#define @FN @UNUSED static inline @QUALIFIERS

";

/// How CUDA code is launched with a configuration that is known at compile time.
const LAUNCH: &str = "#if defined(__cplusplus)
/* Calls a functor, or a generic lambda, with the structure of constants of a configuration; 0, or -1 where there is none of this number. */
template <class F> inline int @dispatch(int index, F &&f) {
    switch (index) {
@CASES    default: return -1;
    }
    return 0;
}
#endif
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
/* Launches KERNEL<constants of the configuration>; does nothing where there is none of this number. */
#define @LAUNCH(INDEX, KERNEL, GRID, BLOCK, SHARED, STREAM, ...) \\
    do { \\
        switch (INDEX) { \\
@LAUNCHES        default: break; \\
        } \\
    } while (0)
#endif

";

/// What is written, and how its names begin.
struct Header<'a> {
    artefact: &'a Artefact,
    name: String,
    /// The parameters of configurations as members, with their kinds.
    parameters: Vec<(String, Kind)>,
    /// The fields of the input as members.
    fields: Vec<String>,
    out: String,
}

pub(super) fn emit(artefact: &Artefact, is_cuda: bool) -> Result<String, EmitError> {
    let contents = artefact.contents();
    let (mut members, mut fields) = (Identifiers::c(), Identifiers::c());
    let parameters = parameters(contents).into_iter().map(|(name, values)| (members.name(&name), Kind::of(&values)));
    let mut header = Header {
        artefact,
        name: name(contents),
        parameters: parameters.collect(),
        fields: contents.domain.fields.iter().map(|field| fields.name(&field.name)).collect(),
        out: String::new(),
    };
    header.begin();
    header.types();
    header.guards()?;
    header.choose();
    if is_cuda {
        header.constants();
    }
    header.text("#if defined(__GNUC__)\n#pragma GCC diagnostic pop\n#endif\n#endif\n");
    Ok(header.out)
}

impl Header<'_> {
    /// Adds a text in which `@` is the prefix of names, and `@` before capitals that of macros.
    fn text(&mut self, text: &str) {
        let (lower, upper) = (format!("{}_", self.name), format!("{}_", self.name.to_uppercase()));
        let mut parts = text.split('@');
        self.out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let is_macro = ["FN", "UNUSED", "QUALIFIERS", "LAUNCH(", "H\n"].iter().any(|name| part.starts_with(name));
            self.out.push_str(if is_macro { &upper } else { &lower });
            self.out.push_str(part);
        }
    }

    fn line(&mut self, text: &str) {
        self.text(text);
        self.out.push('\n');
    }

    fn begin(&mut self) {
        let lines = head(self.artefact).join("\n * ");
        // Not by `text`: an address may stand in a name.
        let _ = writeln!(self.out, "/* {lines}\n */");
        self.line("#ifndef @H\n#define @H\n");
        self.text(BEGIN);
        let contents = self.artefact.contents();
        let strings = [
            ("kernel", "The kernel.", &contents.kernel),
            ("device", "The device that this holds for.", &contents.device.name),
            ("fingerprint", "What the device must be to the last fact.", &contents.device.fingerprint),
        ];
        for (name, what, value) in strings {
            self.text(&format!("/* {what} */\n@UNUSED static const char *const @{name} = "));
            self.out.push_str(&quoted(value));
            self.out.push_str(";\n");
        }
        self.out.push('\n');
    }

    /// Words, the input, the configuration.
    fn types(&mut self) {
        let contents = self.artefact.contents();
        for (field, member) in contents.domain.fields.iter().zip(self.fields.clone()) {
            let mut words = Identifiers::c();
            let names: Vec<String> =
                field.words.iter().map(|value| words.name(&format!("{member}_{}", word(value)))).collect();
            for (at, name) in names.iter().enumerate() {
                let before = if at == 0 { "enum { " } else { ", " };
                self.text(&format!("{before}@{name} = {at}"));
            }
            if !names.is_empty() {
                self.out.push_str(" };\n");
            }
        }
        self.line("\n/* What a choice depends on. */\ntypedef struct {");
        for member in self.fields.clone() {
            self.line(&format!("    int64_t {member};"));
        }
        if self.fields.is_empty() {
            self.line("    int64_t nothing;");
        }
        self.line("} @input;\n\n/* A configuration: its number, -1 for none, and one value for each parameter. */");
        self.line("typedef struct {\n    int index;");
        for (member, kind) in self.parameters.clone() {
            self.line(&format!("    {}{member};", of(kind)));
        }
        self.line("} @config;\n");
        self.line(&format!("enum {{ @count = {} }};\n", contents.choices.len()));
        self.line("/* The configuration of a number. */\n@FN @config @config_of(int index) {\n    switch (index) {");
        for (at, choice) in contents.choices.iter().enumerate() {
            let values = self.values(choice);
            self.text(&format!("    case {at}: {{ const @config c = {{ {at}"));
            values.iter().for_each(|value| self.out.extend([", ", value]));
            self.out.push_str(" }; return c; }\n");
        }
        let zeros: Vec<&str> =
            self.parameters.iter().map(|(_, kind)| if *kind == Kind::Word { "\"\"" } else { "0" }).collect();
        let zeros = [&["-1"][..], &zeros].concat().join(", ");
        self.line(&format!("    default: {{ const @config c = {{ {zeros} }}; return c; }}\n    }}\n}}\n"));
    }

    fn values(&self, choice: &Choice) -> Vec<String> {
        self.parameters.iter().zip(&choice.config.0).map(|((_, kind), (_, value))| literal(*kind, value)).collect()
    }

    /// The code that reads each field.
    fn reads(&self) -> Vec<String> {
        super::members(&self.fields, "i->")
    }

    /// Two functions a configuration: what its code needs, and all of its rules.
    fn guards(&mut self) -> Result<(), EmitError> {
        self.text(ARITHMETIC);
        self.out.push('\n');
        let (contents, reads, prefix) = (self.artefact.contents(), self.reads(), format!("{}_", self.name));
        let scope = Scope { language: Language::C, domain: &contents.domain, fields: &reads, prefix: &prefix };
        for (at, choice) in contents.choices.iter().enumerate() {
            let [needed, others] = conditions(&scope, choice)?;
            for (name, list) in [("needed", needed), ("advised", others)] {
                self.line(&format!("@FN int @{name}_{at}(const @input *i) {{"));
                self.line("    int flag = 0, *bad = &flag;\n    (void)i;\n    (void)bad;");
                for condition in &list {
                    // The names of the code are whole already.
                    let _ = writeln!(self.out, "    if (!{condition} || flag) return 0;");
                }
                self.line("    return 1;\n}");
            }
            self.line(&format!(
                "@FN int @legal_{at}(const @input *i) {{ return @needed_{at}(i) && @advised_{at}(i); }}\n"
            ));
        }
        Ok(())
    }

    fn choose(&mut self) {
        let (contents, reads, prefix) = (self.artefact.contents(), self.reads(), format!("{}_", self.name));
        let (mut body, mut leaves) = (String::new(), Vec::new());
        let condition = |one: &crate::tree::Test| format!("({})", test(one, &reads, &prefix, Language::C));
        nested(&contents.tree, (1, &|at| format!("return {at};")), &condition, &mut body, &mut leaves);
        self.line("@FN int @leaf(const @input *i) {\n    (void)i;");
        self.out.push_str(&body);
        self.line("}\n\n/* The number of the configuration for an input; -1 where no configuration computes it. */");
        self.line("@FN int @choose_index(const @input *i) {");
        for (field, read) in contents.domain.fields.iter().zip(&reads).filter(|(field, _)| !field.is_integer()) {
            let count = field.words.len();
            self.line(&format!("    if ({read} < 0 || {read} >= {count}) return -1;"));
        }
        self.line("    switch (@leaf(i)) {");
        for (at, order) in leaves.iter().enumerate() {
            self.line(&format!("    case {at}:"));
            order.iter().for_each(|c| self.line(&format!("        if (@legal_{c}(i)) return {c};")));
            self.line("        break;");
        }
        self.line("    default: break;\n    }");
        contents.fallback.iter().for_each(|c| self.line(&format!("    if (@legal_{c}(i)) return {c};")));
        contents.last.iter().for_each(|c| self.line(&format!("    if (@needed_{c}(i)) return {c};")));
        self.line("    return -1;\n}\n\n/* The configuration for an input. */");
        let arguments: Vec<String> = self.fields.iter().map(|field| format!("int64_t {field}")).collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        let values = if self.fields.is_empty() { "0".to_owned() } else { self.fields.join(", ") };
        self.line(&format!("@FN @config @choose({arguments}) {{\n    @input i;"));
        for field in self.fields.clone() {
            self.line(&format!("    i.{field} = {field};"));
        }
        if self.fields.is_empty() {
            self.line(&format!("    i.nothing = {values};"));
        }
        self.line("    return @config_of(@choose_index(&i));\n}\n");
    }

    /// The configurations as types, for templates.
    fn constants(&mut self) {
        let contents = self.artefact.contents();
        self.line("#if defined(__cplusplus)");
        let (mut cases, mut launches) = (String::new(), String::new());
        for (at, choice) in contents.choices.iter().enumerate() {
            let values = self.values(choice);
            self.line(&format!("struct @config_{at} {{\n    static constexpr int index = {at};"));
            for ((member, kind), value) in self.parameters.clone().iter().zip(values) {
                let _ = writeln!(self.out, "    static constexpr {}{member} = {value};", of(*kind));
            }
            self.line("};");
            let name = format!("{}_config_{at}", self.name);
            let _ = writeln!(cases, "    case {at}: f({name}()); break;");
            let launch = format!("KERNEL<{name}><<<GRID, BLOCK, SHARED, STREAM>>>(__VA_ARGS__); break;");
            let _ = writeln!(launches, "        case {at}: {launch} \\");
        }
        self.line("#endif\n");
        self.text(&LAUNCH.replace("@CASES", &cases).replace("@LAUNCHES", &launches));
    }
}

fn of(kind: Kind) -> &'static str {
    match kind {
        Kind::Truth => "int ",
        Kind::Integer => "int64_t ",
        Kind::Real => "double ",
        Kind::Word => "const char *",
    }
}

fn literal(kind: Kind, value: &Value) -> String {
    match (kind, value.as_val().as_integer()) {
        (Kind::Truth, Some(truth)) => truth.to_string(),
        (Kind::Integer, Some(i64::MIN)) => format!("-INT64_C({}) - 1", i64::MAX),
        (Kind::Integer, Some(i)) => format!("INT64_C({i})").replace("INT64_C(-", "-INT64_C("),
        (Kind::Real, _) => format!("{:?}", value.as_f64().unwrap_or_default()),
        _ => quoted(&word(value)),
    }
}

/// A string of C: what is no plain character in octal digits, which end after three.
fn quoted(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", text.bytes().map(escaped).collect::<String>())
}
