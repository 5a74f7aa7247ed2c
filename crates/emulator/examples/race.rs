//! A reduction in shared memory, as it should be and without a barrier.
//!
//! ```text
//! cargo run --release -p tilewright-emulator --example race
//! ```

use tilewright_emulator::{Argument, Launch, Memory, Module};

const SUM: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<5>; .reg .f32 %f<4>;
  .shared .align 4 .b8 part[1024];
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3;
  shl.b32 %r2, %r1, 2; mov.u32 %r3, part; add.u32 %r3, %r3, %r2;
  ld.global.f32 %f1, [%rd4];
  st.shared.f32 [%r3], %f1;
  mov.u32 %r4, 128;
LOOP:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r4;
  @%p1 bra SKIP;
  shl.b32 %r5, %r4, 2; add.u32 %r5, %r3, %r5;
  ld.shared.f32 %f2, [%r5];
  add.f32 %f1, %f1, %f2;
  st.shared.f32 [%r3], %f1;
SKIP:
  shr.u32 %r4, %r4, 1;
  setp.ne.u32 %p2, %r4, 0;
  @%p2 bra LOOP;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 st.global.f32 [%rd2], %f1;
  ret;
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (what, text) in [("with its barrier", SUM.to_owned()), ("without", SUM.replace("bar.sync 0;", ""))] {
        let module = Module::parse(&text)?;
        let mut memory = Memory::new();
        let ones: Vec<u8> = [1f32; 256].iter().flat_map(|x| x.to_le_bytes()).collect();
        let input = memory.add("in", &ones)?;
        let output = memory.add_unwritten("out", 4)?;
        let args = [Argument::buffer(input), Argument::buffer(output)];
        let report = module.launch(&Launch::new("sum", [1, 1, 1], [256, 1, 1], &args), &mut memory)?;
        let bytes = memory.read(output);
        let sum = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        println!("{what}: the sum is {sum}, {} findings", report.findings.len());
        for finding in &report.findings {
            println!("  {finding}");
        }
        for (class, tally) in report.counts.by_class() {
            println!(
                "  {class}: {} warps, {} threads, {} predicated off",
                tally.issued, tally.threads, tally.predicated_off
            );
        }
    }
    Ok(())
}
