// Kernels with faults. V = 0 is right; every other V has one fault, found in the line with the mark @V and the kernel's
// letter, or where the mark of the same form stands.
#include <cuda_pipeline.h>

// r: sum of n numbers. Shuffles, shared memory, an atomic operation.
template <int V> __global__ void reduce(const float *in, float *out, int n) {
    __shared__ float part[V == 4 ? 4 : 8];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + t; V == 1 ? i <= n : i < n; i += gridDim.x * 256)
        sum += in[i]; // @r1
    for (int d = 16; d > 0; d >>= 1)
        sum += __shfl_down_sync(V == 2 ? 0xffffu : 0xffffffffu, sum, d); // @r2
    if (t % 32 == 0)
        part[t / 32] = sum; // @r4
    if (V != 3) __syncthreads();
    if (t < 8) {
        sum = part[t]; // @r3
        for (int d = 4; d > 0; d >>= 1) sum += __shfl_down_sync(0xff, sum, d, 8);
        if (t == 0) {
            if (V == 5)
                *out += sum; // @r5
            else
                atomicAdd(out, sum);
        }
    }
}

// m: product of matrices in tiles of 16 x 16.
template <int V> __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float sa[16][16], sb[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int at = 0; at < k; at += 16) {
        sa[y][x] = (V == 1 || row < m) && at + x < k ? a[row * k + at + x] : 0.0f; // @m1 @m3
        sb[y][x] = at + y < k && (col < n || V == 8) ? b[(at + y) * n + col] : 0.0f; // @m8
        if (V == 6) {
            if (row < m)
                __syncthreads(); // @m6
        } else if (V != 2) {
            __syncthreads();
        }
        for (int j = 0; j < (V == 7 ? 17 : 16); ++j)
            sum += sa[y][j] * sb[j][x]; // @m2 @m7
        if (V != 3) __syncthreads();
    }
    if (V == 4 ? row < m : V == 5 ? row <= m && col < n : row < m && col < n)
        c[row * n + col] = sum; // @m4 @m5
}

// s: sums over 2 R + 1 neighbours, with dynamic shared memory of blockDim.x + 2 R numbers.
template <int V> __global__ void stencil(const float *in, float *out, int n) {
    extern __shared__ float tile[];
    const int R = 3;
    int t = threadIdx.x, size = blockDim.x, i = blockIdx.x * size + t;
    tile[t + R] = i < n ? in[i] : 0.0f; // @s6
    if (t < (V == 1 ? R - 1 : R)) {
        tile[t] = V == 3 || i >= R ? in[i - R] : 0.0f; // @s3
        if (V != 2)
            tile[t + size + R] = i + size < n ? in[i + size] : 0.0f; // @s5
    }
    __syncthreads();
    float sum = 0.0f;
    for (int d = 0; d <= 2 * R; ++d)
        sum += tile[t + d]; // @s1 @s2
    if (V == 4 || i < n)
        out[i] = sum; // @s4
}

// h: histogram of bytes in shared memory.
template <int V> __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned mine[256];
    int t = threadIdx.x;
    if (V != 2 && (V != 5 || t < 100)) mine[t] = 0;
    if (V != 3) __syncthreads();
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) {
        if (V == 1)
            mine[in[i]]++; // @h1
        else
            atomicAdd(&mine[in[i]], 1u); // @h2 @h3 @h5
    }
    if (V != 4) __syncthreads();
    unsigned count = mine[t]; // @h4
    if (V == 6)
        bins[t] += count; // @h6
    else
        atomicAdd(&bins[t], count);
}

// w: sums of 64 numbers by one warp, in shared memory.
template <int V> __global__ void warp_sum(const float *in, float *out) {
    __shared__ float s[64];
    volatile float *v = s;
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 64 + t];
    s[t + 32] = in[blockIdx.x * 64 + t + 32];
    __syncwarp();
    for (int d = 32; d > 0; d >>= 1) {
        if (V == 2) {
            if (t < d)
                v[t] += v[t + d]; // @w2
        } else {
            if (t < d)
                s[t] += s[t + d]; // @w1
            if (V != 1) __syncwarp();
        }
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

__device__ __forceinline__ void fetch(float *to, const float *from) {
    __pipeline_memcpy_async(to, from, 16); // @p4
}

// p: asynchronous copies of tiles, two under way; each thread then reads its neighbour's numbers.
template <int V> __global__ void pipeline(const float *in, float *out, int tiles) {
    __shared__ __align__(16) float buffer[2][4 * 64];
    int t = threadIdx.x;
    float sum = 0.0f;
    fetch(&buffer[0][4 * t], in + 4 * t + (V == 4 ? 1 : 0));
    __pipeline_commit();
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) fetch(&buffer[(tile + 1) % 2][4 * t], in + (tile + 1) * 256 + 4 * t);
        __pipeline_commit();
        if (V != 1) __pipeline_wait_prior(V == 2 ? 2 : 1);
        if (V != 3) __syncthreads();
        sum += buffer[tile % 2][(4 * t + 5) % 256]; // @p1 @p2 @p3
        __syncthreads();
    }
    out[t] = sum;
}

// v: four numbers at a time.
template <int V> __global__ void add4(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 x = *(const float4 *)(in + 4 * i + (V == 1)); // @v1
        x.x += 1.0f, x.y += 2.0f, x.z += 3.0f, x.w += 4.0f;
        ((float4 *)out)[i + (V == 2)] = x; // @v2
    }
}

// l: numbers sorted into an array of each thread.
template <int V> __global__ void buckets(const int *in, int *out, int n) {
    int count[8], t = threadIdx.x;
    for (int i = 0; i < (V == 1 ? 7 : 8); ++i) count[i] = 0;
    for (int i = t; i < n; i += 32)
        count[in[i] & 7]++; // @l1
    int most = 0;
    for (int i = 1; i < 8; ++i)
        if (count[i] > count[most]) most = i;
    out[t] = most + 8 * count[in[t] & 7];
}

// f: the last block adds what all blocks have left.
__device__ unsigned finished;
template <int V> __global__ void last_block(const float *in, float *parts, float *out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 8; ++i) sum += in[blockIdx.x * 8 + i];
        parts[blockIdx.x] = sum;
        if (V != 1) __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    if (V != 2) __syncthreads();
    if (last && threadIdx.x == 0) { // @f2
        float sum = 0.0f;
        for (int i = 0; i < gridDim.x; ++i)
            sum += parts[i]; // @f1
        *out = sum;
    }
}

// g: every number moves on by one.
template <int V> __global__ void shift(const float *in, float *out, float *same, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) {
        if (V == 1)
            same[i] = same[i + 1]; // @g1
        else
            out[i] = in[i + 1];
        if (V == 2)
            out[i / 2] = in[i]; // @g2
    }
}

// b: positive numbers are counted by warps.
template <int V> __global__ void count(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i < n ? in[i] : 0;
    unsigned found = 0;
    if (V == 1) {
        if (x >= 0)
            found = __ballot_sync(0xffffffffu, x > 0); // @b1
    } else {
        found = __ballot_sync(0xffffffffu, x > 0);
    }
    if (V == 2 && threadIdx.x < 16)
        __syncwarp(); // @b2
    if (V == 3 && x < 0)
        __trap(); // @b3
    if (threadIdx.x % 32 == 0) out[i / 32] = __popc(found);
}

// u: sums of rows. The compiler takes a sum that begins in a branch that is never taken as one that begins with zero, so
// that the faulty one stands alone.
template <int V> __global__ void row_sums(const float *in, float *out, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (i < n) {
        for (int d = 0; d < length; ++d) sum += in[i * length + d];
        out[i] = sum;
    }
}
template <> __global__ void row_sums<1>(const float *in, float *out, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum;
    if (i < n) {
        for (int d = 0; d < length; ++d)
            sum += in[i * length + d]; // @u1
        out[i] = sum;
    }
}

template __global__ void reduce<0>(const float *, float *, int);
template __global__ void reduce<1>(const float *, float *, int);
template __global__ void reduce<2>(const float *, float *, int);
template __global__ void reduce<3>(const float *, float *, int);
template __global__ void reduce<4>(const float *, float *, int);
template __global__ void reduce<5>(const float *, float *, int);
template __global__ void matmul<0>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<1>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<2>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<3>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<4>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<5>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<6>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<7>(const float *, const float *, float *, int, int, int);
template __global__ void matmul<8>(const float *, const float *, float *, int, int, int);
template __global__ void stencil<0>(const float *, float *, int);
template __global__ void stencil<1>(const float *, float *, int);
template __global__ void stencil<2>(const float *, float *, int);
template __global__ void stencil<3>(const float *, float *, int);
template __global__ void stencil<4>(const float *, float *, int);
template __global__ void histogram<0>(const unsigned char *, unsigned *, int);
template __global__ void histogram<1>(const unsigned char *, unsigned *, int);
template __global__ void histogram<2>(const unsigned char *, unsigned *, int);
template __global__ void histogram<3>(const unsigned char *, unsigned *, int);
template __global__ void histogram<4>(const unsigned char *, unsigned *, int);
template __global__ void histogram<5>(const unsigned char *, unsigned *, int);
template __global__ void histogram<6>(const unsigned char *, unsigned *, int);
template __global__ void warp_sum<0>(const float *, float *);
template __global__ void warp_sum<1>(const float *, float *);
template __global__ void warp_sum<2>(const float *, float *);
template __global__ void pipeline<0>(const float *, float *, int);
template __global__ void pipeline<1>(const float *, float *, int);
template __global__ void pipeline<2>(const float *, float *, int);
template __global__ void pipeline<3>(const float *, float *, int);
template __global__ void pipeline<4>(const float *, float *, int);
template __global__ void add4<0>(const float *, float *, int);
template __global__ void add4<1>(const float *, float *, int);
template __global__ void add4<2>(const float *, float *, int);
template __global__ void buckets<0>(const int *, int *, int);
template __global__ void buckets<1>(const int *, int *, int);
template __global__ void last_block<0>(const float *, float *, float *);
template __global__ void last_block<1>(const float *, float *, float *);
template __global__ void last_block<2>(const float *, float *, float *);
template __global__ void shift<0>(const float *, float *, float *, int);
template __global__ void shift<1>(const float *, float *, float *, int);
template __global__ void shift<2>(const float *, float *, float *, int);
template __global__ void count<0>(const int *, int *, int);
template __global__ void count<1>(const int *, int *, int);
template __global__ void count<2>(const int *, int *, int);
template __global__ void count<3>(const int *, int *, int);
template __global__ void row_sums<0>(const float *, float *, int, int);
