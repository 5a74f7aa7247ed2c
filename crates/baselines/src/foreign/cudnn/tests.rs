//! cuDNN's part is played by functions of this file, which note what they are told.

use super::api::{Pass, Status};
use super::*;
use std::cell::RefCell;
use std::ffi::c_char;
use tilewright_core::space::Config;

/// What the functions were told, in words.
#[derive(Default)]
struct Told {
    lines: Vec<String>,
    /// The last handle.
    last: usize,
    tensors: HashMap<usize, Vec<c_int>>,
    /// The type of sums.
    sums: c_int,
}

thread_local! {
    static TOLD: RefCell<Told> = RefCell::default();
}

fn note(line: String) {
    TOLD.with_borrow_mut(|told| told.lines.push(line));
}

fn told() -> Vec<String> {
    TOLD.with_borrow_mut(|told| std::mem::take(&mut told.lines))
}

/// The sizes of what these descriptors describe.
fn sizes(of: [Handle; 3]) -> String {
    TOLD.with_borrow(|told| {
        format!("{:?}", of.map(|handle| told.tensors.get(&handle.addr()).cloned().unwrap_or_default()))
    })
}

extern "C" fn make(place: *mut Handle) -> Status {
    TOLD.with_borrow_mut(|told| {
        told.last += 1;
        // SAFETY: the caller gives a place for a handle.
        unsafe { *place = std::ptr::without_provenance_mut(told.last) };
    });
    0
}

extern "C" fn no_driver(_: *mut Handle) -> Status {
    1001
}

extern "C" fn set_stream(_: Handle, stream: *mut c_void) -> Status {
    note(format!("stream {}", stream.addr()));
    0
}

extern "C" fn set_tensor(at: Handle, a: c_int, b: c_int, n: c_int, c: c_int, h: c_int, w: c_int) -> Status {
    TOLD.with_borrow_mut(|told| told.tensors.insert(at.addr(), vec![a, b, n, c, h, w]));
    0
}

extern "C" fn set_convolution(
    _: Handle,
    pad_h: c_int,
    pad_w: c_int,
    u: c_int,
    v: c_int,
    dilation_h: c_int,
    dilation_w: c_int,
    mode: c_int,
    sums: c_int,
) -> Status {
    TOLD.with_borrow_mut(|told| told.sums = sums);
    note(format!("pad {pad_h} {pad_w} stride {u} {v} dilation {dilation_h} {dilation_w} mode {mode} sums {sums}"));
    0
}

extern "C" fn set_math(_: Handle, math: c_int) -> Status {
    note(format!("math {math}"));
    0
}

extern "C" fn set_groups(_: Handle, groups: c_int) -> Status {
    note(format!("groups {groups}"));
    0
}

extern "C" fn error(status: Status) -> *const c_char {
    if status == 1001 { c"CUDNN_STATUS_NOT_INITIALIZED".as_ptr() } else { std::ptr::null() }
}

extern "C" fn last_error(text: *mut c_char, _: usize) {
    // SAFETY: the buffer is longer than the text.
    unsafe { std::ptr::copy_nonoverlapping(c"no device".as_ptr(), text, 10) };
}

/// Expects most of 6, then of 1 twice, then of 7; says that 2 fails.
extern "C" fn propose(
    _: Handle,
    first: Handle,
    second: Handle,
    _: Handle,
    written: Handle,
    _: c_int,
    count: *mut c_int,
    results: *mut Performance,
) -> Status {
    note(format!("propose {}", sizes([first, second, written])));
    let named = [(6, 0), (2, 3000), (1, 0), (1, 0), (7, 0)];
    // SAFETY: there is room for more.
    unsafe {
        *count = named.len() as c_int;
        for (at, (algorithm, status)) in named.into_iter().enumerate() {
            *results.add(at) = Performance { algorithm, status, ..Performance::default() };
        }
    }
    0
}

/// 2 and 3 do not compute the input, 4 needs too much.
extern "C" fn workspace(
    _: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
    algorithm: c_int,
    bytes: *mut usize,
) -> Status {
    // SAFETY: the caller gives a place.
    unsafe { *bytes = if algorithm == 4 { MOST_WORKSPACE + 1 } else { 100 * algorithm as usize } };
    if [2, 3].contains(&algorithm) { 3000 } else { 0 }
}

extern "C" fn compute(
    _: Handle,
    one: *const c_void,
    first: Handle,
    a: *const c_void,
    second: Handle,
    b: *const c_void,
    _: Handle,
    algorithm: c_int,
    scratch: *mut c_void,
    bytes: usize,
    zero: *const c_void,
    written: Handle,
    out: *mut c_void,
) -> Status {
    let is_double = TOLD.with_borrow(|told| told.sums) == DOUBLE;
    // SAFETY: scalars are of the type that sums are kept in.
    let scalar =
        |at: *const c_void| unsafe { if is_double { *at.cast::<f64>() } else { f64::from(*at.cast::<f32>()) } };
    let scalars = (scalar(one), scalar(zero));
    let (operands, at) = (sizes([first, second, written]), [a.addr(), b.addr(), out.addr(), scratch.addr()]);
    note(format!("run {algorithm} {scalars:?} on {operands} at {at:?}, {bytes} bytes"));
    0
}

fn cudnn() -> Cudnn {
    let pass = |algorithms| Pass { propose, workspace, run: compute, algorithms };
    Cudnn::new(Api {
        path: None,
        create: make,
        set_stream,
        make_tensor: make,
        set_tensor,
        make_filter: make,
        set_filter: set_tensor,
        make_convolution: make,
        set_convolution,
        set_math,
        set_groups,
        error,
        last_error: Some(last_error),
        forward: pass(8),
        data: pass(6),
        filter: pass(7),
    })
}

fn call(fields: &str, option: u32) -> LibraryCall {
    LibraryCall { library: "cudnn".into(), option, input: Config::parse(fields).unwrap() }
}

const BYTES: [usize; 3] = [1 << 20; 3];

fn stage(bytes: &[usize], scratch_bytes: usize) -> Stage<'_> {
    let stream = std::ptr::without_provenance_mut(77);
    Stage { stream, buffers: &[16, 32, 48], bytes, scalars: &[], scratch: 64, scratch_bytes }
}

#[test]
fn single_precision_is_computed_by_fused_multiply_adds_and_by_nothing_else() {
    let math = |fields: &str| {
        cudnn().scratch_bytes(&call(fields, 0)).unwrap();
        let told = told();
        let of = |what: &str| told.iter().find(|line| line.contains(what)).unwrap().clone();
        (of("sums").split(' ').next_back().unwrap().to_owned(), of("math "))
    };
    let said = |sums: &str, math: &str| (sums.to_owned(), math.to_owned());
    assert_eq!(math("n=1,c=2,h=5,k=3,r=3"), said("0", "math 3"));
    assert_eq!(math("n=1,c=2,h=5,k=3,r=3,dtype=f64"), said("1", "math 0"));
    assert_eq!(math("n=1,c=2,h=5,k=3,r=3,dtype=f16"), said("0", "math 1"));
}

#[test]
fn algorithms_are_in_the_order_of_the_heuristic_and_none_is_left_out() {
    let mut cudnn = cudnn();
    let fields = "n=1,c=2,h=5,k=3,r=3";
    let found: Vec<c_int> = cudnn.described(&call(fields, 0)).unwrap().algorithms.iter().map(|a| a.number).collect();
    // What the heuristic does not name stands behind; 2 and 3 do not compute, 4 asks for too much.
    assert_eq!(found, [6, 1, 7, 0, 5]);
    assert_eq!(cudnn.scratch_bytes(&call(fields, 0)), Ok(600));
    assert_eq!(cudnn.scratch_bytes(&call(fields, BY_NUMBER + 1)), Ok(100));
    for option in [5, 7, BY_NUMBER + 2, BY_NUMBER + 4] {
        let refused = cudnn.scratch_bytes(&call(fields, option)).unwrap_err();
        assert!(matches!(refused, DeviceError::Argument { name, .. } if name == "option"), "{option}");
    }
    // Of the data gradient there are six.
    let found = &cudnn.described(&call("n=1,c=2,h=5,k=3,r=3,direction=data", 0)).unwrap().algorithms;
    assert_eq!(found.iter().map(|a| a.number).collect::<Vec<_>>(), [6, 1, 7, 0, 5]);
}

#[test]
fn tensors_are_described_and_given_in_the_order_of_each_direction() {
    let fields = "n=2,c=4,h=9,w=8,k=6,r=3,s=2,pad=1,stride_h=2,dilation_w=2,groups=2,layout=nhwc";
    // Layout and type of tensors, type and layout of filters.
    let (x, f, y) = ("[1, 0, 2, 4, 9, 8]", "[0, 1, 6, 2, 3, 2]", "[1, 0, 2, 6, 5, 8]");
    let directions = [
        ("forward", format!("[{x}, {f}, {y}]"), [16, 32, 48, 64]),
        ("data", format!("[{f}, {y}, {x}]"), [32, 48, 16, 64]),
        ("filter", format!("[{x}, {y}, {f}]"), [16, 48, 32, 64]),
    ];
    for (direction, operands, places) in directions {
        let (mut cudnn, call) = (cudnn(), call(&format!("{fields},direction={direction}"), 1));
        cudnn.prepare(&call, &stage(&BYTES, 4096)).unwrap();
        cudnn.enqueue(&call, &stage(&BYTES, 4096)).unwrap();
        let expected = [
            "pad 1 1 stride 2 1 dilation 1 2 mode 1 sums 0".to_owned(),
            "math 3".to_owned(),
            "groups 2".to_owned(),
            format!("propose {operands}"),
            "stream 77".to_owned(),
            format!("run 1 (1.0, 0.0) on {operands} at {places:?}, 4096 bytes"),
        ];
        assert_eq!(told(), expected, "{direction}");
    }
}

#[test]
fn doubles_are_scaled_by_doubles() {
    let (mut cudnn, call) = (cudnn(), call("n=1,c=2,h=5,k=3,r=3,dtype=f64", 0));
    cudnn.prepare(&call, &stage(&BYTES, 4096)).unwrap();
    cudnn.enqueue(&call, &stage(&BYTES, 4096)).unwrap();
    assert!(told().pop().unwrap().starts_with("run 6 (1.0, 0.0)"));
}

#[test]
fn calls_are_checked_before_anything_is_called() {
    let (mut cudnn, good) = (cudnn(), "n=1,c=2,h=5,k=3,r=3");
    let mut refused = |fields: &str, bytes: &[usize], scratch: usize| {
        let (call, stage) = (call(fields, 0), stage(bytes, scratch));
        match cudnn.prepare(&call, &stage).and_then(|()| cudnn.enqueue(&call, &stage)) {
            Err(DeviceError::Argument { name, .. }) => name,
            other => format!("{other:?}"),
        }
    };
    assert_eq!(refused("n=1,c=2,h=5,k=3", &BYTES, 4096), "r");
    assert_eq!(refused(&format!("{good},dtype=bf16"), &BYTES, 4096), "dtype");
    assert_eq!(refused(&format!("{good},bias=true"), &BYTES, 4096), "bias");
    assert_eq!(refused("n=1,c=0,h=5,k=3,r=3", &BYTES, 4096), "c");
    // 50, 54 and 27 elements of four bytes.
    assert_eq!(refused(good, &[200, 216, 107], 4096), "buffers");
    assert_eq!(refused(good, &[200, 216], 4096), "buffers");
    assert!(refused(good, &[200, 216, 108], 599).contains("OutOfMemory"));
    assert_eq!(refused(good, &[200, 216, 108], 600), "Ok(())");
    let unprepared = self::cudnn().enqueue(&call(good, 0), &stage(&BYTES, 4096));
    assert!(matches!(unprepared, Err(DeviceError::Load(_))));
}

#[test]
fn statuses_are_told_with_their_reasons() {
    let mut cudnn = cudnn();
    cudnn.api.create = no_driver;
    let told = cudnn.scratch_bytes(&call("n=1,c=2,h=5,k=3,r=3", 0)).unwrap_err().to_string();
    assert!(told.ends_with("cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED (status 1001), no device"), "{told}");
    // Before release 9, and since.
    for status in [9, 3000, 3014] {
        assert!(matches!(cudnn.api.ok(status, "it"), Err(DeviceError::Unsupported { .. })), "{status}");
    }
    for status in [2, 4003, 4004] {
        assert!(matches!(cudnn.api.ok(status, "it"), Err(DeviceError::OutOfMemory { .. })), "{status}");
    }
    assert_eq!(cudnn.api.ok(0, "it"), Ok(()));
}

#[test]
fn without_the_library_there_is_a_reason() {
    match open() {
        Ok((identity, mut found)) => {
            assert!(identity.path.is_some_and(|path| path.is_file()));
            assert_eq!(found.iter().map(|l| l.name().to_owned()).collect::<Vec<_>>(), ["cudnn"]);
            // Without a context there is no handle, and where there is no driver nothing to make one on: an error, and no crash.
            let fields = call("n=1,c=2,h=5,k=3,r=3", 0);
            if let Err(error) = found[0].scratch_bytes(&fields) {
                assert!(!error.to_string().is_empty());
                eprintln!("{} {}: {error}", identity.name, identity.version);
            }
        }
        Err(reason) => assert!(reason.contains(STEM), "{reason}"),
    }
}
