//! What rules of products need to know of an input, besides what it says itself.

use tilewright_core::device::DeviceSpec;
use tilewright_core::dtype::DType;
use tilewright_core::space::Symbols;
use tilewright_ops::gemm::GemmInput;

/// The facts of a device and an input by the names that rules use.
pub(crate) fn symbols(device: &DeviceSpec, input: &GemmInput) -> Symbols {
    let mut symbols = input.symbols(device);
    // Where `element` is bytes of an operand.
    // Sums of f16 are such in the main loop alone, where two share a register.
    symbols.set("sum_bytes", input.types.accumulator.size().max(4));
    symbols.set("lanes", if input.types.accumulator == DType::F16 { 2 } else { 1 });
    symbols.set("result_bytes", input.types.output.size());
    symbols.set("complex", input.dtype().is_complex());
    symbols.set("rounds_to_bf16", input.types.output == DType::Bf16);
    epilogue(&mut symbols, input);
    symbols
}

/// What an input does to its sums.
pub(crate) fn epilogue(symbols: &mut Symbols, input: &GemmInput) {
    symbols.set("epilogue", !input.epilogue.is_empty());
}

/// How that follows from the fields.
pub(crate) fn epilogue_derivations() -> [(&'static str, String); 4] {
    ["bias != 'none' or activation != 'none'", "bias != 'none'", "activation != 'none'", "False"]
        .map(|text| ("epilogue", text.to_owned()))
}

/// How these names follow from the fields, in the language of rules. Fields that say what is usual are left out of an input: the
/// first expression counts whose fields are there.
pub(crate) fn derivations() -> Vec<(&'static str, String)> {
    let wide = "16 if dtype == 'c64' else 8 if dtype in ['f64', 'c32'] else";
    let texts = [
        ("sum_bytes", format!("{wide} 4")),
        ("result_bytes", "2 if out in ['f16', 'bf16'] else 4".to_owned()),
        ("result_bytes", format!("{wide} 2 if dtype in ['f16', 'bf16'] else 4")),
        ("lanes", "2 if acc == 'f16' else 1".to_owned()),
        ("lanes", "1".to_owned()),
        ("complex", "dtype in ['c32', 'c64']".to_owned()),
        ("rounds_to_bf16", "out == 'bf16'".to_owned()),
        ("rounds_to_bf16", "dtype == 'bf16'".to_owned()),
    ];
    GemmInput::derivations().into_iter().chain(texts).chain(epilogue_derivations()).collect()
}
