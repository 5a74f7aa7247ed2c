//! Facts of devices: published, queried or measured, by name.

use crate::error::MtlError;
use csv::StringRecord;
use tilewright_core::device::DeviceSpec;
use tilewright_core::expr::Value;
use tilewright_core::space::Config;

/// What errors call the table.
const TABLE: &str = "device features";

/// The header and the records of comma-separated text, these with their lines.
pub(crate) fn read(table: &'static str, text: &[u8]) -> Result<(StringRecord, Vec<(u64, StringRecord)>), MtlError> {
    let line = |position: Option<&csv::Position>| position.map_or(0, csv::Position::line);
    let fault = |line, e: &csv::Error| MtlError::Table { table, line, message: e.to_string() };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let header = reader.headers().map_err(|e| fault(1, &e))?.clone();
    let record = |record: csv::Result<StringRecord>| {
        let record = record.map_err(|e| fault(line(e.position()), &e))?;
        Ok((line(record.position()), record))
    };
    Ok((header, reader.records().map(record).collect::<Result<_, MtlError>>()?))
}

/// Features of devices, one set a device: numbers, or words such as the vendor's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTable {
    devices: Vec<(String, Config)>,
}

impl DeviceTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Published specifications of GPUs that papers and recordings are about; names without spaces. One die of two counts where a
    /// board has two that programs see apart. The six GPUs of Nitro's second paper have the numbers of its Table 1, whose clocks
    /// are those of the authors' boards; of all others, the peak is what all lanes do at the clock.
    pub fn published() -> Self {
        // The table is a part of the program, and a test reads it.
        Self::parse(include_bytes!("published.csv")).unwrap_or_default()
    }

    /// Reads comma-separated text: a header whose first column is the device, one line a device. Empty cells and `nan` are
    /// missing.
    ///
    /// # Errors
    /// No header, no feature of any device, a feature or a device that stands twice, a line of another length, a number that is
    /// not finite; the line is named.
    pub fn parse(text: &[u8]) -> Result<Self, MtlError> {
        let fault = |line, message| MtlError::Table { table: TABLE, line, message };
        let (header, records) = read(TABLE, text)?;
        if header.len() < 2 {
            return Err(fault(1, "expected a column of devices and at least one feature".into()));
        }
        if let Some(twice) = header.iter().enumerate().find_map(|(i, n)| header.iter().take(i).find(|m| *m == n)) {
            return Err(fault(1, format!("the feature {twice:?} stands twice")));
        }
        let mut table = Self::new();
        for (line, record) in records {
            let missing = |text: &str| text.is_empty() || text.eq_ignore_ascii_case("nan");
            let cells = || header.iter().zip(&record).skip(1).filter(|(_, text)| !missing(text));
            if let Some((name, _)) = cells().find(|(_, text)| text.parse::<f64>().is_ok_and(|v| !v.is_finite())) {
                return Err(fault(line, format!("{name:?} is no finite number; what is not known stays empty")));
            }
            let features = cells().map(|(name, text)| (name.to_owned(), Value::parse(text))).collect();
            let device = record.get(0).unwrap_or_default();
            table.insert(device, Config(features)).map_err(|e| fault(line, e.to_string()))?;
        }
        if !table.devices.is_empty() && table.devices.iter().all(|(_, features)| features.0.is_empty()) {
            return Err(fault(1, "no device has a feature".into()));
        }
        Ok(table)
    }

    /// The table as [`DeviceTable::parse`] reads it: one column for every feature that a device has, in order of appearance.
    pub fn to_csv(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.devices.iter().flat_map(|(_, features)| &features.0) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |cells: Vec<String>| writer.write_record(cells).expect("all lines have the header's length");
        // Of a name that no feature has.
        let mut first = "device".to_owned();
        while names.contains(&first.as_str()) {
            first.push('_');
        }
        write(std::iter::once(&*first).chain(names.iter().copied()).map(str::to_owned).collect());
        for (device, features) in &self.devices {
            let cell = |name: &&str| features.get(name).map_or_else(String::new, Value::to_string);
            write(std::iter::once(device.clone()).chain(names.iter().map(cell)).collect());
        }
        let text = writer.into_inner().expect("memory takes everything");
        String::from_utf8(text).expect("cells are text")
    }

    /// Adds a device.
    ///
    /// # Errors
    /// It is there already.
    pub fn insert(&mut self, device: &str, features: Config) -> Result<(), MtlError> {
        if self.devices.iter().any(|(name, _)| name == device) {
            return Err(MtlError::Twice(device.to_owned()));
        }
        self.devices.push((device.to_owned(), features));
        Ok(())
    }

    /// The features of a device.
    ///
    /// # Errors
    /// The table does not know it.
    pub fn of(&self, device: &str) -> Result<&Config, MtlError> {
        let found = self.devices.iter().find(|(name, _)| name == device);
        found.map(|(_, features)| features).ok_or_else(|| MtlError::UnknownDevice {
            device: device.to_owned(),
            known: self.names().collect::<Vec<_>>().join(" "),
        })
    }

    /// All devices.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|(name, _)| name.as_str())
    }
}

/// What a device says of itself and what was measured on it, as features: facts, rates, and the words for its model, its kind and
/// its driver or instruction set. The same for a device that records and for one that learns from records.
pub fn queried(spec: &DeviceSpec) -> Config {
    let facts = spec.facts.iter().map(|(name, &value)| (name.clone(), Value::Int(value)));
    let measured = spec.measured.iter().map(|(name, &value)| (name.clone(), Value::Float(value)));
    let kind = format!("{:?}", spec.kind).to_lowercase();
    let words = [("name", spec.name.clone()), ("kind", kind), ("driver", spec.driver.clone())];
    let words = words.into_iter().map(|(name, word)| (name.to_owned(), Value::Str(word)));
    Config(facts.chain(measured).chain(words).collect())
}

/// A feature as a number; none where it is missing or a word.
pub(crate) fn number(features: &Config, name: &str) -> Option<f64> {
    features.get(name).and_then(Value::as_f64).filter(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_is_complete() {
        let table = DeviceTable::published();
        assert!(table.names().count() > 20);
        for device in table.names() {
            let features = table.of(device).unwrap();
            assert_eq!(features.0.len(), 11, "{device}");
            for name in ["multiprocessors", "cores", "clock_mhz", "mem_bandwidth_gbps", "l2_kib", "peak_gflops_f32"] {
                assert!(number(features, name).is_some_and(|v| v > 0.0), "{device}: {name}");
            }
        }
    }

    /// A wrong figure in the table shows in another one: a multiply-add counts two, double precision is a whole fraction of
    /// single, a multiprocessor has a whole number of lanes.
    #[test]
    fn published_figures_agree_with_each_other() {
        let table = DeviceTable::published();
        for device in table.names() {
            let of = |name| number(table.of(device).unwrap(), name).unwrap();
            let (single, double) = (of("peak_gflops_f32"), of("peak_gflops_f64"));
            let at_clock = 2e-3 * of("cores") * of("clock_mhz");
            let of_the_paper = ["GTX770", "GTX750Ti", "GTX980"].contains(&device);
            assert!(of_the_paper || (single / at_clock - 1.0).abs() < 0.01, "{device}: {single} {at_clock}");
            let fraction = single / double;
            assert!((fraction / fraction.round() - 1.0).abs() < 0.035, "{device}: {fraction}");
            assert_eq!(of("cores") % of("multiprocessors"), 0.0, "{device}");
            // Bits of a bus times transfers a second: from GDDR5 to HBM3e, 0.9 to 6.5 of them a nanosecond a pin, or up to 16 for GDDR6.
            let transfers = 8.0 * of("mem_bandwidth_gbps") / of("mem_bus_bits");
            assert!((0.9..16.5).contains(&transfers), "{device}: {transfers}");
        }
        let clock = |device| number(table.of(device).unwrap(), "clock_mhz").unwrap();
        let six = ["GTX480", "C2075", "GTX770", "K20c", "GTX750Ti", "GTX980"].map(clock);
        assert_eq!(six, [1401.0, 1147.0, 1110.0, 706.0, 1268.0, 1216.0]);
    }

    #[test]
    fn a_table_comes_back_from_its_text() {
        for text in ["device,cores,name\na,4,\"x, \"\"y\"\"\"\nb,,z\n", "device_,device\na,4\n"] {
            let table = DeviceTable::parse(text.as_bytes()).unwrap();
            assert_eq!(table.to_csv(), text);
            assert_eq!(DeviceTable::parse(table.to_csv().as_bytes()).unwrap(), table);
        }
    }

    #[test]
    fn what_is_no_table_is_named_by_its_line() {
        let table = DeviceTable::parse(b"device,cores,name\na,4,x y\nb,,z\n").unwrap();
        assert_eq!(number(table.of("a").unwrap(), "cores"), Some(4.0));
        assert_eq!((number(table.of("b").unwrap(), "cores"), number(table.of("a").unwrap(), "name")), (None, None));
        assert!(matches!(table.of("c"), Err(MtlError::UnknownDevice { known, .. }) if known == "a b"));
        for (text, line) in [("", 1), ("device", 1), ("d,c\na,1,2\n", 2), ("d,c\na,1\na,2\n", 3), ("d,c\na,\n", 1)] {
            let fault = DeviceTable::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(&fault, MtlError::Table { line: l, .. } if *l == line), "{text:?}: {fault}");
        }
    }
}
