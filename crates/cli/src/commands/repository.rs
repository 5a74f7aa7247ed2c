//! `tilewright repository`: training data of many devices and machines.

use crate::args::RepositoryCommand;
use crate::commands::data::read_some;
use crate::commands::transfer::device_table;
use crate::failure::{Failure, Kind};
use crate::output::{Output, aligned, expect_writable, write};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tilewright_core::choice::ChoiceSet;
use tilewright_core::text::counted;
use tilewright_datasets::{Dataset, DatasetError};
use tilewright_mtl::device::DeviceTable;
use tilewright_repository::{Fault, Key, Record, Repository, RepositoryError, open, open_existing, training};

/// What was recorded of one set of variants on one device.
#[derive(Default, Serialize)]
struct Recorded {
    set: String,
    device: String,
    /// Inputs with the times of variants.
    cases: usize,
    /// Configurations of a kernel, failed ones included.
    samples: usize,
    /// Features of the device.
    device_features: usize,
    /// Profiles of variants and of proxies.
    profiles: usize,
}

#[derive(Serialize)]
struct Listing {
    store: String,
    recorded: Vec<Recorded>,
    /// What is wrong with files of the store; what they hold is not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
}

#[derive(Serialize)]
struct Exported {
    set: String,
    dataset: String,
    devices: Vec<String>,
    cases: usize,
    /// Inputs in which nothing ran are in the table too.
    rows: usize,
}

pub(crate) fn run(command: &RepositoryCommand, output: Output) -> Result<(), Failure> {
    match command {
        RepositoryCommand::List { store } => list(store, output),
        RepositoryCommand::Import { store, dataset, set, device_features } => {
            let devices = device_table(device_features.as_deref())?;
            let set = set.clone().unwrap_or_else(|| named_after(dataset));
            import(store, dataset, &set, &devices, output)
        }
        RepositoryCommand::Export { store, set, out, device_features } => {
            export(store, set, out, device_features.as_ref(), output)
        }
    }
}

fn named_after(dataset: &Path) -> String {
    dataset.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Names are the caller's; everything else is the store's.
fn failure(error: RepositoryError) -> Failure {
    match error.fault {
        Fault::Address => Failure::new(Kind::Usage, "store", &error),
        Fault::Name(field) => Failure::new(Kind::Input, field, &error),
        Fault::Inconsistent | Fault::Mtl => Failure::new(Kind::Input, "set", &error),
        _ => Failure::new(Kind::Store, "store", &error),
    }
}

fn opened(store: &str) -> Result<Box<dyn Repository>, Failure> {
    let found = open_existing(store).map_err(failure)?;
    found.ok_or_else(|| {
        Failure::new(Kind::Input, "store", format!("{store} is no repository: nothing was recorded there"))
    })
}

fn list(store: &str, output: Output) -> Result<(), Failure> {
    let mut repository = opened(store)?;
    let (mut recorded, mut damaged) = (Vec::new(), Vec::new());
    for key in repository.keys().map_err(failure)? {
        let (set, device) = (key.set().to_owned(), key.device().to_owned());
        let mut of_key = Recorded { set, device, ..Recorded::default() };
        let mut features = Vec::new();
        let records = match repository.read(&key) {
            Err(error) if error.is_damage() => {
                damaged.push(error.to_string());
                Vec::new()
            }
            records => {
                damaged.extend(repository.unfinished(&key).map_err(failure)?.iter().map(ToString::to_string));
                records.map_err(failure)?
            }
        };
        for (_, record) in records {
            match record {
                Record::Device(more) => features.extend(more.0.into_iter().map(|(name, _)| name)),
                Record::Case(_) => of_key.cases += 1,
                Record::Samples(samples) => of_key.samples += samples.trials.len(),
                Record::Profile(_) | Record::Proxy(_) => of_key.profiles += 1,
            }
        }
        features.sort();
        features.dedup();
        of_key.device_features = features.len();
        recorded.push(of_key);
    }
    let listing = Listing { store: store.to_owned(), recorded, damaged };
    output.answer(&listing, || table(&listing))
}

fn table(listing: &Listing) -> String {
    let head = ["set", "device", "inputs", "configurations", "device features", "profiles"].map(str::to_owned).to_vec();
    let row = |r: &Recorded| {
        let mut row = vec![r.set.clone(), r.device.clone()];
        row.extend([r.cases, r.samples, r.device_features, r.profiles].map(|n| n.to_string()));
        row
    };
    let damaged: String = listing.damaged.iter().map(|error| format!("damaged: {error}\n")).collect();
    aligned(&std::iter::once(head).chain(listing.recorded.iter().map(row)).collect::<Vec<_>>()) + &damaged
}

fn import(store: &str, path: &Path, set: &str, known: &DeviceTable, output: Output) -> Result<(), Failure> {
    let dataset = read_some(path)?;
    let fault = |e: DatasetError| Failure::of_file(Kind::Input, path, e);
    if !dataset.schema().columns.config.is_empty() {
        let message = "its candidates are configurations; the repository keeps named variants";
        return Err(Failure::of_file(Kind::Input, path, message));
    }
    let features = dataset.features_on_any_device().map_err(fault)?;
    let mut devices: Vec<String> = (0..dataset.len()).map(|r| dataset.device(r)).collect();
    devices.sort();
    devices.dedup();
    let mut recorded = Vec::new();
    // All of it is looked at before any of it is written.
    let mut records: Vec<(Key, Vec<Record>)> = Vec::new();
    for device in &devices {
        let rows: Vec<usize> = (0..dataset.len()).filter(|&r| dataset.device(r) == *device).collect();
        let cases = Record::of_cases(&dataset.choices_from(&features, &rows).map_err(fault)?).map_err(failure)?;
        let key = Key::new(set, device).map_err(failure)?;
        let own = known.of(device).ok().cloned();
        let (set, device) = (set.to_owned(), device.clone());
        let device_features = own.as_ref().map_or(0, |c| c.0.len());
        recorded.push(Recorded { set, device, cases: cases.len(), device_features, ..Recorded::default() });
        records.push((key, own.map(Record::Device).into_iter().chain(cases).collect()));
    }
    let mut repository = open(store).map_err(failure)?;
    for (key, records) in &records {
        for record in records {
            repository.append(key, record).map_err(failure)?;
        }
    }
    let listing = Listing { store: store.to_owned(), recorded, damaged: Vec::new() };
    output.answer(&listing, || table(&listing))
}

fn export(store: &str, set: &str, out: &PathBuf, features: Option<&PathBuf>, output: Output) -> Result<(), Failure> {
    if out.extension().is_none_or(|e| e != "csv") {
        return Err(Failure::new(Kind::Usage, "out", format!("{} does not end in .csv", out.display())));
    }
    let _files = (expect_writable("out", out)?, expect_writable("device-features", features)?);
    let found = training(&mut *opened(store)?, set).map_err(failure)?;
    if found.sources.is_empty() {
        return Err(Failure::new(Kind::Nothing, "set", format!("no device has recorded inputs of {set:?}")));
    }
    let of: Vec<(&str, &ChoiceSet)> = found.sources.iter().map(|s| (s.device.as_str(), &s.cases)).collect();
    let dataset = Dataset::from_choices(&of).map_err(|e| Failure::new(Kind::Input, "set", e))?;
    dataset.write(out).map_err(|e| Failure::of_file(Kind::Store, out, e))?;
    if let Some(file) = features {
        let table = found.devices().map_err(failure)?;
        write(file, &table.to_csv())?;
    }
    let answer = Exported {
        set: set.to_owned(),
        dataset: out.display().to_string(),
        devices: found.sources.iter().map(|s| s.device.clone()).collect(),
        cases: found.sources.iter().map(|s| s.cases.len()).sum(),
        rows: dataset.len(),
    };
    output.answer(&answer, || {
        format!("{}: {} of {}\n", answer.dataset, counted(answer.cases, "input"), answer.devices.join(" "))
    })
}
