// Inclusive prefix sums of each block's segment (Hillis and Steele), in dynamic shared memory.
extern "C" __global__ void scan(const int *in, int *out, int n) {
    extern __shared__ int buffer[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, from = 0;
    buffer[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int to = blockDim.x - from;
        buffer[to + t] = t >= d ? buffer[from + t] + buffer[from + t - d] : buffer[from + t];
        from = to;
        __syncthreads();
    }
    if (i < n) out[i] = buffer[from + t];
}
