//! Lines of the source that PTX was compiled from, by `.file` and `.loc`.

use crate::text::ast::{Location, SourcePlace};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SourceLine {
    /// The file, as the compiler names it.
    pub file: String,
    /// Line, from one.
    pub line: u32,
    /// Column, from one.
    pub column: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file, self.line)
    }
}

/// Where an instruction comes from: the innermost line that is no line of the compiler's own headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Origin {
    /// The line.
    #[serde(flatten)]
    pub at: SourceLine,
    /// If it stands in a function that was inlined: the lines of the calls, the innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined_at: Vec<SourceLine>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.inlined_at.iter().try_for_each(|call| write!(f, ", inlined at {call}"))
    }
}

/// A line of a kernel's [`Lines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineId(u32);

/// A line and the line that its function was called from.
type Entry = (SourcePlace, Option<LineId>);

/// Calls that a line lies within, at most: enough for what people write, and a text cannot ask for more.
const DEEPEST: u32 = 32;

/// The lines of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    files: BTreeMap<u64, String>,
    entries: Vec<Entry>,
    /// How many calls each lies within.
    depths: Vec<u32>,
    known: HashMap<Entry, LineId>,
    /// The latest entry of each place: a call is named by its place alone.
    latest: HashMap<SourcePlace, LineId>,
    current: Option<LineId>,
    /// The line of the call whose function's body stands here.
    call: Option<LineId>,
}

impl Lines {
    pub(crate) fn new(files: &BTreeMap<u64, &str>) -> Self {
        Self { files: files.iter().map(|(number, name)| (*number, (*name).to_owned())).collect(), ..Self::default() }
    }

    /// The line of what is lowered now.
    pub(crate) fn current(&self) -> Option<LineId> {
        self.current
    }

    /// What follows comes from there. Line 0 stands for no line; what follows then belongs to what came before.
    pub(crate) fn enter(&mut self, location: &Location) {
        if location.at[1] == 0 {
            return;
        }
        let caller = match location.inlined_at {
            Some(place) => Some(self.latest.get(&place).copied().unwrap_or_else(|| self.add((place, self.call)))),
            None => self.call,
        };
        self.current = Some(self.add((location.at, caller)));
    }

    fn add(&mut self, (at, caller): Entry) -> LineId {
        let depth = |id: LineId| self.depths.get(id.0 as usize).map_or(0, |d| d + 1);
        let caller = caller.filter(|id| depth(*id) < DEEPEST);
        let entry = (at, caller);
        let id = match self.known.get(&entry) {
            Some(id) => *id,
            None => {
                let id = LineId(self.entries.len() as u32);
                self.depths.push(caller.map_or(0, depth));
                self.entries.push(entry);
                self.known.insert(entry, id);
                id
            }
        };
        self.latest.insert(at, id);
        id
    }

    /// The body of a function that the compiler did not inline follows. Returns what [`Lines::leave_call`] takes.
    pub(crate) fn enter_call(&mut self) -> (Option<LineId>, Option<LineId>) {
        (self.current, std::mem::replace(&mut self.call, self.current))
    }

    pub(crate) fn leave_call(&mut self, outside: (Option<LineId>, Option<LineId>)) {
        (self.current, self.call) = outside;
    }

    /// What a report says about a line. Lines of the compiler's headers are left out where a call of them is in a file of
    /// the user: that is the line that the user can change.
    pub(crate) fn origin(&self, line: LineId) -> Option<Origin> {
        let chain = std::iter::successors(Some(line), |id| self.entries.get(id.0 as usize)?.1);
        let mut lines: Vec<SourceLine> = chain.filter_map(|id| self.source_line(id)).collect();
        let inner = lines.iter().position(|l| !is_toolkit(&l.file)).unwrap_or(0);
        lines.drain(..inner);
        let mut lines = lines.into_iter();
        Some(Origin { at: lines.next()?, inlined_at: lines.collect() })
    }

    fn source_line(&self, id: LineId) -> Option<SourceLine> {
        let ([file, line, column], _) = self.entries.get(id.0 as usize)?;
        let short = |x: &u64| u32::try_from(*x).unwrap_or(u32::MAX);
        let file = self.files.get(file).cloned().unwrap_or_else(|| format!("file {file}"));
        Some(SourceLine { file, line: short(line), column: short(column) })
    }
}

/// How names of headers begin that come with CUDA: its runtime's and the compiler's own.
const HEADERS: [&str; 18] = [
    "cuda_",
    "cuda.h",
    "sm_",
    "device_",
    "math_functions",
    "math_constants",
    "vector_functions",
    "vector_types",
    "crt/",
    "cooperative_groups",
    "mma.h",
    "curand",
    "texture_",
    "surface_",
    "cub/",
    "thrust/",
    "cuda/",
    "nv/",
];

/// Whether a file is a header of CUDA: one of its names in a folder for headers, or without a folder, as the compiler has
/// headers of its own.
fn is_toolkit(file: &str) -> bool {
    let file = file.replace('\\', "/");
    let within = match file.rsplit_once("/include/") {
        Some((_, within)) => within,
        None if file.starts_with('/') || !(file.ends_with(".h") || file.ends_with(".hpp")) => return false,
        None => &file,
    };
    HEADERS.iter().any(|name| within.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_toolkit_are_told_from_those_of_users() {
        for file in ["/usr/local/cuda/include/cuda_fp16.hpp", "/x/include/crt/mma.hpp", "cooperative_groups.h"] {
            assert!(is_toolkit(file), "{file}");
        }
        for file in ["/home/me/cuda_tricks.cu", "cuda_kernel.cu", "/me/include/tile.h", "tile.h", "/me/cuda_tile.h"] {
            assert!(!is_toolkit(file), "{file}");
        }
    }

    #[test]
    fn chains_of_calls_are_followed_and_bounded() {
        let files = BTreeMap::from([(1, "a.cu"), (2, "/cuda/include/cuda_fp16.hpp")]);
        let mut lines = Lines::new(&files);
        lines.enter(&Location { at: [1, 10, 5], inlined_at: None });
        lines.enter(&Location { at: [1, 5, 5], inlined_at: Some([1, 10, 5]) });
        lines.enter(&Location { at: [2, 999, 1], inlined_at: Some([1, 5, 5]) });
        lines.enter(&Location { at: [2, 0, 0], inlined_at: None });
        let origin = lines.current().and_then(|id| lines.origin(id)).unwrap();
        assert_eq!(origin.to_string(), "a.cu line 5, inlined at a.cu line 10");
        // A call within itself.
        for _ in 0..100 {
            lines.enter(&Location { at: [1, 7, 1], inlined_at: Some([1, 7, 1]) });
        }
        let origin = lines.current().and_then(|id| lines.origin(id)).unwrap();
        assert!(origin.inlined_at.len() <= DEEPEST as usize + 1, "{origin}");
    }
}
