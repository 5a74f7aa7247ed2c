//! What the driver's errors mean for the caller.

use cudarc::driver::sys::CUresult as Code;
use tilewright_core::program::DeviceError;

/// What the driver was asked for when it failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// To find devices.
    Open,
    /// To load code.
    Load,
    /// For so many bytes.
    Memory(u64),
    /// To put work on the stream.
    Launch,
    /// Anything else; it also reports what earlier work did.
    Run,
}

/// The error of a device.
pub(super) fn of(error: cudarc::driver::DriverError, asked: Asked, device: &str) -> DeviceError {
    let name = match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => format!("{:?}", error.0),
    };
    let text = match error.error_string() {
        Ok(text) => format!("{name}: {}", text.to_string_lossy()),
        Err(_) => name,
    };
    meaning(error.0, &text, asked, device)
}

/// [`of`] without asking the driver for its words.
fn meaning(code: Code, text: &str, asked: Asked, device: &str) -> DeviceError {
    let device = device.to_owned();
    match code {
        Code::CUDA_ERROR_OUT_OF_MEMORY => {
            let need = if let Asked::Memory(bytes) = asked { bytes } else { 0 };
            DeviceError::OutOfMemory { need, have: None }
        }
        Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            DeviceError::OldDriver { device, needs: "one that knows this code".into(), has: text.to_owned() }
        }
        Code::CUDA_ERROR_NOT_SUPPORTED => DeviceError::Unsupported { device, feature: text.to_owned() },
        Code::CUDA_ERROR_LAUNCH_TIMEOUT => DeviceError::Hang { after_ms: 0 },
        Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_MISALIGNED_ADDRESS
        | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_ASSERT => DeviceError::Fault(text.to_owned()),
        _ => match asked {
            Asked::Open => DeviceError::Missing { device, why: text.to_owned() },
            Asked::Load => DeviceError::Load(text.to_owned()),
            // Too many threads, registers or bytes of shared memory for this kernel on this device.
            Asked::Launch
                if code == Code::CUDA_ERROR_INVALID_VALUE
                    || code == Code::CUDA_ERROR_INVALID_CLUSTER_SIZE
                    || code == Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES =>
            {
                DeviceError::Argument { name: "launch".into(), message: text.to_owned() }
            }
            Asked::Memory(_) | Asked::Launch | Asked::Run => DeviceError::Run(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind() {
        let of = |code, asked| meaning(code, "text", asked, "cuda:0");
        assert!(
            matches!(of(Code::CUDA_ERROR_NO_DEVICE, Asked::Open), DeviceError::Missing { device, .. } if device == "cuda:0")
        );
        let memory = of(Code::CUDA_ERROR_OUT_OF_MEMORY, Asked::Memory(7));
        assert_eq!(memory, DeviceError::OutOfMemory { need: 7, have: None });
        assert!(matches!(of(Code::CUDA_ERROR_ILLEGAL_ADDRESS, Asked::Run), DeviceError::Fault(_)));
        // A fault of an earlier kernel shows wherever the driver is asked next.
        assert!(matches!(of(Code::CUDA_ERROR_LAUNCH_FAILED, Asked::Memory(7)), DeviceError::Fault(_)));
        assert!(matches!(of(Code::CUDA_ERROR_INVALID_PTX, Asked::Load), DeviceError::Load(_)));
        assert!(matches!(of(Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, Asked::Load), DeviceError::OldDriver { .. }));
        assert!(matches!(of(Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, Asked::Launch), DeviceError::Argument { .. }));
        assert!(matches!(of(Code::CUDA_ERROR_INVALID_VALUE, Asked::Run), DeviceError::Run(_)));
        assert!(matches!(of(Code::CUDA_ERROR_ECC_UNCORRECTABLE, Asked::Run), DeviceError::Run(_)));
    }
}
