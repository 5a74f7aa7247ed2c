//! Tile registers (AMX): whether the processor has them, and the system lets this process use them.

use std::sync::OnceLock;

/// Whether code for tiles of bfloat16 and of 8-bit integers runs here. The first call asks the system for the registers, which a process
/// has not unless it asks.
pub(crate) fn has_tiles() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        return super::vec_max() == 64 && is_there() && is_permitted();
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        return false;
    })
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn is_there() -> bool {
    let features = raw_cpuid::CpuId::new().get_extended_feature_info();
    features.is_some_and(|f| f.has_amx_tile() && f.has_amx_bf16() && f.has_amx_int8())
}

/// Asks for the state of tile registers to be kept for all threads of this process.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn is_permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XTILEDATA: u64 = 18;
    let answer: i64;
    // SAFETY: a system call that reads and writes no memory of this process; it changes what the kernel saves at switches, and nothing
    // where it knows the request not. The instruction itself clobbers the two registers.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => answer,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer == 0
}
