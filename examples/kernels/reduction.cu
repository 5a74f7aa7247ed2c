// The sum of n numbers. Blocks take turns at the array, and each makes one sum of what it read. Either these sums are added by atomic
// operations to a number that a first launch made zero, or a second launch of one block adds them.
//
// Macros: block_size_x (threads of a block), blocks (blocks that read), vector (numbers of a load), unroll (loads of a thread that do not
// wait for each other), combine (how the threads of a block add: tree, warp_tree, shuffle or shared_atomic), use_atomics.

#if vector == 4
typedef float4 numbers;
#elif vector == 2
typedef float2 numbers;
#else
typedef float numbers;
#endif

__device__ float sum_of(float x) { return x; }
__device__ float sum_of(float2 x) { return x.x + x.y; }
__device__ float sum_of(float4 x) { return (x.x + x.y) + (x.z + x.w); }

// Halves the threads that add until one is left.
__device__ float tree(float x) {
    __shared__ float sums[block_size_x];
    sums[threadIdx.x] = x;
    __syncthreads();
    for (int half = block_size_x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    return sums[0];
}

// The same, but the threads that are left when one warp suffices wait for each other only.
__device__ float warp_tree(float x) {
    __shared__ float sums[block_size_x];
    sums[threadIdx.x] = x;
    __syncthreads();
    for (int half = block_size_x / 2; half >= 32; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x < 32) {
        for (int half = 16; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                sums[threadIdx.x] += sums[threadIdx.x + half];
            }
            __syncwarp();
        }
    }
    __syncthreads();
    return sums[0];
}

// The sum of a warp, in its first lane.
__device__ float warp_sum(float x) {
    for (int distance = 16; distance > 0; distance /= 2) {
        x += __shfl_down_sync(0xffffffffu, x, distance);
    }
    return x;
}

// Warps add by exchanges of registers, and the first warp adds what they found.
__device__ float shuffle(float x) {
    __shared__ float sums[32];
    if (threadIdx.x < 32) {
        sums[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = x;
    }
    __syncthreads();
    return threadIdx.x < 32 ? warp_sum(sums[threadIdx.x]) : 0.0f;
}

// Warps add by exchanges of registers, and add what they found to one number.
__device__ float shared_atomic(float x) {
    __shared__ float total;
    if (threadIdx.x == 0) {
        total = 0.0f;
    }
    __syncthreads();
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&total, x);
    }
    __syncthreads();
    return total;
}

// The sum of this block's share, in its first thread.
__device__ float share(const float *in, int n) {
    const numbers *whole = reinterpret_cast<const numbers *>(in);
    const unsigned count = n / vector, step = gridDim.x * block_size_x;
    const unsigned first = blockIdx.x * block_size_x + threadIdx.x;
    float parts[unroll];
#pragma unroll
    for (int i = 0; i < unroll; i++) {
        parts[i] = 0.0f;
    }
    unsigned at = first;
    for (; at + (unroll - 1) * step < count; at += unroll * step) {
#pragma unroll
        for (int i = 0; i < unroll; i++) {
            parts[i] += sum_of(whole[at + i * step]);
        }
    }
    for (; at < count; at += step) {
        parts[0] += sum_of(whole[at]);
    }
    // Fewer numbers than a load takes are left.
    if (first < n - count * vector) {
        parts[0] += in[count * vector + first];
    }
    float sum = parts[0];
#pragma unroll
    for (int i = 1; i < unroll; i++) {
        sum += parts[i];
    }
    return combine(sum);
}

extern "C" __global__ void first(float *sum, float *parts, const float *in, int n) {
#if use_atomics
    if (threadIdx.x == 0) {
        *sum = 0.0f;
    }
#else
    const float part = share(in, n);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
    }
#endif
}

extern "C" __global__ void second(float *sum, float *parts, const float *in, int n) {
#if use_atomics
    const float part = share(in, n);
    if (threadIdx.x == 0) {
        atomicAdd(sum, part);
    }
#else
    float part = 0.0f;
    for (int i = threadIdx.x; i < blocks; i += block_size_x) {
        part += parts[i];
    }
    part = combine(part);
    if (threadIdx.x == 0) {
        *sum = part;
    }
#endif
}
