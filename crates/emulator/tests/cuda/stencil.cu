// A one-dimensional stencil of radius 3, coefficients in constant memory, a halo in shared memory.
#define R 3
__constant__ float weights[2 * R + 1];

extern "C" __global__ void stencil(const float *in, float *out, int n) {
    __shared__ float row[128 + 2 * R];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + R;
    row[t] = i < n ? in[i] : 0.0f;
    if (threadIdx.x < R) {
        row[t - R] = i >= R && i - R < n ? in[i - R] : 0.0f;
        row[t + blockDim.x] = i + blockDim.x < n ? in[i + blockDim.x] : 0.0f;
    }
    __syncthreads();
    if (i >= n) return;
    float sum = 0.0f;
#pragma unroll
    for (int d = -R; d <= R; d++) sum += weights[d + R] * row[t + d];
    out[i] = sum;
}
