//! Wording that messages share.

use std::fmt::Display;

/// So many things, as a sentence says it: `1 kernel`, `3 legal configurations`. The last word is the noun, in the singular.
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("{count} {noun}");
    }
    let many = match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with("ex") => format!("{}ices", &noun[..noun.len() - 2]),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{count} {many}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_number() {
        let of = |noun: &str| [0, 1, 2].map(|count| counted(count, noun));
        assert_eq!(
            of("legal configuration"),
            ["0 legal configurations", "1 legal configuration", "2 legal configurations"]
        );
        assert_eq!(of("entry"), ["0 entries", "1 entry", "2 entries"]);
        assert_eq!(of("day"), ["0 days", "1 day", "2 days"]);
        assert_eq!(of("index"), ["0 indices", "1 index", "2 indices"]);
        assert_eq!(of("process"), ["0 processes", "1 process", "2 processes"]);
        assert_eq!(counted(1.0, "second"), "1 second");
        assert_eq!(counted(10_u64, "row"), "10 rows");
    }
}
