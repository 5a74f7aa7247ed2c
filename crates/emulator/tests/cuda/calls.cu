// Functions that the compiler must not inline: by value, by pointer, with a structure, one calling another.
struct Pair {
    float low, high;
};

__device__ __noinline__ float square_plus(float x, int n) {
    if (n % 3 == 0) return x * x;
    return x * x + n;
}

__device__ __noinline__ Pair minmax(const float* x, int n) {
    Pair p = {x[0], x[0]};
    for (int i = 1; i < n; ++i) {
        p.low = fminf(p.low, x[i]);
        p.high = fmaxf(p.high, x[i]);
    }
    return p;
}

__device__ __noinline__ float spread(Pair p, float scale) { return square_plus(p.high - p.low, 1) * scale; }

__device__ __noinline__ void swap_if(float* a, float* b) {
    if (*a > *b) {
        float t = *a;
        *a = *b;
        *b = t;
    }
}

extern "C" __global__ void calls(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = square_plus(x[i], i), b = x[n - 1 - i];
    swap_if(&a, &b);
    float s = 0;
    if (i % 2) s = spread(minmax(x, i + 1), 0.5f);
    out[3 * i] = a;
    out[3 * i + 1] = b;
    out[3 * i + 2] = s;
}
