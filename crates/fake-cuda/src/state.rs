//! What the driver knows, and what its calls do. Nothing here is unsafe: pointers end in [`exports`](crate::exports).

use crate::attributes::{self, MEMORY_BYTES};
use crate::repeats::Repeats;
use cudarc::driver::sys::CUresult as Code;
use std::collections::HashMap;
use tilewright_emulator::{Argument, BufferId, Fault, Finding, Launch, LaunchError, Limits, Memory, Module, Report};

/// Nanoseconds from the launch of a kernel to its first instruction.
const LAUNCH_NS: f64 = 2000.0;
/// Nanoseconds that a launch takes less as part of a graph.
const GRAPH_NS: f64 = 1500.0;
/// Nanoseconds of a warp's instruction, on one of the multiprocessors.
const INSTRUCTION_NS: f64 = 0.7;
/// Bytes that a copy or a filling moves in a nanosecond.
const BYTES_PER_NS: f64 = 100.0;

/// The result of a call.
pub(crate) type Answer<T> = Result<T, Code>;

/// What a handle stands for.
fn known<T>(found: Option<T>) -> Answer<T> {
    found.ok_or(Code::CUDA_ERROR_INVALID_HANDLE)
}

/// Work that is put on the stream, or recorded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    Kernel { function: u64, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, params: Vec<Vec<u8>> },
    Set { at: u64, value: u8, bytes: u64 },
    Copy { to: u64, from: u64, bytes: u64 },
}

struct Function {
    module: u64,
    entry: String,
    /// Bytes of dynamic shared memory that are allowed.
    dynamic: u64,
}

/// Where a log goes, and how many bytes it may have.
pub(crate) type LogPlace = (usize, usize);

struct Link {
    text: Vec<u8>,
    log: LogPlace,
}

/// All of it. Work is done when it is put on the stream.
#[derive(Default)]
pub(crate) struct State {
    memory: Memory,
    repeats: Repeats,
    held: u64,
    modules: HashMap<u64, Module>,
    functions: HashMap<u64, Function>,
    links: HashMap<u64, Link>,
    /// What is being recorded, where it is.
    streams: HashMap<u64, Option<Vec<Work>>>,
    graphs: HashMap<u64, Vec<Work>>,
    /// When they happened; none before they are recorded.
    events: HashMap<u64, Option<f64>>,
    last: u64,
    now_ns: f64,
    /// What a kernel broke. Nothing works afterwards, as on a device.
    broken: Option<Code>,
}

impl State {
    fn handle(&mut self) -> u64 {
        self.last += 1;
        // Looks like an address, so that it is nobody's null.
        0x1000 + 16 * self.last
    }

    fn sound(&self) -> Answer<()> {
        match self.broken {
            // A kernel that hangs is seen by who waits for it.
            None | Some(Code::CUDA_ERROR_NOT_READY) => Ok(()),
            Some(code) => Err(code),
        }
    }

    pub(crate) fn allocate(&mut self, bytes: usize) -> Answer<u64> {
        self.sound()?;
        if bytes == 0 {
            return Err(Code::CUDA_ERROR_INVALID_VALUE);
        }
        if self.held + bytes as u64 > MEMORY_BYTES {
            return Err(Code::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let id = self.memory.add_unwritten("device memory", bytes).map_err(|_| Code::CUDA_ERROR_OUT_OF_MEMORY)?;
        self.held += bytes as u64;
        self.repeats.changed();
        Ok(self.memory.address(id))
    }

    pub(crate) fn free(&mut self, at: u64) -> Answer<()> {
        self.sound()?;
        let id = self.part(at, 1)?.0;
        if self.memory.address(id) != at {
            return Err(Code::CUDA_ERROR_INVALID_VALUE);
        }
        self.held -= self.memory.len(id);
        self.memory.remove(id);
        self.repeats.changed();
        Ok(())
    }

    /// A range that must lie within an allocation.
    fn part(&self, at: u64, bytes: u64) -> Answer<(BufferId, u64)> {
        let (id, offset) = self.memory.locate(at).ok_or(Code::CUDA_ERROR_INVALID_VALUE)?;
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.memory.len(id));
        if fits { Ok((id, offset)) } else { Err(Code::CUDA_ERROR_INVALID_VALUE) }
    }

    pub(crate) fn upload(&mut self, at: u64, from: &[u8]) -> Answer<()> {
        self.sound()?;
        let (id, offset) = self.part(at, from.len() as u64)?;
        if self.memory.write_part(id, offset, from) {
            self.repeats.changed();
        }
        self.now_ns += from.len() as f64 / BYTES_PER_NS;
        Ok(())
    }

    pub(crate) fn download(&mut self, at: u64, to: &mut [u8]) -> Answer<()> {
        self.sound()?;
        let (id, offset) = self.part(at, to.len() as u64)?;
        to.copy_from_slice(&self.memory.read_part(id, offset, to.len() as u64));
        Ok(())
    }

    pub(crate) fn stream(&mut self) -> u64 {
        let stream = self.handle();
        self.streams.insert(stream, None);
        stream
    }

    pub(crate) fn destroy_stream(&mut self, stream: u64) -> Answer<()> {
        known(self.streams.remove(&stream)).map(|_| ())
    }

    /// Everything on a stream is done, or never will be.
    pub(crate) fn synchronize(&self, stream: u64) -> Answer<()> {
        match self.streams.get(&stream) {
            None => Err(Code::CUDA_ERROR_INVALID_HANDLE),
            Some(Some(_)) => Err(Code::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
            Some(None) => self.broken.map_or(Ok(()), Err),
        }
    }

    /// Puts work on a stream, which does it, or records it.
    pub(crate) fn enqueue(&mut self, stream: u64, work: Work) -> Answer<()> {
        self.sound()?;
        self.possible(&work)?;
        match known(self.streams.get_mut(&stream))? {
            Some(recorded) => recorded.push(work),
            None => self.work(&work, LAUNCH_NS)?,
        }
        Ok(())
    }

    /// Whether work may be put on a stream at all.
    fn possible(&self, work: &Work) -> Answer<()> {
        match work {
            Work::Kernel { function, grid, block, shared_bytes, .. } => {
                let function = known(self.functions.get(function))?;
                let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
                let fits = threads <= attributes::THREADS_PER_BLOCK && u64::from(*shared_bytes) <= function.dynamic;
                if fits && threads > 0 && !grid.contains(&0) { Ok(()) } else { Err(Code::CUDA_ERROR_INVALID_VALUE) }
            }
            Work::Set { at, bytes, .. } => self.part(*at, *bytes).map(|_| ()),
            Work::Copy { to, from, bytes } => {
                self.part(*to, *bytes)?;
                self.part(*from, *bytes).map(|_| ())
            }
        }
    }

    fn work(&mut self, work: &Work, launch_ns: f64) -> Answer<()> {
        match work {
            Work::Kernel { .. } => self.launch(work, launch_ns),
            Work::Set { at, value, bytes } => {
                let (id, offset) = self.part(*at, *bytes)?;
                if self.memory.fill(id, offset, *bytes, *value) {
                    self.repeats.changed();
                }
                self.now_ns += *bytes as f64 / BYTES_PER_NS;
                Ok(())
            }
            Work::Copy { to, from, bytes } => {
                let (id, offset) = self.part(*from, *bytes)?;
                let contents = self.memory.read_part(id, offset, *bytes);
                self.upload(*to, &contents)
            }
        }
    }

    fn launch(&mut self, work: &Work, launch_ns: f64) -> Answer<()> {
        let Work::Kernel { function, grid, block, shared_bytes, params } = work else { return Ok(()) };
        let function = known(self.functions.get(function))?;
        let module = known(self.modules.get(&function.module))?;
        if let Some(busy_ns) = self.repeats.known(work) {
            self.now_ns += launch_ns + busy_ns;
            return Ok(());
        }
        let before = self.repeats.before(&self.memory);
        let args: Vec<Argument> = params.iter().cloned().map(Argument::Bytes).collect();
        let limits = Limits { shared_bytes: attributes::SHARED_BYTES, ..attributes::limits() };
        let (entry, grid, block) = (function.entry.as_str(), *grid, *block);
        let launch = Launch { shared_bytes: *shared_bytes, limits, ..Launch::new(entry, grid, block, &args) };
        let report = module.launch(&launch, &mut self.memory).map_err(|error| refusal(&error))?;
        let busy_ns = busy_ns(&report, grid);
        self.now_ns += launch_ns + busy_ns;
        if attributes::faults() {
            self.broken = Some(Code::CUDA_ERROR_LAUNCH_FAILED);
        }
        if let Some(finding) = report.findings.iter().find(|f| !is_cut(f)) {
            eprintln!("fake CUDA: {finding}");
            self.broken = Some(consequence(&finding.fault));
        }
        match self.broken {
            None => self.repeats.ran(work, before, &self.memory, busy_ns),
            Some(_) => self.repeats.changed(),
        }
        Ok(())
    }

    pub(crate) fn begin_capture(&mut self, stream: u64) -> Answer<()> {
        self.sound()?;
        match known(self.streams.get_mut(&stream))? {
            Some(_) => Err(Code::CUDA_ERROR_ILLEGAL_STATE),
            idle => {
                *idle = Some(Vec::new());
                Ok(())
            }
        }
    }

    pub(crate) fn end_capture(&mut self, stream: u64) -> Answer<u64> {
        let recorded = known(self.streams.get_mut(&stream))?.take();
        let recorded = recorded.ok_or(Code::CUDA_ERROR_ILLEGAL_STATE)?;
        Ok(self.graph(recorded))
    }

    fn graph(&mut self, work: Vec<Work>) -> u64 {
        let graph = self.handle();
        self.graphs.insert(graph, work);
        graph
    }

    pub(crate) fn instantiate(&mut self, graph: u64) -> Answer<u64> {
        self.sound()?;
        let work = known(self.graphs.get(&graph).cloned())?;
        Ok(self.graph(work))
    }

    pub(crate) fn launch_graph(&mut self, graph: u64, stream: u64) -> Answer<()> {
        self.sound()?;
        if self.streams.get(&stream).is_none_or(Option::is_some) {
            return Err(Code::CUDA_ERROR_INVALID_HANDLE);
        }
        let work = known(self.graphs.get(&graph).cloned())?;
        work.iter().try_for_each(|w| self.work(w, LAUNCH_NS - GRAPH_NS))
    }

    pub(crate) fn destroy_graph(&mut self, graph: u64) -> Answer<()> {
        known(self.graphs.remove(&graph)).map(|_| ())
    }

    pub(crate) fn event(&mut self) -> u64 {
        let event = self.handle();
        self.events.insert(event, None);
        event
    }

    pub(crate) fn destroy_event(&mut self, event: u64) -> Answer<()> {
        known(self.events.remove(&event)).map(|_| ())
    }

    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Answer<()> {
        self.sound()?;
        if self.streams.get(&stream).is_none_or(Option::is_some) {
            return Err(Code::CUDA_ERROR_INVALID_HANDLE);
        }
        let now = self.now_ns;
        *known(self.events.get_mut(&event))? = Some(now);
        Ok(())
    }

    /// Whether an event has happened; one that was not recorded has.
    pub(crate) fn query(&self, event: u64) -> Answer<()> {
        known(self.events.get(&event))?;
        self.broken.map_or(Ok(()), Err)
    }

    pub(crate) fn elapsed_ms(&self, from: u64, to: u64) -> Answer<f32> {
        let at = |event: u64| self.events.get(&event).copied().flatten().ok_or(Code::CUDA_ERROR_INVALID_HANDLE);
        Ok(((at(to)? - at(from)?) * 1e-6) as f32)
    }

    /// Loads a module: the text that [`State::complete`] gives.
    pub(crate) fn load(&mut self, image: &str) -> Answer<u64> {
        self.sound()?;
        let module = Module::parse(image).map_err(|_| Code::CUDA_ERROR_INVALID_PTX)?;
        let handle = self.handle();
        self.modules.insert(handle, module);
        Ok(handle)
    }

    pub(crate) fn unload(&mut self, module: u64) -> Answer<()> {
        self.functions.retain(|_, f| f.module != module);
        known(self.modules.remove(&module)).map(|_| ())
    }

    pub(crate) fn function(&mut self, module: u64, entry: &str) -> Answer<u64> {
        let known = known(self.modules.get(&module))?;
        if known.parameters(entry).is_none() {
            return Err(Code::CUDA_ERROR_NOT_FOUND);
        }
        let function = self.handle();
        self.functions
            .insert(function, Function { module, entry: entry.to_owned(), dynamic: attributes::STATIC_SHARED });
        Ok(function)
    }

    /// The address and the length of a variable.
    pub(crate) fn variable(&mut self, module: u64, name: &str) -> Answer<(u64, u64)> {
        let module = known(self.modules.get(&module))?;
        let id = self.memory.variable(module, name).map_err(|_| Code::CUDA_ERROR_NOT_FOUND)?;
        self.repeats.changed();
        Ok((self.memory.address(id), self.memory.len(id)))
    }

    /// Bytes of shared memory that a kernel declares.
    pub(crate) fn static_shared(&self, function: u64) -> Answer<i32> {
        let function = known(self.functions.get(&function))?;
        let declared = self.modules.get(&function.module).and_then(|m| m.shared_bytes(&function.entry));
        Ok(declared.and_then(|b| i32::try_from(b).ok()).unwrap_or(0))
    }

    pub(crate) fn allow_dynamic(&mut self, function: u64, bytes: u64) -> Answer<()> {
        let function = known(self.functions.get_mut(&function))?;
        if bytes > attributes::SHARED_BYTES {
            return Err(Code::CUDA_ERROR_INVALID_VALUE);
        }
        function.dynamic = bytes;
        Ok(())
    }

    /// Bytes of each parameter.
    pub(crate) fn parameters(&self, function: u64) -> Answer<Vec<usize>> {
        let function = known(self.functions.get(&function))?;
        let module = known(self.modules.get(&function.module))?;
        let parameters = module.parameters(&function.entry).ok_or(Code::CUDA_ERROR_NOT_FOUND)?;
        Ok(parameters.into_iter().map(|(_, bytes)| bytes).collect())
    }

    pub(crate) fn link(&mut self, log: LogPlace) -> u64 {
        let link = self.handle();
        self.links.insert(link, Link { text: Vec::new(), log });
        link
    }

    /// Checks a text and keeps it; or the error, where its log goes, and the log.
    pub(crate) fn add(&mut self, link: u64, text: &[u8]) -> Result<(), (Code, LogPlace, String)> {
        let unknown = || (Code::CUDA_ERROR_INVALID_HANDLE, (0, 0), String::new());
        let link = self.links.get_mut(&link).ok_or_else(unknown)?;
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        let refused = |said: String| (Code::CUDA_ERROR_INVALID_PTX, link.log, said);
        let words = std::str::from_utf8(text).map_err(|e| refused(e.to_string()))?;
        Module::parse(words).map_err(|e| refused(e.to_string()))?;
        link.text = text.to_vec();
        link.text.push(0);
        Ok(())
    }

    /// The image: the text itself, which stays where it is until the link is destroyed.
    pub(crate) fn complete(&self, link: u64) -> Answer<&[u8]> {
        self.links.get(&link).map(|l| l.text.as_slice()).ok_or(Code::CUDA_ERROR_INVALID_HANDLE)
    }

    pub(crate) fn destroy_link(&mut self, link: u64) -> Answer<()> {
        known(self.links.remove(&link)).map(|_| ())
    }
}

/// Whether a finding only says that the launch was not run to its end, as was asked for.
fn is_cut(finding: &Finding) -> bool {
    match finding.fault {
        Fault::Budget { .. } => true,
        Fault::Hang { .. } => attributes::cuts_short(),
        _ => false,
    }
}

/// How long a launch keeps the device busy: blocks share its multiprocessors, and the last wave takes as long as a full one. Where
/// the launch was cut short, the blocks that ran stand for all.
fn busy_ns(report: &Report, grid: [u32; 3]) -> f64 {
    let blocks: f64 = grid.iter().map(|n| f64::from(*n)).product();
    let cut = report.findings.iter().find(|f| is_cut(f));
    let ran = cut.map_or(blocks, |f| {
        let [x, y, z] = f.block.map(f64::from);
        let [gx, gy, _] = grid.map(f64::from);
        1.0 + x + gx * (y + gy * z)
    });
    let issued: u64 = report.counts.by_class().values().map(|t| t.issued).sum();
    let waves = (blocks / f64::from(attributes::MULTIPROCESSORS)).ceil();
    issued as f64 / ran * waves * INSTRUCTION_NS
}

fn refusal(error: &LaunchError) -> Code {
    match error {
        LaunchError::Load(_) => Code::CUDA_ERROR_NOT_SUPPORTED,
        _ => Code::CUDA_ERROR_INVALID_VALUE,
    }
}

fn consequence(fault: &Fault) -> Code {
    match fault {
        Fault::OutOfBounds { .. } | Fault::ReadOnly { .. } => Code::CUDA_ERROR_ILLEGAL_ADDRESS,
        Fault::Misaligned { .. } => Code::CUDA_ERROR_MISALIGNED_ADDRESS,
        Fault::Hang { .. } | Fault::Deadlock { .. } => Code::CUDA_ERROR_NOT_READY,
        _ => Code::CUDA_ERROR_LAUNCH_FAILED,
    }
}
