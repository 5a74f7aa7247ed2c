//! Where in a JSON text a field stands.

/// One step of a path: a key, or a place in a list.
enum Step<'p> {
    Key(&'p str),
    Place(usize),
}

/// Line and column, from 1, of a field such as `KernelSpecification.Arguments[2].Size`; of the nearest part of it that is there.
pub(crate) fn locate(text: &str, field: &str) -> Option<(usize, usize)> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    let mut found = scan.value_start();
    for step in steps(field) {
        match scan.enter(&step) {
            Some(at) => found = at,
            None => break,
        }
    }
    (!field.is_empty()).then(|| position(text, found))
}

/// Line and column of a byte.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    (line, column)
}

fn steps(field: &str) -> Vec<Step<'_>> {
    let mut out = Vec::new();
    for part in field.split('.') {
        let (key, rest) = part.split_once('[').map_or((part, ""), |(key, rest)| (key, rest));
        out.push(Step::Key(key));
        let places = rest.split('[').filter_map(|place| place.trim_end_matches(']').parse().ok());
        out.extend(places.map(Step::Place));
    }
    out
}

/// Reads on in a text that is known to be JSON.
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Skips blanks and what separates.
    fn value_start(&mut self) -> usize {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') {
            self.at += 1;
        }
        self.at
    }

    /// Goes to a member of the value that begins here; where it begins.
    fn enter(&mut self, step: &Step<'_>) -> Option<usize> {
        self.value_start();
        let open = self.peek();
        let (closing, wanted) = match (open, step) {
            (b'{', Step::Key(_)) => (b'}', usize::MAX),
            (b'[', Step::Place(place)) => (b']', *place),
            _ => return None,
        };
        self.at += 1;
        let mut place = 0;
        loop {
            let start = self.value_start();
            if self.peek() == closing || self.at >= self.bytes.len() {
                return None;
            }
            if let Step::Key(key) = step {
                self.skip();
                let written = &self.bytes[start..self.at];
                let same = written == format!("\"{key}\"").as_bytes();
                let value = self.value_start();
                if same {
                    return Some(value);
                }
            } else if place == wanted {
                return Some(start);
            }
            self.skip();
            place += 1;
        }
    }

    /// Skips a value.
    fn skip(&mut self) {
        self.value_start();
        let mut depth = 0usize;
        loop {
            match self.peek() {
                b'"' => self.skip_text(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' if depth == 0 => return,
                _ if self.at >= self.bytes.len() => return,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_text(&mut self) {
        self.at += 1;
        while self.at < self.bytes.len() && self.peek() != b'"' {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_where_they_stand() {
        let text = "{\n \"a\": {\"b\\\"\": 1, \"c\": [10, {\"d\": \"x, y\"},\n  30]},\n \"e\": true\n}";
        assert_eq!(locate(text, "a"), Some((2, 7)));
        assert_eq!(locate(text, "a.c[0]"), Some((2, 24)));
        assert_eq!(locate(text, "a.c[1].d"), Some((2, 34)));
        assert_eq!(locate(text, "a.c[2]"), Some((3, 3)));
        assert_eq!(locate(text, "e"), Some((4, 7)));
        // What is missing is where it would be.
        assert_eq!(locate(text, "a.none"), Some((2, 7)));
        assert_eq!(locate(text, ""), None);
    }
}
