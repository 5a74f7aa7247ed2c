#!/usr/bin/env python3
"""Compiles every .cu file here to PTX with NVRTC, those in `lines` with the lines of the source.

    pip install --no-deps --target DIR nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79
    python3 compile.py DIR [--arch compute_80]
"""

import argparse
import ctypes
import pathlib

here = pathlib.Path(__file__).parent


def check(nvrtc, code, what):
    if code:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise SystemExit(f"{what}: {nvrtc.nvrtcGetErrorString(code).decode()}")


def compile_one(nvrtc, source, options):
    program = ctypes.c_void_p()
    text = source.read_bytes()
    check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None), "create")
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if log.value.strip():
        print(log.value.decode())
    check(nvrtc, code, source.name)
    check(nvrtc, nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "size")
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc, nvrtc.nvrtcGetPTX(program, ptx), "text")
    return ptx.value.decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path, help="where the two packages were installed")
    parser.add_argument("--arch", default="compute_80")
    args = parser.parse_args()
    packages = args.folder / "nvidia"
    nvrtc = ctypes.CDLL(str(packages / "cuda_nvrtc/lib/libnvrtc.so.12"))
    options = [f"--gpu-architecture={args.arch}", f"--include-path={packages / 'cuda_runtime/include'}"]
    for source in sorted(here.glob("*.cu")):
        ptx = compile_one(nvrtc, source, options)
        source.with_suffix(".ptx").write_text(ptx)
        print(source.stem, len(ptx.splitlines()), "lines")
    for source in sorted((here / "lines").glob("*.cu")):
        ptx = compile_one(nvrtc, source, [*options, "-lineinfo"])
        # The compiler names files in full: where they lie on this machine is nobody's business.
        for folder in (str(args.folder.resolve()), str(args.folder), str(pathlib.Path.cwd()) + "/"):
            ptx = ptx.replace(folder, "")
        source.with_suffix(".ptx").write_text(ptx)
        print(source.stem, len(ptx.splitlines()), "lines")
    # Functions as a debugger wants them: nothing is inlined.
    ptx = compile_one(nvrtc, here / "calls.cu", [*options, "-G"])
    (here / "calls_debug.ptx").write_text(ptx)


if __name__ == "__main__":
    main()
