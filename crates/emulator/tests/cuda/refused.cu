// What the emulator refuses: printing, recursion, calls through pointers, the heap.
extern "C" __device__ int printf(const char*, ...);
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, unsigned long);
#define check(e) ((e) ? (void)0 : __assertfail(#e, "refused.cu", __LINE__, __func__, 1))

extern "C" __global__ void prints(int* x) { printf("%d\n", x[0]); }

extern "C" __global__ void asserts(int* x) {
    check(x[0] > 0);
    x[1] = 1;
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

extern "C" __global__ void recurses(int* x) { x[0] = fib(x[0]); }

__device__ int (*table[2])(int) = {fib, fib};

extern "C" __global__ void jumps(int* x) { x[0] = table[x[1] & 1](x[0]); }

extern "C" __global__ void allocates(int* x) {
    int* p = new int[x[0]];
    p[0] = 1;
    x[1] = p[0];
    delete[] p;
}

__device__ int cells[4] = {1, 2, 3, 4};
__device__ int* second = cells + 1;

extern "C" __global__ void points(int* x) { x[0] = second[threadIdx.x]; }
