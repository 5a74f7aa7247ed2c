//! A kernel that does nothing for a given time, so that what is timed behind it is all on the stream before the first of it begins:
//! otherwise the host's putting it there would be timed with it.

use super::driver::{Driver, Module};
use super::function::{Function, Params, Shape};
use std::sync::Arc;
use std::time::Duration;
use tilewright_core::program::{Code, DeviceError, Launch};

/// How long the kernel spins at first. Two launches and two events are put on the stream in about 10 us.
pub(super) const FIRST: Duration = Duration::from_micros(30);

/// The longest: whatever takes longer to put on the stream takes long enough not to mind.
pub(super) const LONGEST: Duration = Duration::from_micros(200);

const ENTRY: &str = "tilewright_spin";

/// One thread that looks at the device's timer. Where that stands still, the number of looks ends it, after some 20 ms.
pub(super) const TEXT: &str = "\
.version 6.0
.target sm_50
.address_size 64
.visible .entry tilewright_spin(.param .u64 ns)
{
    .reg .pred %p<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [ns];
    mov.u32 %r1, 0;
    mov.u64 %rd2, %globaltimer;
again:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd4, %rd3, %rd2;
    add.u32 %r1, %r1, 1;
    setp.lt.u64 %p1, %rd4, %rd1;
    setp.lt.and.u32 %p2, %r1, 1048576, %p1;
    @%p2 bra again;
    ret;
}
";

/// The kernel, loaded.
pub(super) struct Spin {
    function: Function,
    shape: Shape,
}

impl Spin {
    /// Loads the kernel from its machine code.
    pub(super) fn load(driver: &Arc<Driver>, image: &[u8]) -> Result<Self, DeviceError> {
        let code = Code::Ptx { text: TEXT.into(), entry: ENTRY.into() };
        let launch = Launch::new(code, [1; 3], [1; 3], Vec::new());
        let function = Arc::new(Module::load(driver, image)?).function(ENTRY, &launch)?;
        Ok(Self { function, shape: Shape::of(&launch) })
    }

    /// Puts it on the stream.
    pub(super) fn launch(&self, time: Duration) -> Result<(), DeviceError> {
        let mut params = Params::default();
        params.push(&u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
        self.function.launch(&self.shape, &params)
    }
}

/// How long to spin where putting the last work on the stream took the host so long.
pub(super) fn suited(before: Duration, host: Duration) -> Duration {
    before.max(host.saturating_mul(3) / 2).clamp(FIRST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_spins_for_longer_than_the_host_needs() {
        let us = Duration::from_micros;
        assert_eq!(suited(FIRST, us(12)), FIRST);
        assert_eq!(suited(FIRST, us(40)), us(60));
        // It does not shrink within a measurement, and does not grow beyond reason.
        assert_eq!(suited(us(60), us(12)), us(60));
        assert_eq!(suited(us(60), Duration::from_secs(1)), LONGEST);
    }
}
