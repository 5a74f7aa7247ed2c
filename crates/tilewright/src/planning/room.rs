//! Whether an input fits into memory, asked before anything is made for it.

use crate::error::Error;
use std::sync::Arc;
use tilewright_core::computation::InputError;
use tilewright_core::device::{DeviceKind, DeviceSpec};
use tilewright_core::expr::Value;
use tilewright_core::problem::{AnyKernel, Problem};
use tilewright_core::size::Bytes;
use tilewright_core::space::Config;
use tilewright_runtime::RuntimeError;

/// The object that samplers, models and searches see of a kernel, a device and an input.
///
/// # Errors
/// Fields that describe no input, or one that does not fit into the device's memory.
pub fn problem(kernel: &dyn AnyKernel, device: &Arc<DeviceSpec>, fields: &Config) -> Result<Box<dyn Problem>, Error> {
    // Binding an input makes its data.
    let told = kernel.footprint(fields).map_err(RuntimeError::from)?;
    let refused = |buffers: u64| match excess(device, buffers) {
        Some(message) => Err(Error::Runtime(InputError::new(&at_fault(kernel, fields), message).into())),
        None => Ok(()),
    };
    refused(told.unwrap_or(0))?;
    let problem = kernel.problem(device, fields)?;
    if told.is_none() {
        refused(problem.footprint())?;
    }
    Ok(problem)
}

/// Why a device has no room for buffers of so many bytes, where it has none.
fn excess(device: &DeviceSpec, buffers: u64) -> Option<String> {
    let on_host = device.kind == DeviceKind::Cpu;
    let need = if on_host { buffers.saturating_mul(COPIES) } else { buffers };
    let allowed = memory_limit().filter(|_| on_host);
    let fact = device.fact("memory_bytes").and_then(|have| u64::try_from(have).ok());
    let have = fact.into_iter().chain(allowed).min().filter(|have| need > *have)?;
    let checked = if on_host { format!(", and timed and checked {}", Bytes(need)) } else { String::new() };
    Some(format!("its buffers take {}{checked}; there are {}", Bytes(buffers), Bytes(have)))
}

/// On a device that shares the host's memory, a result that is checked stands beside the data from before it and a copy of it.
const COPIES: u64 = 3;

/// What a container may use, where it is limited.
fn memory_limit() -> Option<u64> {
    std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?.trim().parse().ok()
}

/// The fields that make an input large: those that it would be smaller by a quarter without half of, of those the large ones. Where
/// there is none, the first field: a file, say.
fn at_fault(kernel: &dyn AnyKernel, fields: &Config) -> String {
    let bytes = |fields: &Config| kernel.footprint(fields).ok().flatten();
    let whole = bytes(fields).unwrap_or(0);
    let matters = |at: usize, value: i64| {
        let mut less = fields.clone();
        less.0[at].1 = Value::Int(value / 2);
        bytes(&less).is_some_and(|less| less <= whole - whole / 4)
    };
    let numbers = fields.0.iter().enumerate().filter_map(|(at, (name, value))| Some((at, name, value.as_int()?)));
    let found: Vec<(&str, i64)> =
        numbers.filter(|&(at, _, value)| matters(at, value)).map(|(_, name, value)| (name.as_str(), value)).collect();
    // Of a thousand million times sixty-four, sixty-four is not what is too much.
    let largest = found.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let large = found.iter().filter(|(_, value)| value.saturating_mul(*value) >= largest).map(|(name, _)| *name);
    let names = large.collect::<Vec<_>>().join(" ");
    if names.is_empty() { fields.0.first().map_or_else(String::new, |(name, _)| name.clone()) } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernels;
    use tilewright_core::device::DeviceSpec;

    /// A host of so many GiB.
    fn host(gib: i64) -> Arc<DeviceSpec> {
        let mut spec = (**crate::device::host(Some(1)).unwrap().spec()).clone();
        spec.facts.insert("memory_bytes".into(), gib << 30);
        Arc::new(spec)
    }

    fn refused(kernel: &str, fields: &str) -> InputError {
        let (kernels, device) = (Kernels::default(), host(1));
        let kernel = kernels.competing(kernel, &device, false).unwrap().remove(0);
        match problem(&*kernel, &device, &Config::parse(fields).unwrap()) {
            Err(Error::Runtime(RuntimeError::Problem(tilewright_core::problem::ProblemError::Input(error)))) => error,
            Err(other) => panic!("{fields}: {other}"),
            Ok(problem) => panic!("{fields} takes {} bytes", problem.footprint()),
        }
    }

    #[test]
    fn the_fields_that_make_it_large_are_named() {
        for (kernel, fields, at_fault) in [
            ("gemm", "m=100000,n=100000,k=4", "m n"),
            ("gemm", "m=64,n=64,k=64,lda=2000000000", "lda"),
            ("gemm", "m=64,n=64,k=64,batch=1000000", "batch"),
            ("transpose", "rows=10000,cols=9000", "rows cols"),
        ] {
            let error = refused(kernel, fields);
            assert_eq!(error.field, at_fault, "{fields}: {error}");
            assert!(error.message.contains("GiB") && error.message.ends_with("there are 1.0 GiB"), "{error}");
        }
    }

    /// None of these has many elements: what takes the memory are rows and vertices.
    #[test]
    fn rows_without_elements_are_counted_before_they_are_made() {
        for (kernel, fields, at_fault) in [
            ("spmv", "matrix=uniform,rows=67108864,per_row=0", "rows"),
            ("spmv", "matrix=rmat,scale=26,per_row=0", "scale"),
            ("spmv", "matrix=sparse,rows=67108864,cols=1,entries=0", "rows"),
            ("spmv", "matrix=sparse,rows=1,cols=67108864,entries=0", "cols"),
            ("spmv", "matrix=full-rows,rows=67108864,per_row=0,full=0", "rows"),
            ("spmv", "matrix=blocks,blocks=67108864,size=1,per_row=1", "blocks"),
            ("solve", "matrix=dominant,rows=67108864,per_row=0,excess=1", "rows"),
            ("bfs", "graph=erdos-renyi,vertices=67108864,edges=0", "vertices"),
            ("bfs", "graph=rmat,scale=26,per_vertex=0", "scale"),
            ("bfs", "graph=stars,count=67108864,leaves=0", "count"),
        ] {
            let error = refused(kernel, fields);
            assert_eq!(error.field, at_fault, "{fields}: {error}");
        }
    }
}
