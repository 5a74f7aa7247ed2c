//! Names as identifiers of other languages: letters, digits and underscores, no keyword, none twice.

use std::collections::HashSet;

const C: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "class",
    "delete",
    "new",
    "operator",
    "private",
    "protected",
    "public",
    "template",
    "this",
    "throw",
    "try",
    "typename",
    "using",
    "virtual",
    "and",
    "or",
    "not",
    "xor",
    "bool",
    "true",
    "false",
    "namespace",
    "friend",
    "explicit",
    "export",
    "mutable",
    "asm",
    "catch",
    "constexpr",
    "bitand",
    "bitor",
    "compl",
    "and_eq",
    "or_eq",
    "not_eq",
    "xor_eq",
    "nullptr",
    "noexcept",
    "decltype",
    "alignas",
    "alignof",
    "concept",
    "requires",
    "typeid",
    "wchar_t",
    "thread_local",
    "static_assert",
    "linux",
    "unix",
    "in",
    "bad",
    "index",
    "int64_t",
    "NULL",
    "errno",
];

const RUST: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while", "abstract", "become",
    "box", "do", "final", "macro", "override", "priv", "typeof", "unsized", "virtual", "yield", "try", "gen", "i",
];

/// Identifiers of one scope.
pub(crate) struct Identifiers {
    keywords: &'static [&'static str],
    taken: HashSet<String>,
}

impl Identifiers {
    pub(crate) fn c() -> Self {
        Self { keywords: C, taken: HashSet::new() }
    }

    pub(crate) fn rust() -> Self {
        Self { keywords: RUST, taken: HashSet::new() }
    }

    /// An identifier that is like a name, and that this scope has not given yet.
    pub(crate) fn name(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut like: String = name.chars().map(plain).collect();
        // What begins with an underscore is reserved in C.
        if !like.starts_with(|c: char| c.is_ascii_alphabetic()) {
            like.insert(0, 'x');
        }
        self.distinct(like)
    }

    /// The same in camel case, for types and variants of Rust.
    pub(crate) fn camel(&mut self, name: &str) -> String {
        let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        let upper = |part: &str| part[..1].to_ascii_uppercase() + &part[1..];
        let mut like: String = parts.map(upper).collect();
        if !like.starts_with(|c: char| c.is_ascii_alphabetic()) {
            like.insert(0, 'X');
        }
        self.distinct(like)
    }

    fn distinct(&mut self, like: String) -> String {
        let mut name = like.clone();
        let mut next = 2;
        while self.keywords.contains(&name.as_str()) || !self.taken.insert(name.clone()) {
            name = format!("{like}_{next}");
            next += 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_differ() {
        let mut c = Identifiers::c();
        assert_eq!(
            ["m", "int", "a-b", "a.b", "2x", "", "m"].map(|n| c.name(n)),
            ["m", "int_2", "a_b", "a_b_2", "x2x", "x", "m_2"]
        );
        let mut rust = Identifiers::rust();
        assert_eq!(
            ["nn", "0", "f32-x", "Nn", "self", "ü"].map(|n| rust.camel(n)),
            ["Nn", "X0", "F32X", "Nn_2", "Self_2", "X"]
        );
    }
}
