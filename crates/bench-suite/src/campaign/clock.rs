//! Brings a GPU to its clock, and measures that clock: `%clock64` over `%globaltimer` while all multiprocessors compute.

use super::Campaign;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tilewright_core::buffer::{BufferSpec, Role};
use tilewright_core::data::Data;
use tilewright_core::device::{Device, DeviceKind};
use tilewright_core::dtype::DType;
use tilewright_core::program::{Arg, Code, DeviceError, Launch, Program};

/// How long is looked at the clock when a stage ends.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// The longest launch: a device must be found to hang long after it.
const LONGEST: Duration = Duration::from_millis(50);

/// Blocks for each multiprocessor, and their threads.
const BLOCKS_PER_SM: u32 = 8;
const THREADS: u32 = 256;

/// Fused multiply-adds of a thread between two looks at the timer, in chains that do not wait for each other.
const FMAS: usize = 64;
const CHAINS: usize = 4;

/// Computes on all multiprocessors for at least this long, in launches of at most [`LONGEST`]; the clock in MHz at the end of it. None
/// where the device is no GPU, where the time is zero, or where the kernel fails, which other kernels will tell.
pub(super) fn warmed(campaign: &Campaign<'_>, time: Duration) -> Option<f64> {
    let mut device = campaign.device();
    if device.spec().kind != DeviceKind::Cuda || time.is_zero() {
        return None;
    }
    let began = Instant::now();
    let mut clock = None;
    while clock.is_none() || began.elapsed() < time {
        let left = time.saturating_sub(began.elapsed());
        match look(&mut **device, left.clamp(Duration::from_micros(100), LONGEST)) {
            Ok(mhz) => clock = Some(mhz),
            Err(error) => {
                tracing::warn!(%error, "the clock was not measured");
                return None;
            }
        }
    }
    clock.filter(|mhz| mhz.is_finite())
}

/// The clock in MHz over this time.
fn look(device: &mut dyn Device, time: Duration) -> Result<f64, DeviceError> {
    let multiprocessors = device.spec().fact("multiprocessors").and_then(|m| u32::try_from(m).ok()).unwrap_or(1);
    let specs = vec![BufferSpec { name: "out", dtype: DType::F64, len: 3, role: Role::Out }];
    device.upload(&Data::Noise { specs, scalars: Vec::new(), seed: 0 })?;
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let code = Code::Ptx { text: text(), entry: "tilewright_clock".into() };
    let grid = [multiprocessors.saturating_mul(BLOCKS_PER_SM), 1, 1];
    let launch = Launch::new(code, grid, [THREADS, 1, 1], vec![Arg::Buffer(0, 0), Arg::U64(ns)]);
    device.run(&Program::launch(launch))?;
    let found = device.read()?;
    let [cycles, ns, _] = found[0].as_slice::<f64>() else {
        return Err(DeviceError::Run("three numbers were expected".into()));
    };
    Ok(cycles / ns * 1e3)
}

/// The kernel. Where the timer stands still, the number of looks ends it, within a second.
fn text() -> String {
    let mut fmas = String::new();
    for i in 0..FMAS {
        let chain = i % CHAINS;
        let _ = writeln!(fmas, "    fma.rn.f32 %f{chain}, %f{chain}, %f8, %f9;");
    }
    format!(
        ".version 6.0
.target sm_50
.address_size 64
.visible .entry tilewright_clock(.param .u64 out, .param .u64 ns)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .f32 %f<10>;
    .reg .f64 %fd<3>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [ns];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, 0;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    cvt.rn.f32.u32 %f0, %r2;
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f40000000;
    mov.f32 %f3, 0f40400000;
    mov.f32 %f8, 0f3F7FFFEF;
    mov.f32 %f9, 0f358637BD;
    mov.u64 %rd3, %globaltimer;
    mov.u64 %rd4, %clock64;
again:
{fmas}    mov.u64 %rd5, %clock64;
    mov.u64 %rd6, %globaltimer;
    sub.u64 %rd7, %rd6, %rd3;
    add.u32 %r1, %r1, 1;
    setp.lt.u64 %p1, %rd7, %rd2;
    setp.lt.and.u32 %p2, %r1, 1048576, %p1;
    @%p2 bra again;
    or.b32 %r2, %r2, %r3;
    setp.ne.u32 %p3, %r2, 0;
    @%p3 bra done;
    sub.u64 %rd8, %rd5, %rd4;
    cvt.rn.f64.u64 %fd1, %rd8;
    st.global.f64 [%rd1], %fd1;
    cvt.rn.f64.u64 %fd2, %rd7;
    st.global.f64 [%rd1+8], %fd2;
    add.f32 %f0, %f0, %f1;
    add.f32 %f2, %f2, %f3;
    add.f32 %f0, %f0, %f2;
    cvt.f64.f32 %fd1, %f0;
    st.global.f64 [%rd1+16], %fd1;
done:
    ret;
}}
"
    )
}
