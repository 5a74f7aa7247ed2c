//! From text to machine code, in parallel on the host's cores, ahead of its use.

use super::driver::Driver;
use crate::ptxas::Ptxas;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Images that are kept: those that were announced and not yet used, and some more.
const KEPT: usize = 2048;

/// Announced programs per thread of the compiler: enough that none runs dry, few enough that plans can change.
const AHEAD_PER_THREAD: usize = 8;

type Image = Arc<Result<Vec<u8>, String>>;
type Slot = Arc<OnceLock<Image>>;

/// Compiles, and remembers.
pub(super) struct Compiler {
    driver: Arc<Driver>,
    ptxas: Option<Ptxas>,
    sm: u32,
    pool: Option<ThreadPool>,
    known: Mutex<Known>,
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
    /// With ptxas where it is found and not newer than the driver, which would not load what it makes; else with the
    /// driver's own.
    pub(super) fn new(driver: Arc<Driver>, sm: i64) -> Arc<Self> {
        let level = u32::try_from(driver.version() / 1000).unwrap_or(0);
        let capability = u32::try_from(sm).unwrap_or(0);
        let ptxas = Ptxas::candidates(capability).find(|p| p.release().0 <= level);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // One core launches and reads the clock.
        let threads = (cores - 1).max(1);
        let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("compile-{i}")).build().ok();
        Arc::new(Self { driver, ptxas, sm: capability, pool, known: Mutex::default() })
    }

    /// Who compiles, for records.
    pub(super) fn name(&self) -> String {
        match &self.ptxas {
            Some(p) => format!("ptxas {}.{}", p.release().0, p.release().1),
            None => "the driver".into(),
        }
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
            pool.spawn(move || {
                slot.get_or_init(|| compiler.compile(&text));
            });
        }
    }

    /// The machine code; waits for it, or makes it, where it is not there yet.
    pub(super) fn image(&self, text: &str) -> Image {
        self.slot(text).get_or_init(|| self.compile(text)).clone()
    }

    fn compile(&self, text: &str) -> Image {
        Arc::new(match &self.ptxas {
            Some(ptxas) => ptxas.assemble(text, self.sm).map(|code| code.image).map_err(|e| e.to_string()),
            None => self.driver.assemble(text),
        })
    }
}
