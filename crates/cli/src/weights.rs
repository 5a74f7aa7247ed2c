//! The linear model of a device: where its weights are kept, and how they are read.

use crate::failure::{Failure, Kind};
use crate::wiring::home;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tilewright_bench_suite::linear::{Columns, HostTerms};
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_perfmodel_linear::LinearModel;

/// Where the weights of a device are kept.
pub(crate) fn stored(spec: &DeviceSpec) -> Result<PathBuf, Failure> {
    Ok(home()?.profiles().join(format!("linear-{}.json", &spec.fingerprint()[..12])))
}

/// The command that makes the weights of a device.
pub(crate) fn command(spec: &DeviceSpec) -> String {
    let threads = spec.fact("threads").filter(|_| spec.kind == DeviceKind::Cpu);
    let threads = threads.map_or_else(String::new, |n| format!(" --threads {n}"));
    format!("`tilewright model fit --model linear --device {}{threads}`", spec.id)
}

/// Writes weights where a file is named, or where they are looked for.
pub(crate) fn save(model: &LinearModel, file: &Path) -> Result<(), Failure> {
    let store = |e: &dyn std::fmt::Display| Failure::new(Kind::Store, &file.display().to_string(), e);
    let value = model.to_value().map_err(|e| store(&e))?;
    tilewright_runtime::store::write_atomically(file, format!("{value:#}\n").as_bytes()).map_err(|e| store(&e))
}

/// The weights of a device: those of a named file, or the stored ones.
pub(crate) fn load(spec: &DeviceSpec, named: Option<&Path>) -> Result<LinearModel, Failure> {
    let file = named.map_or_else(|| stored(spec), |f| Ok(f.to_path_buf()))?;
    let missing = |e: std::io::Error| {
        let message = format!("{e}: there are no weights of this device yet; {} makes them", command(spec));
        Failure { detail: Some("no-weights"), ..Failure::new(Kind::Input, &file.display().to_string(), message) }
    };
    read(spec, &file, &std::fs::read(&file).map_err(missing)?)
}

/// The stored weights of a device, if there are any.
pub(crate) fn find(spec: &DeviceSpec) -> Result<Option<LinearModel>, Failure> {
    let file = stored(spec)?;
    match std::fs::read(&file) {
        Ok(text) => read(spec, &file, &text).map(Some),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::new(Kind::Store, &file.display().to_string(), e)),
    }
}

fn read(spec: &DeviceSpec, file: &Path, text: &[u8]) -> Result<LinearModel, Failure> {
    let store = |detail: &'static str, e: &dyn std::fmt::Display| {
        let message = format!("{e}; {} makes others", command(spec));
        Failure { detail: Some(detail), ..Failure::new(Kind::Store, &file.display().to_string(), message) }
    };
    let value = serde_json::from_slice(text).map_err(|e| store("corrupt", &e))?;
    let model = LinearModel::from_value(value).map_err(|e| store("corrupt", &e))?;
    model.expect_device(&spec.fingerprint()).map_err(|e| store("other-device", &e))?;
    let properties = Columns::host(spec, HostTerms::of(&model)).map(|columns| columns.properties());
    if properties.is_some_and(|known| !model.weights.iter().map(|w| &w.property).eq(&known)) {
        return Err(store("foreign-version", &"its properties are not those that this version counts"));
    }
    Ok(model)
}
