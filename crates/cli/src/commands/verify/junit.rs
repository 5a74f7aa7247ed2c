//! The report of `verify` as JUnit XML, which continuous integration shows as a table of tests.

use super::cases::Outcome;
use std::fmt::Write as _;
use tilewright_emulator::Finding;

/// What becomes the report: a test for every case.
#[derive(Default)]
pub(super) struct Report {
    body: String,
    cases: u32,
    failed: u32,
}

impl Report {
    /// Adds a case; `complaint` is what was wrong.
    pub(super) fn add(&mut self, outcome: &Outcome, complaint: Option<&str>) {
        let name = format!("{} with {} on {:?} data", outcome.input, outcome.config, outcome.filling);
        self.cases += 1;
        // Writing to a text cannot fail.
        let _ = write!(
            self.body,
            "  <testcase classname=\"{}\" name=\"{}\"",
            escaped(outcome.kernel.as_str()),
            escaped(&name)
        );
        let Some(complaint) = complaint else {
            self.body.push_str("/>\n");
            return;
        };
        self.failed += 1;
        let of = outcome.findings.first().map_or("wrong_result", |finding: &Finding| finding.fault.name());
        let first = complaint.lines().next().unwrap_or_default();
        let _ = write!(
            self.body,
            ">\n    <failure type=\"{of}\" message=\"{}\">{}</failure>\n  </testcase>\n",
            escaped(first),
            escaped(complaint)
        );
    }

    /// The document.
    pub(super) fn xml(&self, suite: &str, seconds: f64) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{seconds:.3}\">\n{}</testsuite>\n",
            escaped(suite),
            self.cases,
            self.failed,
            self.body
        )
    }
}

/// A text within XML. Characters that XML has not become question marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c < ' ' && c != '\t' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\nd\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;d?");
        assert!(Report::default().xml("s", 0.5).contains("tests=\"0\" failures=\"0\""));
    }
}
