//! From text to machine code, in parallel on the host's cores, ahead of its use.

use super::driver::{Driver, Module, shown};
use super::spin;
use crate::ptxas::Ptxas;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tilewright_core::program::DeviceError;

/// Images that are kept: those that were announced and not yet used, and some more.
const KEPT: usize = 2048;

/// Announced programs per thread of the compiler: enough that none runs dry, few enough that plans can change.
const AHEAD_PER_THREAD: usize = 8;

type Image = Arc<Result<Vec<u8>, DeviceError>>;
type Slot = Arc<OnceLock<Image>>;

/// Compiles, and remembers.
pub(super) struct Compiler {
    driver: Arc<Driver>,
    ptxas: Option<Ptxas>,
    sm: u32,
    pool: Option<ThreadPool>,
    known: Mutex<Known>,
    /// How often what was announced was abandoned.
    abandoned: AtomicU64,
}

#[derive(Default)]
struct Known {
    slots: HashMap<[u8; 32], Slot>,
    order: VecDeque<[u8; 32]>,
}

/// What identifies a text.
pub(super) fn key(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

impl Compiler {
    /// With ptxas where one is found that knows the device, is not newer than the driver, and makes what the driver loads; else with the
    /// driver's own.
    pub(super) fn new(driver: Arc<Driver>, sm: i64) -> Arc<Self> {
        let level = u32::try_from(driver.version() / 1000).unwrap_or(0);
        let capability = u32::try_from(sm).unwrap_or(0);
        let loads = |p: &Ptxas| {
            let code = p.assemble(spin::TEXT, capability);
            code.is_ok_and(|code| Module::load(&driver, &code.image).is_ok())
        };
        let suits = |p: &Ptxas| p.release().0 <= level && loads(p);
        let ptxas = Ptxas::candidates(capability).find(suits);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // One core launches and reads the clock.
        let threads = (cores - 1).max(1);
        let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("compile-{i}")).build().ok();
        let (known, abandoned) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { driver, ptxas, sm: capability, pool, known, abandoned })
    }

    /// Who compiles, for records.
    pub(super) fn name(&self) -> String {
        self.ptxas.as_ref().map_or_else(|| "the driver".into(), Ptxas::described)
    }

    pub(super) fn ahead(&self) -> usize {
        self.pool.as_ref().map_or(1, |p| p.current_num_threads() * AHEAD_PER_THREAD)
    }

    fn slot(&self, text: &str) -> Slot {
        let key = key(text);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = known.slots.get(&key) {
            return slot.clone();
        }
        if known.order.len() >= KEPT {
            let oldest = known.order.pop_front();
            oldest.and_then(|key| known.slots.remove(&key));
        }
        known.order.push_back(key);
        known.slots.entry(key).or_default().clone()
    }

    /// Compiles in the background what is not known yet.
    pub(super) fn expect(self: &Arc<Self>, text: &str) {
        let (Some(pool), slot) = (&self.pool, self.slot(text)) else { return };
        if slot.get().is_none() {
            let (compiler, text) = (self.clone(), text.to_owned());
            let announced = self.abandoned.load(Ordering::Relaxed);
            pool.spawn(move || {
                if compiler.abandoned.load(Ordering::Relaxed) == announced {
                    slot.get_or_init(|| compiler.compile(&text));
                }
            });
        }
    }

    /// What was announced and has not begun is left alone, until somebody asks for it.
    pub(super) fn abandon(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    /// The machine code; waits for it, or makes it, where it is not there yet.
    pub(super) fn image(&self, text: &str) -> Image {
        self.slot(text).get_or_init(|| self.compile(text)).clone()
    }

    fn compile(&self, text: &str) -> Image {
        Arc::new(match &self.ptxas {
            Some(ptxas) => {
                ptxas.assemble(text, self.sm).map(|code| code.image).map_err(|e| DeviceError::Load(e.to_string()))
            }
            None => expect_level(text, self.driver.id(), self.driver.version())
                .and_then(|()| self.driver.assemble(text).map_err(DeviceError::Load)),
        })
    }
}

/// Refuses text of a newer version than the driver's compiler knows, as far as it is known what that is.
fn expect_level(text: &str, device: &str, level: i32) -> Result<(), DeviceError> {
    let (Some(wanted), Some(known)) = (version(text), known(level)) else { return Ok(()) };
    if wanted <= known {
        return Ok(());
    }
    let shown_version = |(major, minor): (u32, u32)| format!("PTX {major}.{minor}");
    let needs = match first_level(wanted) {
        Some(first) => format!("{} for {}", shown(first), shown_version(wanted)),
        None => format!("one for {}", shown_version(wanted)),
    };
    let has = format!("{}, which knows {}", shown(level), shown_version(known));
    Err(DeviceError::OldDriver { device: device.to_owned(), needs, has })
}

/// The version that a text says it is of.
fn version(text: &str) -> Option<(u32, u32)> {
    let said = text.lines().find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = said.split_whitespace().next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Levels of drivers with the newest version of PTX that each knows (release notes of the PTX ISA): those of CUDA 12. Since CUDA 13 the
/// minor numbers are the same.
const VERSIONS: [(i32, (u32, u32)); 10] = [
    (12_000, (8, 0)),
    (12_010, (8, 1)),
    (12_020, (8, 2)),
    (12_030, (8, 3)),
    (12_040, (8, 4)),
    (12_050, (8, 5)),
    (12_060, (8, 5)),
    (12_070, (8, 6)),
    (12_080, (8, 7)),
    (12_090, (8, 8)),
];

/// The newest version of PTX that a driver of this level knows; none where that is not known here.
fn known(level: i32) -> Option<(u32, u32)> {
    if level / 1000 == 13 {
        return Some((9, u32::try_from(level % 1000 / 10).ok()?));
    }
    VERSIONS.iter().find(|(of, _)| *of == level).map(|(_, version)| *version)
}

/// The first level whose driver knows a version.
fn first_level(wanted: (u32, u32)) -> Option<i32> {
    match wanted {
        (9, minor) => Some(13_000 + 10 * i32::try_from(minor).ok()?),
        _ => VERSIONS.iter().find(|(_, version)| *version >= wanted).map(|(level, _)| *level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_too_old_for_a_text_is_named_with_what_is_needed() {
        let refused = |text: &str, level| expect_level(text, "cuda:0", level).err().map(|e| e.to_string());
        assert_eq!(refused(".version 8.0\n.target sm_90a", 12_000), None);
        assert_eq!(refused("// by hand\n  .version 9.1\n", 13_010), None);
        let old = refused(".version 8.6\n.target sm_100a", 12_040).unwrap();
        for part in ["cuda:0", "CUDA 12.4, which knows PTX 8.4", "CUDA 12.7 for PTX 8.6"] {
            assert!(old.contains(part), "{old}");
        }
        assert!(refused(".version 9.2", 12_090).unwrap().contains("CUDA 13.2 for PTX 9.2"));
        assert!(refused(".version 10.0", 13_000).unwrap().contains("one for PTX 10.0"));
        // Nobody knows yet what that one knows.
        assert_eq!((refused(".version 10.0", 14_000), refused("no version", 12_000)), (None, None));
    }
}
