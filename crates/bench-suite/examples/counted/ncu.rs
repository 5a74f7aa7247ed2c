//! The profiler's table, as `ncu --csv` prints it among lines of its own and of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// Kernels that the device runs for itself.
const OWN: [&str; 2] = ["tilewright_spin", "tilewright_clock"];

/// What the profiler saw.
pub(crate) struct Profile {
    /// The launches in their order, without those that the device runs for itself.
    pub(crate) launches: Vec<Seen>,
    /// The cases that the program said failed, before any of their launches.
    pub(crate) failed: BTreeSet<usize>,
}

/// A launch that the profiler saw.
pub(crate) struct Seen {
    /// The profiler's number of it.
    pub(crate) id: String,
    /// The name in the code.
    pub(crate) entry: String,
    /// Blocks.
    pub(crate) grid: [u32; 3],
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// The numbers by metric.
    pub(crate) counted: BTreeMap<String, u64>,
}

/// The line of a case that failed.
pub(crate) fn failed(case: usize, why: &str) -> String {
    format!("case {case}: error: {why}")
}

/// The case whose failure a line tells.
fn failed_case(line: &str) -> Option<usize> {
    let (case, _) = line.strip_prefix("case ")?.split_once(": error: ")?;
    case.parse().ok()
}

/// Reads what `ncu --csv` printed.
///
/// # Errors
/// There is no table, or it is not one of counted metrics.
pub(crate) fn read(text: &str) -> Result<Profile, Box<dyn Error>> {
    let mut out = Profile { launches: Vec::new(), failed: BTreeSet::new() };
    let mut columns: Option<Columns> = None;
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: Box<dyn Error>| format!("line {}: {why}", number + 1);
        if !line.starts_with('"') {
            out.failed.extend(failed_case(line));
        } else if let Some(columns) = &columns {
            out.add(columns, &fields(line)).map_err(wrong)?;
        } else {
            columns = Some(Columns::of(&fields(line)).map_err(wrong)?);
        }
    }
    columns.ok_or("it has no table of the profiler")?;
    Ok(out)
}

impl Profile {
    /// Adds a metric of the last launch, or the first one of another.
    fn add(&mut self, columns: &Columns, row: &[String]) -> Result<(), Box<dyn Error>> {
        let cell = |at: usize| row.get(at).map(String::as_str).ok_or("a row is short");
        let name = cell(columns.kernel)?;
        // The profiler may show the parameters behind the name.
        let entry = name.split('(').next().unwrap_or(name).trim();
        if OWN.contains(&entry) || entry.to_lowercase().contains("memset") {
            return Ok(());
        }
        let id = cell(columns.id)?;
        if self.launches.last().is_none_or(|last| last.id != id) {
            let [grid, block] = [axes(cell(columns.grid)?)?, axes(cell(columns.block)?)?];
            let (id, entry) = (id.to_owned(), entry.to_owned());
            self.launches.push(Seen { id, entry, grid, block, counted: BTreeMap::new() });
        }
        let (metric, unit) = (cell(columns.metric)?, cell(columns.unit)?);
        if !matches!(unit, "inst" | "byte" | "") {
            return Err(
                format!("{metric} is in {unit:?}, neither instructions nor bytes: use --print-units base").into()
            );
        }
        let value = count(cell(columns.value)?).ok_or_else(|| format!("{metric} of {entry} is no count"))?;
        if let Some(last) = self.launches.last_mut() {
            last.counted.insert(metric.to_owned(), value);
        }
        Ok(())
    }
}

/// Where the columns stand that are read.
struct Columns {
    id: usize,
    kernel: usize,
    grid: usize,
    block: usize,
    metric: usize,
    unit: usize,
    value: usize,
}

impl Columns {
    fn of(header: &[String]) -> Result<Self, Box<dyn Error>> {
        let at = |name: &str| {
            let found = header.iter().position(|column| column == name);
            found.ok_or_else(|| format!("the table has no column {name:?}"))
        };
        Ok(Self {
            id: at("ID")?,
            kernel: at("Kernel Name")?,
            grid: at("Grid Size")?,
            block: at("Block Size")?,
            metric: at("Metric Name")?,
            unit: at("Metric Unit")?,
            value: at("Metric Value")?,
        })
    }
}

/// The fields of a line. Quotes hold commas, and two of them are one.
fn fields(line: &str) -> Vec<String> {
    let (mut out, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.trim_end().chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => field.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    out.push(field);
    out
}

/// The numbers of `(64, 1, 1)`.
fn axes(text: &str) -> Result<[u32; 3], Box<dyn Error>> {
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    let numbers: Result<Vec<u32>, _> = inner.split(',').map(|axis| axis.trim().parse()).collect();
    let numbers = numbers.map_err(|e| format!("the size {text:?}: {e}"))?;
    numbers.try_into().map_err(|_| format!("the size {text:?} has not three axes").into())
}

/// A whole number, which may have commas between thousands and zeros behind its point.
fn count(text: &str) -> Option<u64> {
    let text = text.replace(',', "");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    if rest.bytes().all(|digit| digit == b'0') { whole.trim().parse().ok() } else { None }
}
