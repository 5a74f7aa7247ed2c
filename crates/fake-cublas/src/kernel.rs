//! The kernel that computes a product: one thread for each element of C, whose sum is of one chain of multiply-adds.

use crate::numbers::{Data, Numbers, Sum};

/// Columns that a grid has in its second dimension.
pub(crate) const COLUMNS: u32 = 65_535;

/// The entry of [`kernel`].
pub(crate) const ENTRY: &str = "fake_gemm";

/// What a number is, in PTX.
struct Words {
    numbers: Numbers,
    /// The type of sums.
    ty: &'static str,
    zero: &'static str,
    /// `a * b + c`, and `a * b`.
    fma: &'static str,
    mul: &'static str,
}

impl Words {
    fn new(numbers: Numbers) -> Self {
        let (ty, zero, fma, mul) = match numbers.sum {
            Sum::F32 => ("f32", "0f00000000", "fma.rn.f32", "mul.rn.f32"),
            Sum::F64 => ("f64", "0d0000000000000000", "fma.rn.f64", "mul.rn.f64"),
            Sum::S32 => ("s32", "0", "mad.lo.s32", "mul.lo.s32"),
        };
        Self { numbers, ty, zero, fma, mul }
    }

    /// Loads an element of a matrix into the registers of this name, as sums have it.
    fn load(&self, of: Data, to: &str, from: &str) -> String {
        let ty = self.ty;
        match of {
            Data::F16 => format!("ld.global.b16 %h1, [{from}]; cvt.f32.f16 %{to}0, %h1;"),
            Data::Bf16 => format!(
                "mov.b16 %h0, 0; ld.global.b16 %h1, [{from}]; mov.b32 %r12, {{%h0, %h1}}; mov.b32 %{to}0, %r12;"
            ),
            Data::I8 => format!("ld.global.s8 %{to}0, [{from}];"),
            Data::F32 | Data::F64 | Data::I32 => format!("ld.global.{ty} %{to}0, [{from}];"),
            Data::C32 | Data::C64 => {
                format!("ld.global.{ty} %{to}0, [{from}]; ld.global.{ty} %{to}1, [{from}+{}];", of.bytes() / 2)
            }
        }
    }

    /// An operand as it is multiplied.
    fn operand(&self, to: &str, from: &str, conjugated: bool) -> String {
        let mut text = self.load(self.numbers.operand, to, from);
        let parts = if self.numbers.operand.is_complex() { 2 } else { 1 };
        if self.numbers.rounds {
            for part in 0..parts {
                text += &format!(
                    " mov.b32 %r12, %{to}{part}; add.u32 %r12, %r12, 0x1000; and.b32 %r12, %r12, 0xffffe000; \
                     mov.b32 %{to}{part}, %r12;"
                );
            }
        }
        if conjugated {
            text += &format!(" neg.{} %{to}1, %{to}1;", self.ty);
        }
        text
    }

    /// Adds a product to the sum.
    fn multiply_add(&self) -> String {
        let (fma, ty) = (self.fma, self.ty);
        if !self.numbers.operand.is_complex() {
            return format!("{fma} %s0, %a0, %b0, %s0;");
        }
        format!(
            "{fma} %s0, %a0, %b0, %s0; {fma} %s1, %a0, %b1, %s1; {fma} %s1, %a1, %b0, %s1; \
             neg.{ty} %a1, %a1; {fma} %s0, %a1, %b1, %s0;"
        )
    }

    /// Each component of a result by itself: scalars are real.
    fn each(&self, one: impl Fn(usize) -> String) -> String {
        (0..if self.numbers.operand.is_complex() { 2 } else { 1 }).map(one).collect()
    }

    fn store(&self) -> String {
        let (ty, half) = (self.ty, self.numbers.output.bytes() / 2);
        match self.numbers.output {
            Data::F16 => "cvt.rn.f16.f32 %h1, %s0; st.global.b16 [%rd5], %h1;".to_owned(),
            Data::Bf16 => "cvt.rn.bf16.f32 %h1, %s0; st.global.b16 [%rd5], %h1;".to_owned(),
            Data::C32 | Data::C64 => format!("st.global.{ty} [%rd5], %s0; st.global.{ty} [%rd5+{half}], %s1;"),
            _ => format!("st.global.{ty} [%rd5], %s0;"),
        }
    }
}

/// The kernel of such numbers, of which A and B may be conjugated.
pub(crate) fn kernel(numbers: Numbers, conjugated: [bool; 2]) -> String {
    let words = Words::new(numbers);
    let (ty, zero) = (words.ty, words.zero);
    let (bytes, result) = (numbers.operand.bytes(), numbers.output.bytes());
    let head = if numbers.output == Data::Bf16 { ".version 7.0\n.target sm_80" } else { ".version 6.0\n.target sm_50" };
    let clear = words.each(|part| format!("mov.{ty} %s{part}, {zero}; "));
    let scale = words.each(|part| format!("{} %s{part}, %s{part}, %x1; ", words.mul));
    let add = words.each(|part| format!("{} %s{part}, %c{part}, %x2, %s{part}; ", words.fma));
    let (a, b) = (words.operand("a", "%rd3", conjugated[0]), words.operand("b", "%rd4", conjugated[1]));
    let (old, sum, store) = (words.load(numbers.output, "c", "%rd5"), words.multiply_add(), words.store());
    format!(
        "{head}
.address_size 64
.visible .entry {ENTRY}(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 m, .param .u32 n, .param .u32 k,
    .param .u64 ar, .param .u64 ac, .param .u64 br, .param .u64 bc, .param .u64 ldc, .param .{ty} alpha, .param .{ty} beta)
{{
    .reg .pred %p<3>; .reg .b16 %h<2>; .reg .b32 %r<13>; .reg .b64 %rd<16>;
    .reg .{ty} %x<3>, %a<2>, %b<2>, %c<2>, %s<2>;
    ld.param.u32 %r1, [m]; ld.param.u32 %r2, [n]; ld.param.u32 %r3, [k];
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;
    mad.lo.u32 %r7, %r4, %r5, %r6;
    mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
    mad.lo.u32 %r10, %r9, {COLUMNS}, %r8;
    setp.ge.u32 %p1, %r7, %r1; @%p1 bra done;
    setp.ge.u32 %p1, %r10, %r2; @%p1 bra done;
    cvt.u64.u32 %rd1, %r7; cvt.u64.u32 %rd2, %r10;
    ld.param.u64 %rd3, [a]; cvta.to.global.u64 %rd3, %rd3;
    ld.param.u64 %rd4, [b]; cvta.to.global.u64 %rd4, %rd4;
    ld.param.u64 %rd5, [c]; cvta.to.global.u64 %rd5, %rd5;
    ld.param.u64 %rd6, [ar]; ld.param.u64 %rd7, [ac]; ld.param.u64 %rd8, [br]; ld.param.u64 %rd9, [bc];
    ld.param.u64 %rd10, [ldc];
    mul.lo.u64 %rd6, %rd6, {bytes}; mul.lo.u64 %rd7, %rd7, {bytes};
    mul.lo.u64 %rd8, %rd8, {bytes}; mul.lo.u64 %rd9, %rd9, {bytes};
    mul.lo.u64 %rd11, %rd1, %rd6; add.u64 %rd3, %rd3, %rd11;
    mul.lo.u64 %rd11, %rd2, %rd9; add.u64 %rd4, %rd4, %rd11;
    mul.lo.u64 %rd11, %rd2, %rd10; add.u64 %rd11, %rd11, %rd1; mul.lo.u64 %rd11, %rd11, {result};
    add.u64 %rd5, %rd5, %rd11;
    ld.param.{ty} %x1, [alpha]; ld.param.{ty} %x2, [beta];
    {clear}
    setp.eq.{ty} %p2, %x1, {zero}; @%p2 bra summed;
    mov.u32 %r11, 0;
next:
    setp.ge.u32 %p1, %r11, %r3; @%p1 bra summed;
    {a}
    {b}
    {sum}
    add.u64 %rd3, %rd3, %rd7; add.u64 %rd4, %rd4, %rd8; add.u32 %r11, %r11, 1;
    bra next;
summed:
    {scale}
    setp.eq.{ty} %p2, %x2, {zero}; @%p2 bra write;
    {old}
    {add}
write:
    {store}
done:
    ret;
}}
"
    )
}
