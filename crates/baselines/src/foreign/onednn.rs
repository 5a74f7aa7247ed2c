//! oneDNN by the C API of its version 3: convolutions of binary32, and products of matrices.
//!
//! The outside sees only safe functions. Their soundness rests on three facts: the functions looked up here have the prototypes of
//! version 3, which is asked for before any other call; [`Convolution::run`] and [`Product::run`] check that their slices reach as far as the
//! descriptors that the library was given; and every call that reads or changes an object is made under one lock.

mod description;
mod product;

use super::{Library, LoadError, Visibility};
pub(crate) use description::{Description, Pass, Tensor};
pub(crate) use product::{ElementKind, Product, ProductDescription};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An engine, a stream, a descriptor, memory, or a primitive.
type Object = *mut c_void;
type Status = c_int;
/// `dnnl_dims_t`.
type Dims = [i64; 12];
type Destroy = unsafe extern "C" fn(Object) -> Status;

const VERSION: c_int = 3;
const RUNTIME_SEQUENTIAL: c_uint = 1;
const RUNTIME_OPENMP: c_uint = 2;
const CPU: c_int = 1;
const UNIMPLEMENTED: Status = 3;
const IN_ORDER: c_uint = 1;
const FORWARD_TRAINING: c_int = 64;
const FORWARD_INFERENCE: c_int = 96;
/// Winograd's sums are of another accuracy.
const DIRECT: c_int = 1;
const F32: c_int = 3;
const TAG_ANY: c_int = 1;
const QUERY_IMPLEMENTATION: c_int = 8;
const QUERY_ARGUMENT: c_int = 255;
const FROM: c_int = 1;
const TO: c_int = 17;

/// `dnnl_version_t`.
#[repr(C)]
struct Version {
    major: c_int,
    minor: c_int,
    patch: c_int,
    hash: *const c_char,
    cpu_runtime: c_uint,
    gpu_runtime: c_uint,
}

/// `dnnl_exec_arg_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Argument {
    role: c_int,
    memory: Object,
}

macro_rules! api {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions that are called.
        struct Api { $($name: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Api {
            fn of(library: &Library) -> Result<Self, LoadError> {
                // SAFETY: these are the prototypes of version 3, which the caller has asked for.
                unsafe { Ok(Self { $($name: library.symbol(concat!("dnnl_", stringify!($name)))?,)* }) }
            }
        }
    };
}

api! {
    engine_create(*mut Object, c_int, usize) -> Status;
    stream_create(*mut Object, Object, c_uint) -> Status;
    stream_wait(Object) -> Status;
    memory_desc_create_with_strides(*mut Object, c_int, *const Dims, c_int, *const Dims) -> Status;
    memory_desc_create_with_tag(*mut Object, c_int, *const Dims, c_int, c_int) -> Status;
    memory_desc_equal(Object, Object) -> c_int;
    memory_desc_destroy(Object) -> Status;
    memory_create(*mut Object, Object, Object, *mut c_void) -> Status;
    memory_set_data_handle(Object, *mut c_void) -> Status;
    memory_destroy(Object) -> Status;
    reorder_primitive_desc_create(*mut Object, Object, Object, Object, Object, Object) -> Status;
    convolution_forward_primitive_desc_create(
        *mut Object, Object, c_int, c_int, Object, Object, Object, Object, *const Dims, *const Dims, *const Dims, *const Dims, Object
    ) -> Status;
    convolution_backward_data_primitive_desc_create(
        *mut Object, Object, c_int, Object, Object, Object, *const Dims, *const Dims, *const Dims, *const Dims, Object, Object
    ) -> Status;
    convolution_backward_weights_primitive_desc_create(
        *mut Object, Object, c_int, Object, Object, Object, Object, *const Dims, *const Dims, *const Dims, *const Dims, Object, Object
    ) -> Status;
    matmul_primitive_desc_create(*mut Object, Object, Object, Object, Object, Object, Object) -> Status;
    primitive_desc_query(Object, c_int, c_int, *mut *const c_char) -> Status;
    primitive_desc_query_md(Object, c_int, c_int) -> Object;
    primitive_desc_destroy(Object) -> Status;
    primitive_create(*mut Object, Object) -> Status;
    primitive_execute(Object, Object, c_int, *const Argument) -> Status;
    primitive_destroy(Object) -> Status;
}

/// A call that the library refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("oneDNN: {what}: {}", reason(*.status))]
pub(crate) struct CallError {
    what: &'static str,
    status: Status,
}

fn reason(status: Status) -> String {
    match status {
        1 => "out of memory".to_owned(),
        2 => "it takes the arguments for wrong".to_owned(),
        UNIMPLEMENTED => "it has no code for this".to_owned(),
        other => format!("status {other}"),
    }
}

fn checked(what: &'static str, status: Status) -> Result<(), CallError> {
    if status == 0 { Ok(()) } else { Err(CallError { what, status }) }
}

/// An object of the library, destroyed with this.
struct Owned {
    object: Object,
    destroy: Destroy,
}

// SAFETY: objects of oneDNN belong to no thread, and whatever uses one holds the lock of the library.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    fn new(
        what: &'static str,
        destroy: Destroy,
        create: impl FnOnce(*mut Object) -> Status,
    ) -> Result<Self, CallError> {
        let mut object = std::ptr::null_mut();
        checked(what, create(&raw mut object))?;
        Ok(Self { object, destroy })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the object is the library's, and nobody has it any more. A failure leaves it allocated, no more.
        unsafe { (self.destroy)(self.object) };
    }
}

/// oneDNN, opened, with an engine on the host. Never closed.
pub(crate) struct OneDnn {
    api: Api,
    engine: Object,
    stream: Object,
    /// `omp_set_num_threads`; none in a library without threads.
    set_threads: Option<unsafe extern "C" fn(c_int)>,
    version: String,
    lock: Mutex<()>,
}

// SAFETY: engine and stream live for ever, belong to no thread, and are used under the lock only.
unsafe impl Send for OneDnn {}
// SAFETY: as above.
unsafe impl Sync for OneDnn {}

impl fmt::Debug for OneDnn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OneDnn({})", self.version)
    }
}

impl OneDnn {
    /// Opens the library of a file, if it is of version 3 and lets its number of threads be set.
    pub(crate) fn open(path: &Path) -> Result<&'static Self, LoadError> {
        let library = Library::open(path, Visibility::Local)?;
        // SAFETY: every version since the first has this function.
        let version: unsafe extern "C" fn() -> *const Version = unsafe { library.symbol("dnnl_version")? };
        // SAFETY: a constant of the library; fields behind `hash` are there since version 1.3 and read from version 3 on.
        let version = unsafe { version() };
        // SAFETY: as above.
        let (major, minor, patch) = unsafe { ((*version).major, (*version).minor, (*version).patch) };
        let text = format!("{major}.{minor}.{patch}");
        let unusable = |why: String| LoadError::Unusable { path: path.to_owned(), why };
        if major != VERSION {
            return Err(unusable(format!("it is oneDNN {text}, and version {VERSION} is needed")));
        }
        // SAFETY: as above.
        let set_threads = match unsafe { (*version).cpu_runtime } {
            RUNTIME_SEQUENTIAL => None,
            // SAFETY: the prototype of every OpenMP. It is looked up in what this library needs, whatever else is open.
            RUNTIME_OPENMP => Some(unsafe { library.symbol("omp_set_num_threads")? }),
            _ => {
                return Err(unusable(format!(
                    "it is oneDNN {text} built for other threads than OpenMP's, which cannot be numbered"
                )));
            }
        };
        let api = Api::of(library)?;
        let refused = |e: CallError| unusable(e.to_string());
        let (mut engine, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: out pointers to live variables; the engine is there when the stream is made.
        unsafe {
            checked("an engine", (api.engine_create)(&raw mut engine, CPU, 0)).map_err(refused)?;
            checked("a stream", (api.stream_create)(&raw mut stream, engine, IN_ORDER)).map_err(refused)?;
        }
        Ok(Box::leak(Box::new(Self { api, engine, stream, set_threads, version: text, lock: Mutex::new(()) })))
    }

    /// As in `3.6.2`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The most threads it can use, if limited.
    pub(crate) fn max_threads(&self) -> Option<usize> {
        self.set_threads.is_none().then_some(1)
    }

    /// Takes the library for some calls on this thread, by so many threads. OpenMP's setting belongs to the thread that makes it.
    fn hold(&self, threads: usize) -> MutexGuard<'_, ()> {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = self.set_threads {
            // SAFETY: any positive number will do.
            unsafe { set(threads.clamp(1, 1 << 16) as c_int) };
        }
        held
    }

    fn descriptor(&self, of: &Tensor, kind: c_int, is_any: bool) -> Result<Owned, CallError> {
        let (count, dims, strides) = (of.dims.len() as c_int, padded(&of.dims), padded(&of.strides));
        Owned::new("a descriptor", self.api.memory_desc_destroy, |out| {
            // SAFETY: as many dimensions as `count` says, at most 12, stand in arrays of 12.
            unsafe {
                match is_any {
                    true => (self.api.memory_desc_create_with_tag)(out, count, &raw const dims, kind, TAG_ANY),
                    false => (self.api.memory_desc_create_with_strides)(
                        out,
                        count,
                        &raw const dims,
                        kind,
                        &raw const strides,
                    ),
                }
            }
        })
    }

    fn memory(&self, descriptor: Object, data: *mut c_void) -> Result<Owned, CallError> {
        Owned::new("memory", self.api.memory_destroy, |out| {
            // SAFETY: the descriptor is alive; the memory has its own copy.
            unsafe { (self.api.memory_create)(out, descriptor, self.engine, data) }
        })
    }

    fn primitive(&self, descriptor: &Owned) -> Result<Owned, CallError> {
        Owned::new("a primitive", self.api.primitive_destroy, |out| {
            // SAFETY: the descriptor is alive; the primitive has its own reference.
            unsafe { (self.api.primitive_create)(out, descriptor.object) }
        })
    }

    fn execute(&self, what: &'static str, primitive: &Owned, arguments: &[Argument]) -> Result<(), CallError> {
        let count = arguments.len() as c_int;
        // SAFETY: the primitive and the memories are alive, and the memories' data are: whoever runs a primitive has set them.
        checked(what, unsafe { (self.api.primitive_execute)(primitive.object, self.stream, count, arguments.as_ptr()) })
    }
}

fn padded(values: &[i64]) -> Dims {
    let mut out = [0; 12];
    out[..values.len()].copy_from_slice(values);
    out
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything: tensors are brought to the library's layouts, and the result from it.
    All,
    /// The first run does everything, and later ones the convolution only, on what lies in the library's layouts since then.
    Inner,
}

/// A tensor of a convolution.
struct Side {
    role: c_int,
    /// The caller's data; set in each run.
    plain: Owned,
    /// The library's copy, and what fills it from the caller's or the other way round; none where it takes the caller's.
    own: Option<(Owned, Owned)>,
    reach: usize,
}

/// A convolution, ready to run.
pub(crate) struct Convolution {
    library: &'static OneDnn,
    sides: [Side; 3],
    primitive: Owned,
    written: usize,
    threads: usize,
    /// Whether the library's layouts hold data.
    is_filled: AtomicBool,
}

impl OneDnn {
    /// Makes the code of a convolution.
    pub(crate) fn convolution(&'static self, of: &Description) -> Result<Convolution, CallError> {
        let wrong = CallError { what: "tensors of nothing", status: 2 };
        let mut reaches = [0; 3];
        for (reach, tensor) in reaches.iter_mut().zip(&of.tensors) {
            *reach = tensor.reach().ok_or_else(|| wrong.clone())?;
        }
        let _held = self.hold(of.threads);
        let chosen = self.chosen(of)?;
        if self.is_reference(&chosen) {
            return Err(CallError { what: "other than its reference code", status: UNIMPLEMENTED });
        }
        let primitive = self.primitive(&chosen)?;
        let side = |at: usize| self.side(of, &chosen, at, reaches[at]);
        Ok(Convolution {
            library: self,
            sides: [side(0)?, side(1)?, side(2)?],
            primitive,
            written: of.pass.written(),
            threads: of.threads,
            is_filled: AtomicBool::new(false),
        })
    }

    /// The descriptor of the primitive, with the layouts that the library chose.
    fn chosen(&self, of: &Description) -> Result<Owned, CallError> {
        let tensor = |at: usize| self.descriptor(&of.tensors[at], F32, of.own[at]);
        let (x, f, y) = (tensor(0)?, tensor(1)?, tensor(2)?);
        let [x, f, y] = [&x, &f, &y].map(|owned| owned.object);
        let none = std::ptr::null_mut();
        let [stride, dilation, pad] = [of.stride, of.dilation, of.pad].map(|pair| padded(&pair));
        let (s, d, p) = (&raw const stride, &raw const dilation, &raw const pad);
        let (api, engine, destroy) = (&self.api, self.engine, self.api.primitive_desc_destroy);
        let forward = |kind: c_int| {
            Owned::new("a forward convolution", destroy, |out| {
                // SAFETY: descriptors are alive, arrays have 12 elements, and bias and attributes may be null.
                unsafe {
                    let create = api.convolution_forward_primitive_desc_create;
                    create(out, engine, kind, DIRECT, x, f, none, y, s, d, p, p, none)
                }
            })
        };
        if of.pass == Pass::Forward {
            return forward(FORWARD_INFERENCE);
        }
        let hint = forward(FORWARD_TRAINING)?;
        Owned::new("a gradient", destroy, |out| {
            // SAFETY: as above, and the hint is alive.
            unsafe {
                if of.pass == Pass::Data {
                    let create = api.convolution_backward_data_primitive_desc_create;
                    create(out, engine, DIRECT, x, f, y, s, d, p, p, hint.object, none)
                } else {
                    let create = api.convolution_backward_weights_primitive_desc_create;
                    create(out, engine, DIRECT, x, f, none, y, s, d, p, p, hint.object, none)
                }
            }
        })
    }

    /// Whether all it has is the plain loops that it tests its code against, a hundred times slower: nobody calls those for speed.
    fn is_reference(&self, chosen: &Owned) -> bool {
        let mut name = std::ptr::null();
        // SAFETY: the descriptor is alive, and this query writes one pointer.
        let status = unsafe { (self.api.primitive_desc_query)(chosen.object, QUERY_IMPLEMENTATION, 0, &raw mut name) };
        // SAFETY: a string of the library that lives as long as the descriptor.
        status == 0 && unsafe { CStr::from_ptr(name) }.to_bytes().starts_with(b"ref")
    }

    fn side(&self, of: &Description, chosen: &Owned, at: usize, reach: usize) -> Result<Side, CallError> {
        const ALLOCATE: *mut c_void = usize::MAX as *mut c_void;
        let role = of.pass.roles()[at];
        let plain = self.descriptor(&of.tensors[at], F32, false)?;
        // SAFETY: the descriptor is alive, and lends the one of its argument while it is.
        let wanted = unsafe { (self.api.primitive_desc_query_md)(chosen.object, QUERY_ARGUMENT, role) };
        // SAFETY: both are alive.
        let is_plain = unsafe { (self.api.memory_desc_equal)(wanted, plain.object) } != 0;
        let own = if is_plain {
            None
        } else {
            let (from, to) = if at == of.pass.written() { (wanted, plain.object) } else { (plain.object, wanted) };
            let descriptor = Owned::new("a reorder", self.api.primitive_desc_destroy, |out| {
                let none = std::ptr::null_mut();
                // SAFETY: both are alive, and attributes may be null.
                unsafe { (self.api.reorder_primitive_desc_create)(out, from, self.engine, to, self.engine, none) }
            })?;
            Some((self.memory(wanted, ALLOCATE)?, self.primitive(&descriptor)?))
        };
        Ok(Side { role, plain: self.memory(plain.object, std::ptr::null_mut())?, own, reach })
    }
}

impl Side {
    fn argument(&self) -> Argument {
        let memory = self.own.as_ref().map_or(self.plain.object, |(own, _)| own.object);
        Argument { role: self.role, memory }
    }
}

impl Convolution {
    /// Runs on the two tensors that are read, in their order, and the one that is written.
    pub(crate) fn run(&self, read: [&[f32]; 2], written: &mut [f32], part: Part) -> Result<(), CallError> {
        let library = self.library;
        let _held = library.hold(self.threads);
        let read_at = (0..3).filter(|at| *at != self.written);
        let mut data: Vec<(usize, *mut f32, usize)> =
            read_at.zip(read).map(|(at, slice)| (at, slice.as_ptr().cast_mut(), slice.len())).collect();
        data.push((self.written, written.as_mut_ptr(), written.len()));
        for (at, pointer, len) in data {
            let side = &self.sides[at];
            if len < side.reach {
                return Err(CallError { what: "a slice that is too short", status: 2 });
            }
            // SAFETY: the slice reaches as far as the descriptor. What is borrowed as read is only read: its role is an input's.
            let status = unsafe { (library.api.memory_set_data_handle)(side.plain.object, pointer.cast()) };
            checked("the caller's data", status)?;
        }
        let is_whole = part == Part::All || !self.is_filled.load(Ordering::Relaxed);
        if is_whole {
            (0..3).filter(|at| *at != self.written).try_for_each(|at| self.reorder(at))?;
        }
        library.execute("a convolution", &self.primitive, &[0, 1, 2].map(|at: usize| self.sides[at].argument()))?;
        if is_whole {
            self.reorder(self.written)?;
        }
        // SAFETY: the stream is alive.
        checked("waiting", unsafe { (library.api.stream_wait)(library.stream) })?;
        self.is_filled.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Between the caller's data and the library's, in the tensor's own direction.
    fn reorder(&self, at: usize) -> Result<(), CallError> {
        let Side { plain, own, .. } = &self.sides[at];
        let Some((own, reorder)) = own else { return Ok(()) };
        let (from, to) = if at == self.written { (own, plain) } else { (plain, own) };
        let arguments = [(FROM, from), (TO, to)].map(|(role, of)| Argument { role, memory: of.object });
        self.library.execute("a reorder", reorder, &arguments)
    }
}
