//! Every figure of every README has a record.
//!
//! Figures stand between `<!-- figures: FILE#POINTER -->` and `<!-- end of figures -->`: FILE lies below `records`, POINTER is a JSON pointer
//! to the part of it that holds them; there may be several, with spaces between them. A later directive within holds for the lines that
//! follow it. `<!-- rows: FILE FILE -->` begins a table of comparisons instead, one record a row: the last two cells are its mean ratio and
//! its worst, and its first cell names the type and the threads. What stands in backticks or in a block of code is a setting and no figure.
//! Anywhere else a README has no decimal fractions, percentages and times.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn readmes() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path().join("README.md"));
    crates.chain([root().join("README.md")]).filter(|path| path.is_file()).collect()
}

/// A number as it is printed, and what follows from its unit: what one is in the unit of the record.
#[derive(Debug, PartialEq)]
struct Figure {
    text: String,
    value: f64,
    decimals: i32,
    units: Vec<f64>,
}

/// Factors by which a record may differ from what is printed in a unit; none where it is no unit.
fn unit(after: &str) -> Option<Vec<f64>> {
    let after = after.strip_prefix(' ').unwrap_or(after);
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
    let units: [(&str, &[f64]); 6] = [
        ("%", &[0.01, 1.0]),
        ("ms", &[1e-3, 1.0]),
        ("µs", &[1e-6, 1.0, 1e3]),
        ("us", &[1e-6, 1.0, 1e3]),
        ("ns", &[1e-9, 1.0]),
        ("million", &[1e6, 1.0]),
    ];
    let found = units.iter().find(|(name, _)| after.strip_prefix(name).is_some_and(is_end));
    found.map(|(_, factors)| factors.to_vec())
}

/// The figures of a line, what stands in backticks left out.
fn figures(line: &str) -> Vec<Figure> {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("` ");
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let (mut out, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
        let begins = chars[i].1.is_ascii_digit()
            || (chars[i].1 == '.' && chars.get(i + 1).is_some_and(|c| c.1.is_ascii_digit()));
        let before = if i == 0 { ' ' } else { chars[i - 1].1 };
        let start = i;
        while i < chars.len() && begins && is_part(chars[i].1) {
            i += 1;
        }
        if i == start {
            i += 1;
            continue;
        }
        if before.is_alphanumeric() || before == '_' || before == '^' {
            continue;
        }
        let end = chars.get(i).map_or(text.len(), |c| c.0);
        let number = text[chars[start].0..end].trim_end_matches(['.', ',']);
        let plain = number.replace(',', "");
        let Ok(value) = plain.parse::<f64>() else { continue };
        let decimals = plain.split_once('.').map_or(0, |(_, after)| after.len() as i32);
        let rest = &text[chars[start].0 + number.len()..];
        let units = unit(rest);
        if decimals > 0 || units.is_some() || number.contains(',') {
            out.push(Figure { text: number.to_owned(), value, decimals, units: units.unwrap_or_else(|| vec![1.0]) });
        }
    }
    out
}

impl Figure {
    /// Whether a number of a record is what is printed here, rounded.
    fn is(&self, recorded: f64) -> bool {
        let half = 0.5 * 10f64.powi(-self.decimals) * (1.0 + 1e-6);
        self.units.iter().any(|unit| (recorded.abs() / unit - self.value).abs() <= half)
    }
}

/// All numbers of a part of a record, those in its texts too.
fn numbers(value: &Value, out: &mut Vec<f64>) {
    match value {
        Value::Number(number) => out.extend(number.as_f64()),
        Value::String(text) => text.lines().for_each(|line| out.extend(in_text(line))),
        Value::Array(all) => all.iter().for_each(|one| numbers(one, out)),
        Value::Object(all) => all.values().for_each(|one| numbers(one, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn in_text(line: &str) -> Vec<f64> {
    let parts = line.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    parts.filter_map(|part| part.trim_matches(['.', ',']).replace(',', "").parse().ok()).collect()
}

/// The numbers that a directive names.
fn recorded(places: &str) -> Result<Vec<f64>, String> {
    let all = places.split_whitespace().map(part).collect::<Result<Vec<_>, _>>()?;
    Ok(all.concat())
}

/// Those of a part of one record.
fn part(place: &str) -> Result<Vec<f64>, String> {
    let (file, pointer) = place.split_once('#').unwrap_or((place, ""));
    let path = root().join("crates/bench-suite/records").join(file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
    let record = if file.ends_with(".json") {
        serde_json::from_str(&text).map_err(|e| format!("{file}: {e}"))?
    } else {
        Value::String(text)
    };
    let mut out = Vec::new();
    numbers(record.pointer(pointer).ok_or_else(|| format!("{file} has nothing at {pointer}"))?, &mut out);
    Ok(out)
}

/// What a row must state of a comparison: its type and number of threads, the geometric mean of its ratios and the worst.
fn comparison(file: &str) -> Result<(Vec<String>, [f64; 2]), String> {
    let path = root().join("crates/bench-suite/records").join(file);
    let text = fs::read_to_string(path).map_err(|e| format!("{file}: {e}"))?;
    let record: Value = serde_json::from_str(&text).map_err(|e| format!("{file}: {e}"))?;
    let [run] = record["runs"].as_array().map_or(&[][..], Vec::as_slice) else {
        return Err(format!("{file} has not one run"));
    };
    let one = |name: &str| run["report"][name].as_f64().ok_or_else(|| format!("{file} has no {name}"));
    let threads = if run["report"]["threads"] == 1 { "one thread" } else { "two threads" };
    let words = vec![run["report"]["dtype"].as_str().unwrap_or("no type").to_owned(), threads.to_owned()];
    Ok((words, [one("geomean_ratio")?, one("worst_ratio")?]))
}

/// What is wrong with a row of a table whose next record is this one.
fn row_fault(line: &str, next: Option<&str>) -> Option<String> {
    let Some(file) = next else { return Some("there is no record for this row".to_owned()) };
    let cells: Vec<&str> = line.trim_matches([' ', '|']).split('|').collect();
    match (comparison(file), &cells[..]) {
        (Err(fault), _) => Some(fault),
        (Ok((words, recorded)), [name, mean, worst]) => {
            let is = |cell: &str, recorded| matches!(&figures(cell)[..], [figure] if figure.is(recorded));
            let holds = is(mean, recorded[0]) && is(worst, recorded[1]) && words.iter().all(|word| name.contains(word));
            (!holds).then(|| format!("{file} has {:.4} and {:.4}, {}", recorded[0], recorded[1], words.join(", ")))
        }
        _ => Some("a row has a name, the mean ratio and the worst".to_owned()),
    }
}

/// What is wrong with the figures of a README.
fn faults(text: &str) -> Vec<String> {
    let (mut out, mut known, mut is_code) = (Vec::new(), None::<Vec<f64>>, false);
    // Records whose rows come, one after the other, and the line that names them.
    let mut rows = None::<(usize, std::str::SplitWhitespace<'_>)>;
    let left = |rows: Option<(usize, std::str::SplitWhitespace<'_>)>| {
        let of = |(at, files): (usize, std::str::SplitWhitespace<'_>)| {
            files.map(|file| format!("line {at}: {file} has no row")).collect::<Vec<_>>()
        };
        rows.map(of).unwrap_or_default()
    };
    for (at, line) in text.lines().enumerate() {
        let at = at + 1;
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
        } else if let Some(place) = line.trim().strip_prefix("<!-- figures: ").and_then(|l| l.strip_suffix(" -->")) {
            out.extend(left(rows.take()));
            known = recorded(place).map_err(|fault| out.push(format!("line {at}: {fault}"))).ok().or(Some(Vec::new()));
        } else if let Some(files) = line.trim().strip_prefix("<!-- rows: ").and_then(|l| l.strip_suffix(" -->")) {
            out.extend(left(rows.replace((at, files.split_whitespace()))));
        } else if line.trim() == "<!-- end of figures -->" {
            out.extend(left(rows.take()));
            known = None;
        } else if let Some((_, files)) = rows.as_mut().filter(|_| !figures(line).is_empty()) {
            out.extend(row_fault(line, files.next()).map(|fault| format!("line {at}: {fault}")));
        } else {
            for figure in figures(line) {
                match &known {
                    None => {
                        out.push(format!("line {at}: {} stands outside of `<!-- figures: RECORD -->`", figure.text))
                    }
                    Some(known) if !known.iter().any(|&k| figure.is(k)) => {
                        out.push(format!("line {at}: {} is not in the record", figure.text));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    out.extend(left(rows));
    out
}

#[test]
fn every_figure_of_every_readme_is_in_its_record() {
    let of = |path: &PathBuf| {
        let faults = faults(&fs::read_to_string(path).unwrap());
        faults
            .into_iter()
            .map(|fault| format!("{}: {fault}", path.strip_prefix(root()).unwrap().display()))
            .collect::<Vec<_>>()
    };
    let all: Vec<String> = readmes().iter().flat_map(of).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn figures_are_told_from_settings_and_names() {
    let found = |line: &str| figures(line).into_iter().map(|f| f.text).collect::<Vec<_>>();
    assert_eq!(
        found("| a | .977 | 45% of 1,024 | 3.5 ms, 17 ns and 12 of them.|"),
        [".977", "45", "1,024", "3.5", "17"]
    );
    assert!(found("`0.5 ms` of f32, 2^10 and v1.2, the 3rd, sm_90, 5 percents").is_empty());
    let [figure] = &figures("12.5%")[..] else { panic!() };
    assert!(figure.is(0.1249) && figure.is(12.46) && !figure.is(0.126));
    let [figure] = &figures("8.9 µs")[..] else { panic!() };
    assert!(figure.is(8.86e-6) && figure.is(8861.0) && !figure.is(8.0e-6));
}

#[test]
fn a_figure_that_differs_from_its_record_is_a_fault() {
    let folder = "cpu-epyc-family25-model1/2026-11-21-spaces.json";
    let with = |text: &str| faults(&format!("<!-- figures: {folder}#/report -->\n{text}\n<!-- end of figures -->\n"));
    assert_eq!(with("gemm has 116,928 of 663,552"), Vec::<String>::new());
    assert_eq!(with("gemm has 116,929"), ["line 2: 116,929 is not in the record"]);
    assert_eq!(faults("half of it: 0.51"), ["line 1: 0.51 stands outside of `<!-- figures: RECORD -->`"]);
    assert!(faults("<!-- figures: none.json -->\n0.51")[0].starts_with("line 1: none.json"));
}

#[test]
fn a_row_has_the_figures_of_its_own_record() {
    let [first, second] = ["2026-11-23-isaac-table5-f32-1t.json", "2026-11-23-isaac-table5-f32-2t.json"];
    let files = format!("<!-- rows: cpu-epyc-family26-model2/{first} cpu-epyc-family26-model2/{second} -->");
    let with = |rows: &[&str], end: &str| {
        faults(&format!("{files}\n| | mean | worst |\n|---|---|---|\n{}\n{end}\n", rows.join("\n"))).len()
    };
    let (one, two) = ("| a, f32, one thread | 1.58 | 0.90 |", "| a, f32, two threads | 1.60 | 0.94 |");
    let end = "<!-- end of figures -->";
    assert_eq!(with(&[one, two], end), 0);
    // Of the other record, another number rounded, another type, and a row without a record.
    assert_eq!(with(&[two, one], end), 2);
    assert_eq!(with(&[one, "| a, f32, two threads | 1.60 | 0.93 |"], end), 1);
    assert_eq!(with(&[one, "| a, f64, two threads | 1.60 | 0.94 |"], end), 1);
    assert_eq!(with(&[one, two, two], end), 1);
    // A record without a row, whatever comes behind the table.
    let next = format!("{files}\n{one}\n{two}\n{end}");
    for end in [end, next.as_str(), "<!-- figures: h200/2026-11-27-squares.txt -->", ""] {
        assert_eq!(with(&[one], end), 1, "{end}");
    }
}
