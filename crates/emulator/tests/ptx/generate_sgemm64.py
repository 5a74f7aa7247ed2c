#!/usr/bin/env python3
"""Writes sgemm64.ptx: C[MxN] = alpha A[MxK] B[KxN], row-major, a 64x64 tile by 64 threads, 8x8 results each."""

import sys

T, U = 64, 8  # tile, depth of a step

lines = []
emit = lines.append


def main():
    emit(f"// C[MxN] = alpha * A[MxK] * B[KxN], row-major; tile {T}x{T}, 8x8 threads with 8x8 results each, steps of {U}")
    emit("// written by generate_sgemm64.py")
    emit(".version 6.0\n.target sm_50\n.address_size 64")
    emit(".visible .entry sgemm64(\n  .param .u64 pA, .param .u64 pB, .param .u64 pC,")
    emit("  .param .u32 M, .param .u32 N, .param .u32 K, .param .f32 alpha)\n.maxntid 8,8,1\n{")
    emit("  .reg .pred %p<40>;\n  .reg .b32 %r<80>;\n  .reg .b64 %rd<40>;\n  .reg .f32 %c<64>;\n  .reg .f32 %a<8>;\n  .reg .f32 %b<8>;\n  .reg .f32 %t<16>;\n  .reg .f32 %alpha;")
    emit(f"  .shared .align 16 .b8 smA[{4*U*T}];   // [k][row]\n  .shared .align 16 .b8 smB[{4*U*T}];   // [k][column]")
    emit("  ld.param.u64 %rd1,[pA]; ld.param.u64 %rd2,[pB]; ld.param.u64 %rd3,[pC];")
    emit("  ld.param.u32 %r1,[M]; ld.param.u32 %r2,[N]; ld.param.u32 %r3,[K]; ld.param.f32 %alpha,[alpha];")
    emit("  mov.u32 %r4,%tid.x; mov.u32 %r5,%tid.y; mov.u32 %r6,%ctaid.x; mov.u32 %r7,%ctaid.y;")
    emit("  mad.lo.u32 %r8,%r5,8,%r4;                       // thread 0..63")
    emit("  shl.b32 %r9,%r7,6; shl.b32 %r10,%r6,6;          // first row, first column of the tile")
    for i in range(64):
        emit(f"  mov.f32 %c{i},0f00000000;")
    emit("  add.u32 %r11,%r9,%r8; setp.lt.u32 %p1,%r11,%r1;  // the row of A that this thread loads")
    emit("  add.u32 %r12,%r10,%r8; setp.lt.u32 %p2,%r12,%r2; // the column of B")
    emit("  mov.u32 %r13,smA; mov.u32 %r14,smB; shl.b32 %r15,%r8,2;")
    emit("  add.u32 %r16,%r13,%r15; add.u32 %r17,%r14,%r15;  // where it stores them")
    emit("  shl.b32 %r18,%r5,5; add.u32 %r19,%r13,%r18;      // its 8 rows in smA")
    emit("  shl.b32 %r20,%r4,5; add.u32 %r21,%r14,%r20;      // its 8 columns in smB")
    emit("  mul.wide.u32 %rd4,%r11,%r3; shl.b64 %rd4,%rd4,2; add.u64 %rd4,%rd1,%rd4;")
    emit("  mul.wide.u32 %rd5,%r12,4; add.u64 %rd5,%rd2,%rd5; mul.wide.u32 %rd6,%r2,4;")
    emit("  mov.u32 %r22,0; setp.ge.u32 %p3,%r22,%r3; @%p3 bra STORE;\nLOOP:")
    for k in range(U):
        emit(f"  add.u32 %r23,%r22,{k}; setp.lt.and.u32 %p4,%r23,%r3,%p1; setp.lt.and.u32 %p5,%r23,%r3,%p2;")
        emit(f"  mov.f32 %t{2*(k%8)},0f00000000; @%p4 ld.global.f32 %t{2*(k%8)},[%rd4+{4*k}];")
        emit(f"  mov.f32 %t{2*(k%8)+1},0f00000000; @%p5 ld.global.f32 %t{2*(k%8)+1},[%rd5];")
        emit(f"  st.shared.f32 [%r16+{4*T*k}],%t{2*(k%8)}; st.shared.f32 [%r17+{4*T*k}],%t{2*(k%8)+1};")
        emit("  add.u64 %rd5,%rd5,%rd6;")
    emit("  bar.sync 0;")
    for k in range(U):
        for h in range(2):
            r = ",".join(f"%a{4*h+i}" for i in range(4))
            emit(f"  ld.shared.v4.f32 {{{r}}},[%r19+{4*T*k+16*h}];")
            r = ",".join(f"%b{4*h+i}" for i in range(4))
            emit(f"  ld.shared.v4.f32 {{{r}}},[%r21+{4*T*k+16*h}];")
        for i in range(8):
            for j in range(8):
                emit(f"  fma.rn.f32 %c{8*i+j},%a{i},%b{j},%c{8*i+j};")
    emit("  bar.sync 0;")
    emit(f"  add.u64 %rd4,%rd4,{4*U}; add.u32 %r22,%r22,{U};")
    emit("  setp.lt.u32 %p6,%r22,%r3; @%p6 bra LOOP;\nSTORE:")
    emit("  shl.b32 %r30,%r5,3; add.u32 %r30,%r30,%r9; shl.b32 %r31,%r4,3; add.u32 %r31,%r31,%r10;")
    for j in range(8):
        emit(f"  add.u32 %r32,%r31,{j}; setp.lt.u32 %p{10+j},%r32,%r2;")
    emit("  mul.wide.u32 %rd10,%r31,4;")
    for i in range(8):
        emit(f"  add.u32 %r33,%r30,{i}; setp.lt.u32 %p7,%r33,%r1;")
        emit("  mul.wide.u32 %rd11,%r33,%r2; shl.b64 %rd11,%rd11,2; add.u64 %rd11,%rd11,%rd3; add.u64 %rd11,%rd11,%rd10;")
        for j in range(8):
            emit(f"  and.pred %p8,%p7,%p{10+j}; mul.f32 %t0,%c{8*i+j},%alpha; @%p8 st.global.f32 [%rd11+{4*j}],%t0;")
    emit("  ret;\n}")
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
